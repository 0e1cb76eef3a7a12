"""Which callbacks are believed, and what they say."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any, cast

import aiohttp
import pytest
from pydantic import SecretStr, TypeAdapter

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import Origin, Output, UpdateStatus
from safelight.errors import CallbackRejected, ConfigurationError
from safelight.providers import DeclaredProvider, packaged_declaration
from safelight.providers.signatures import Signature
from safelight.providers.verifiers import Verifier, build_verifier
from tests.providers.upstream import CREDENTIALS, provider_of, record

RAW = '{"id": "j1", "status": "done", "prompt": "\U0001f98a ç … \\\\u001b"}'.encode()
SIGNATURE: TypeAdapter[Any] = TypeAdapter(Signature)


def signed(raw: bytes, key: str = "canary-secret-9b2e") -> bytes:
    return hmac.new(key.encode(), raw, hashlib.sha256).hexdigest().encode()


@pytest.fixture
def provider(session: aiohttp.ClientSession) -> DeclaredProvider:
    """The provider that calls back."""
    return provider_of("lab-callback", session, "http://127.0.0.1:1")


def built(signature: Signature, secrets: dict[str, str]) -> Verifier:
    # Only key sets need a session.
    found = build_verifier(signature, secrets, "p", session=cast("aiohttp.ClientSession", None))
    assert found is not None
    return found


def verifier(secrets: dict[str, str], **changes: Any) -> Verifier:
    values = {"kind": "hmac_sha256", "header": "X-Sig", "secrets": ["new", "old"], **changes}
    return built(SIGNATURE.validate_python(values), secrets)


@pytest.mark.parametrize("name", [b"x-signature", b"X-Signature", b"X-SIGNATURE"])
async def test_the_signature_covers_the_raw_bytes(provider: DeclaredProvider, name: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (name, signed(RAW))]
    await provider.verify_callback(headers, RAW)
    with pytest.raises(CallbackRejected, match="signature_wrong"):
        await provider.verify_callback(headers, RAW.replace(b'": "', b'":  "', 1))


async def test_upper_case_hex_is_the_same_number(provider: DeclaredProvider) -> None:
    await provider.verify_callback([(b"x-signature", signed(RAW).upper())], RAW)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([], "signature_missing"),
        ([(b"x_signature", signed(RAW))], "signature_missing"),
        ([(b"x-signature", signed(RAW)), (b"x-signature", signed(RAW))], "signature_duplicated"),
        ([(b"x-signature", signed(RAW)), (b"X-Signature", b"0" * 64)], "signature_duplicated"),
        ([(b"x-signature", b"")], "signature_malformed"),
        ([(b"x-signature", b"   ")], "signature_malformed"),
        ([(b"x-signature", b"\xe9" * 64)], "signature_malformed"),
        ([(b"x-signature", "\uff11".encode() * 64)], "signature_malformed"),
        ([(b"x-signature", signed(RAW)[:-1])], "signature_malformed"),
        ([(b"x-signature", signed(RAW) + b"0")], "signature_malformed"),
        ([(b"x-signature", signed(RAW)[:32] + b" " + signed(RAW)[32:])], "signature_malformed"),
        ([(b"x-signature", b"sha256=" + signed(RAW))], "signature_malformed"),
        ([(b"x-signature", signed(RAW, "another"))], "signature_wrong"),
        ([(b"x-signature", signed(RAW, ""))], "signature_wrong"),
        ([(b"x-signature", b"0" * 64)], "signature_wrong"),
    ],
)
async def test_a_callback_without_proof_is_rejected(
    provider: DeclaredProvider, headers: list[tuple[bytes, bytes]], reason: str
) -> None:
    with pytest.raises(CallbackRejected) as raised:
        await provider.verify_callback(headers, RAW)
    assert (raised.value.reason, raised.value.status) == (reason, 401)


async def test_both_secrets_are_good_while_one_replaces_the_other() -> None:
    rotating = verifier({"new": "n", "old": "o"})
    await rotating.verify([(b"x-sig", signed(RAW, "n"))], RAW)
    await rotating.verify([(b"x-sig", signed(RAW, "o"))], RAW)
    with pytest.raises(CallbackRejected):
        await verifier({"new": "n"}).verify([(b"x-sig", signed(RAW, "o"))], RAW)


async def test_a_signature_may_have_a_prefix_and_be_base64() -> None:
    in_base64 = verifier({"new": "n"}, prefix="sha256=", encoding="base64")
    digest = base64.b64encode(hmac.digest(b"n", RAW, "sha256"))
    await in_base64.verify([(b"x-sig", b"sha256=" + digest)], RAW)
    for value in (digest, b"sha256=", b"sha256=" + digest[:-1], b"sha256=" + digest[:8] + b"!" + digest[8:]):
        with pytest.raises(CallbackRejected, match="signature_malformed"):
            await in_base64.verify([(b"x-sig", value)], RAW)


async def test_a_static_token_proves_the_sender() -> None:
    static = verifier({"new": "n", "old": "o"}, kind="static_token", prefix="Bearer ")
    await static.verify([(b"x-sig", b"Bearer o")], b"any body")
    for value in (b"Bearer x", b"o"):
        with pytest.raises(CallbackRejected):
            await static.verify([(b"x-sig", value)], b"any body")


async def test_without_a_signature_the_address_is_the_only_proof() -> None:
    unsigned = built(SIGNATURE.validate_python({"kind": "none"}), {})
    await unsigned.verify([], b"any body")
    with pytest.raises(CallbackRejected):
        await verifier({"new": "n"}).verify([], b"any body")


@pytest.mark.parametrize("secrets", [{}, {"new": ""}, {"new": "  "}, {"old": "o"}, {"new": "n", "old": " "}])
def test_an_empty_secret_is_a_configuration_error(secrets: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"credential '(new|old)'"):
        verifier(secrets)


@pytest.mark.parametrize("secret", ["", " \n"])
async def test_a_provider_without_its_callback_secret_does_not_start(
    session: aiohttp.ClientSession, secret: str
) -> None:
    credentials = {**CREDENTIALS, "callback_secret": SecretStr(secret)}
    with pytest.raises(ConfigurationError, match="callback_secret"):
        DeclaredProvider(
            packaged_declaration("lab-callback"),
            credentials=credentials,
            session=session,
            base_url="http://127.0.0.1:1",
        )


async def test_a_provider_that_declares_no_callbacks_believes_none(session: aiohttp.ClientSession) -> None:
    polling = provider_of("lab-poll", session, "http://127.0.0.1:1")
    with pytest.raises(CallbackRejected, match="no_callbacks_declared"):
        await polling.verify_callback([(b"x-signature", signed(RAW))], RAW)


def raw_record(**changes: Any) -> bytes:
    return json.dumps(record(**changes, sent_at=1_795_000_009.5)).encode()


async def test_a_callback_speaks_like_a_poll(provider: DeclaredProvider) -> None:
    images = [{"url": "http://127.0.0.1:9/r/1.png"}]
    update = provider.read_callback(
        b"\xef\xbb\xbf" + raw_record(status="done", images=images, run_s=2.5, cost=1)
    )
    assert (update.status, update.origin) == (UpdateStatus.SUCCEEDED, Origin.CALLBACK)
    assert (update.provider_ref, update.upstream_status) == ("j1", "done")
    assert update.outputs == (Output(url="http://127.0.0.1:9/r/1.png"),)
    assert (update.run_s, update.cost) == (2.5, 1.0)
    blocked = provider.read_callback(raw_record(status="blocked"))
    assert blocked.failure == Failure(FailureClass.CONTENT_BLOCKED, "content_blocked")


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b'{"id": "j1"}',
        b'{"id": "j1", "output": ["https://a.example/1.png"]}',
        raw_record(status=None),
        raw_record(status=""),
        raw_record(status=["done"]),
        raw_record(id="a/b", status="done"),
        raw_record(status="done", images=[{"url": "ftp://a"}]),
        b'{"status": "failed", "id": "j1", "status": "done"}',
    ],
)
async def test_a_genuine_callback_that_cannot_be_used_is_a_hint(
    provider: DeclaredProvider, raw: bytes
) -> None:
    update = provider.read_callback(raw)
    assert (update.status, update.outputs, update.failure) == (UpdateStatus.HINT, (), None)


@pytest.mark.parametrize("raw", [b"", b"nope", b"[]", b"\xff", b'{"a": ' + b"[" * 99_999, b'{"cost": NaN}'])
async def test_a_callback_that_is_no_json_object_is_rejected(provider: DeclaredProvider, raw: bytes) -> None:
    with pytest.raises(CallbackRejected) as raised:
        provider.read_callback(raw)
    assert raised.value.status == 400


SECRET = "canary-secret+9b2e/ab=="


async def kept(session: aiohttp.ClientSession, body: str) -> bytes:
    """What is kept of a callback by a provider with this secret, and a number as its key."""
    credentials = {"api_key": SecretStr("71330412"), "callback_secret": SecretStr(SECRET)}
    declaration = packaged_declaration("lab-callback")
    provider = DeclaredProvider(
        declaration, credentials=credentials, session=session, base_url="http://127.0.0.1:1"
    )
    return provider.keepable(body.encode())


@pytest.mark.parametrize(
    ("body", "kept_body"),
    [
        (json.dumps({"id": "j1", "apiKey": {"secret": SECRET}}), {"id": "j1", "apiKey": {"secret": "…"}}),
        (json.dumps({"told": f"Bearer {SECRET}, twice {SECRET}"}), {"told": "Bearer …, twice …"}),
        ('{"a": "canary-secret+9b2e\\/ab=="}', {"a": "…"}),
        ('{"a": "canary-secret\\u002b9b2e/ab\\u003d\\u003d"}', {"a": "…"}),
        ('{"a": "https://h/?key=canary-secret%2B9b2e%2Fab%3D%3D&b=1"}', {"a": "https://h/?key=…&b=1"}),
        ('{"a": 71330412, "b": [1713304125, 7.5, true, null]}', {"a": "…", "b": ["1…5", 7.5, True, None]}),
        ('{"71330412": "\\"71330412\\\\ \\ud800"}', {"…": '"…\\ \ud800'}),
    ],
)
async def test_what_is_kept_of_a_callback_has_no_credential_and_is_json(
    session: aiohttp.ClientSession, body: str, kept_body: Any
) -> None:
    found = await kept(session, body)
    assert json.loads(found) == json.loads(json.dumps(kept_body).replace("\\u2026", "[redacted]"))
    assert b"canary" not in found
    assert b"71330412" not in found


@pytest.mark.parametrize("body", ['{"id": "j1",  "a": "\\u00e9 é"}', "{}", "no JSON \\u0041"])
async def test_what_has_no_credential_in_it_is_kept_as_it_came(
    session: aiohttp.ClientSession, body: str
) -> None:
    assert await kept(session, body) == body.encode()
