"""Every signature family: the vendors' own vectors, rotation, staleness, key sets."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any, cast

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import TypeAdapter, ValidationError
from standardwebhooks import Webhook

from safelight.errors import CallbackRejected, ConfigurationError
from safelight.providers.signatures import Signature, proves_body
from safelight.providers.verifiers import Verifier, build_verifier
from tests.providers.upstream import Upstream

SIGNATURE: TypeAdapter[Any] = TypeAdapter(Signature)
NOW = 1_800_000_000
SECRET = "whsec_" + base64.b64encode(b"a secret of twenty-four bytes"[:24]).decode()
BODY = b'{"id": "j1", "status": "done"}'
Headers = list[tuple[bytes, bytes]]


def build(values: dict[str, Any], secrets: dict[str, str], *, now: float = NOW) -> Verifier:
    no_session = cast("aiohttp.ClientSession", None)  # only key sets need one
    found = build_verifier(
        SIGNATURE.validate_python(values), secrets, "p", session=no_session, clock=lambda: now
    )
    assert found is not None
    return found


STANDARD = {"kind": "standard_webhooks", "secrets": ["new", "old"]}


def standard_headers(secret: str, body: bytes, *, at: int = NOW, prefix: str = "webhook") -> Headers:
    """As an upstream that follows the specification signs, by the specification's own words."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = base64.b64encode(hmac.digest(key, b"msg_1.%d.%s" % (at, body), "sha256"))
    name = prefix.encode()
    return [
        (name + b"-id", b"msg_1"),
        (name + b"-timestamp", b"%d" % at),
        (name + b"-signature", b"v1," + digest),
    ]


async def test_the_vector_of_standard_webhooks_is_accepted() -> None:
    """The example of the specification's own test suites."""
    verifier = build(STANDARD, {"new": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, now=1614265330)
    body = b'{"test": 2432232314}'
    headers = [
        (b"webhook-id", b"msg_p5jXN8AQM9LWM0D4loKWxJek"),
        (b"webhook-timestamp", b"1614265330"),
        (b"webhook-signature", b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    ]
    await verifier.verify(headers, body)
    with pytest.raises(CallbackRejected, match="signature_wrong"):
        await verifier.verify(headers, body + b" ")


async def test_the_vector_that_kling_publishes_is_accepted() -> None:
    """The test data of the page on its signatures (klingai.com/document-api, read November 2026)."""
    verifier = build(STANDARD, {"new": "whsec_dGVzdHNlY3JldHRlc3RzZWNyZXR0ZXN0c2VjcmV0MTI="}, now=1781080794)
    body = (
        b'{"id":"1234567890","status":"succeeded","message":"",'
        b'"create_time":1781080778802,"update_time":1781080794151}'
    )
    headers = [
        (b"webhook-id", b"9876543210"),
        (b"webhook-timestamp", b"1781080794"),
        (b"webhook-signature", b"v1,UsKlJP00XoQyOn410NM9xv34sP+Gl0jnOO9Lcpr7NJ4="),
    ]
    await verifier.verify(headers, body)
    with pytest.raises(CallbackRejected, match="signature_wrong"):
        await verifier.verify(headers, body.replace(b"succeeded", b"failed"))


async def test_what_the_reference_library_signs_is_accepted() -> None:
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(NOW, UTC)
    signature = Webhook(SECRET).sign("msg_9", moment, BODY.decode())
    headers = [
        (b"Webhook-Id", b"msg_9"),
        (b"Webhook-Timestamp", b"%d" % NOW),
        (b"Webhook-Signature", signature.encode()),
    ]
    await build(STANDARD, {"new": SECRET}).verify(headers, BODY)


async def test_two_signatures_and_two_secrets_carry_a_rotation() -> None:
    other = "whsec_" + base64.b64encode(b"another secret, 24 bytes").decode()
    headers = standard_headers(SECRET, BODY)
    old, fresh = headers[2][1], standard_headers(other, BODY)[2][1]
    both = [*headers[:2], (b"webhook-signature", fresh + b" v1a,xyz " + old)]
    await build(STANDARD, {"new": SECRET}).verify(both, BODY)
    await build(STANDARD, {"new": other, "old": SECRET}).verify(headers, BODY)
    with pytest.raises(CallbackRejected, match="signature_wrong"):
        await build(STANDARD, {"new": other}).verify(headers, BODY)


@pytest.mark.parametrize("drift", [-301, 301, -86_400, 10**9])
async def test_a_callback_out_of_its_window_is_refused_though_correctly_signed(drift: int) -> None:
    with pytest.raises(CallbackRejected, match="timestamp_stale"):
        await build(STANDARD, {"new": SECRET}).verify(standard_headers(SECRET, BODY, at=NOW + drift), BODY)


@pytest.mark.parametrize("drift", [-300, 0, 300])
async def test_a_callback_inside_its_window_is_accepted(drift: int) -> None:
    await build(STANDARD, {"new": SECRET}).verify(standard_headers(SECRET, BODY, at=NOW + drift), BODY)


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (0, None, "signature_missing"),
        (1, None, "signature_missing"),
        (2, None, "signature_missing"),
        (0, b"msg_2", "signature_wrong"),
        (1, b"1.8e9", "timestamp_malformed"),
        (1, b"-1800000000", "timestamp_malformed"),
        (1, b"1800000000000", "timestamp_malformed"),
        (1, b"%d" % (NOW + 1), "signature_wrong"),
        (2, b"", "signature_malformed"),
        (2, b"v1,", "signature_malformed"),
        (2, b"v2,AAAA", "signature_malformed"),
        (2, b"v1,AAAA", "signature_wrong"),
        (2, "v1,ß".encode(), "signature_malformed"),
        (2, b"v1,!!!!", "signature_malformed"),
    ],
)
async def test_a_bent_envelope_is_refused(position: int, value: bytes | None, reason: str) -> None:
    headers = standard_headers(SECRET, BODY)
    bent = [pair for index, pair in enumerate(headers) if index != position]
    if value is not None:
        bent.append((headers[position][0], value))
    with pytest.raises(CallbackRejected) as raised:
        await build(STANDARD, {"new": SECRET}).verify(bent, BODY)
    assert (raised.value.reason, raised.value.status) == (reason, 401)


@pytest.mark.parametrize("secret", ["whsec_", "whsec_!!!", "whsec_a"])
async def test_a_secret_that_is_no_key_is_told_at_the_start(secret: str) -> None:
    with pytest.raises(ConfigurationError, match="whsec_"):
        build(STANDARD, {"new": secret})


async def test_an_optional_secret_that_is_not_set_leaves_callbacks_unproved() -> None:
    signature = SIGNATURE.validate_python({**STANDARD, "is_optional": True})
    no_session = cast("aiohttp.ClientSession", None)
    assert build_verifier(signature, {}, "p", session=no_session) is None
    assert build_verifier(signature, {"new": SECRET}, "p", session=no_session) is not None


PARTIAL = {
    "kind": "hmac_sha256",
    "header": "X-Webhook-Signature",
    "encoding": "base64",
    "parts": ["path:data.taskId", "timestamp"],
    "timestamp_header": "X-Webhook-Timestamp",
    "secrets": ["new"],
}


async def test_a_signature_over_a_member_of_the_body_leaves_the_rest_unproved() -> None:
    signature = SIGNATURE.validate_python(PARTIAL)
    assert not proves_body(signature)
    body = b'{"data": {"taskId": "t-7", "state": "success"}}'
    digest = base64.b64encode(hmac.digest(b"key", b"t-7.%d" % NOW, "sha256"))
    headers = [(b"x-webhook-timestamp", b"%d" % NOW), (b"x-webhook-signature", digest)]
    verifier = build(PARTIAL, {"new": "key"})
    await verifier.verify(headers, body)
    await verifier.verify(headers, body.replace(b"success", b"fail"))
    with pytest.raises(CallbackRejected, match="signature_wrong"):
        await verifier.verify(headers, body.replace(b"t-7", b"t-8"))
    for raw, reason in (
        (b"[]", "not_an_object"),
        (b'{"data": {}}', "signed_part_missing"),
        (b"x", "not_json"),
    ):
        with pytest.raises(CallbackRejected, match=reason):
            await verifier.verify(headers, raw)


@pytest.mark.parametrize(
    "bad",
    [
        {"parts": ["body", "when"]},
        {"parts": ["path:]["]},
        {"parts": ["body", "timestamp"], "timestamp_header": None},
        {"parts": ["body"], "timestamp_header": "X-Time"},
    ],
)
def test_a_signature_that_proves_nothing_is_refused_as_a_declaration(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SIGNATURE.validate_python({**PARTIAL, **bad})


PRIVATE = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"a test's key").digest())
OTHER = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"another").digest())


def jwks(*keys: Ed25519PrivateKey) -> dict[str, Any]:
    return {"keys": [_jwk(key) for key in keys]}


def _jwk(key: Ed25519PrivateKey) -> dict[str, str]:
    raw = key.public_key().public_bytes_raw()
    return {"kty": "OKP", "crv": "Ed25519", "x": base64.urlsafe_b64encode(raw).decode().rstrip("=")}


ED25519 = {
    "kind": "ed25519_jwks",
    "header": "X-Sig",
    "parts": ["header:X-Id", "header:X-User", "timestamp", "body_sha256"],
    "joiner": "\n",
    "timestamp_header": "X-Time",
    "jwks_url": "https://keys.example/jwks.json",
}


def ed25519_headers(key: Ed25519PrivateKey, body: bytes, *, at: float = NOW) -> Headers:
    signed = b"\n".join((b"r-1", b"u-1", b"%d" % at, hashlib.sha256(body).hexdigest().encode()))
    return [
        (b"x-id", b"r-1"),
        (b"x-user", b"u-1"),
        (b"x-time", b"%d" % at),
        (b"x-sig", key.sign(signed).hex().encode()),
    ]


class Clock:
    def __init__(self) -> None:
        self.now = float(NOW)

    def __call__(self) -> float:
        return self.now


def keyed(session: aiohttp.ClientSession, upstream: Upstream, clock: Clock) -> Verifier:
    found = build_verifier(
        SIGNATURE.validate_python(ED25519),
        {},
        "p",
        session=session,
        jwks_url=f"{upstream.base_url}/jwks.json",
        clock=clock,
    )
    assert found is not None
    return found


async def test_the_upstreams_public_keys_are_fetched_once(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    upstream.answers(200, jwks(OTHER, PRIVATE))
    verifier = keyed(session, upstream, Clock())
    for _ in range(3):
        await verifier.verify(ed25519_headers(PRIVATE, BODY), BODY)
    assert len(upstream.asked) == 1
    with pytest.raises(CallbackRejected, match="signature_wrong"):
        await verifier.verify(ed25519_headers(PRIVATE, BODY), BODY + b" ")


async def test_a_new_key_is_learned_and_forgeries_do_not_make_us_ask_again(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    upstream.answers(200, jwks(OTHER))
    upstream.answers(200, jwks(PRIVATE))
    clock = Clock()
    verifier = keyed(session, upstream, clock)
    await verifier.verify(ed25519_headers(OTHER, BODY), BODY)
    for _ in range(5):
        with pytest.raises(CallbackRejected, match="signature_wrong"):
            await verifier.verify(ed25519_headers(PRIVATE, BODY), BODY)
    assert len(upstream.asked) == 1
    clock.now += 61
    await verifier.verify(ed25519_headers(PRIVATE, BODY, at=clock.now), BODY)
    assert len(upstream.asked) == 2


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (503, b""),
        (200, b"<html>"),
        (200, b'{"keys": []}'),
        (200, b'{"keys": [{"kty": "RSA"}]}'),
        (200, b'{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA"}]}'),
        (200, b'{"keys": "' + b"x" * 70_000 + b'"}'),
        (302, b""),
    ],
)
async def test_without_keys_the_upstream_is_asked_to_come_again(
    session: aiohttp.ClientSession, upstream: Upstream, status: int, body: bytes
) -> None:
    upstream.answers(status, body, {"Location": "http://127.0.0.1:1/"})
    with pytest.raises(CallbackRejected) as raised:
        await keyed(session, upstream, Clock()).verify(ed25519_headers(PRIVATE, BODY), BODY)
    assert (raised.value.reason, raised.value.status) == ("keys_unavailable", 503)


async def test_known_keys_outlive_an_outage_of_the_key_server(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    upstream.answers(200, jwks(PRIVATE))
    upstream.answers(503, b"")
    clock = Clock()
    verifier = keyed(session, upstream, clock)
    await verifier.verify(ed25519_headers(PRIVATE, BODY), BODY)
    clock.now += 100_000
    await verifier.verify(ed25519_headers(PRIVATE, BODY, at=clock.now), BODY)
    assert len(upstream.asked) == 2
