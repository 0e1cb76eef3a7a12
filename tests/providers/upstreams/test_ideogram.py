"""Ideogram as declared: what is sent, what its answers mean, and which notices are believed."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import SecretStr

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import AfterUncertain, InputImage, MaskStyle, Trust, UpdateStatus
from safelight.errors import CallbackRejected
from safelight.providers import DeclaredProvider, packaged_declaration
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    NO_MONEY,
    PNG,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)
from tests.providers.upstreams.parts import parts_of

SAFE = {"url": "https://ideogram.example/1.png", "prompt": "a fox", "seed": 1, "is_image_safe": True}
UNSAFE = {"url": None, "prompt": "a fox", "seed": 2, "is_image_safe": False}
BLOCKED = Failure(FailureClass.CONTENT_BLOCKED, "content_blocked")
ACCEPTED = {"generation_id": "xtdZiqPwRxqY1Y7NExFmzB", "seed": 1}
REF = "xtdZiqPwRxqY1Y7NExFmzB"
KEY = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"a test's key").digest())


@pytest.fixture
def asker(session: aiohttp.ClientSession, upstream: Upstream) -> Asker:
    return Asker("ideogram", session, upstream, model="ideogram-4-5")


async def test_pictures_are_asked_for_with_our_address(asker: Asker) -> None:
    wishes = {"quality": "medium", "magic_prompt": "off", "seed": 5}
    body = await asker.sends(
        200, ACCEPTED, n=2, size="1280x720", options=wishes, callback_url=asker.callback_url
    )
    assert body == {
        "prompt": "a fox",
        "num_images": 2,
        "size": "1280x720",
        "quality": "medium",
        "magic_prompt": "off",
        "seed": 5,
        "async": True,
        "webhook_url": asker.callback_url,
    }
    asked = asker.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/v2/image/generate/ideogram-4-5")
    assert asked.headers["api-key"] == "canary-key-71f3"


async def test_without_a_public_address_it_is_asynchronous_as_well(asker: Asker) -> None:
    body = await asker.sends(200, ACCEPTED, aspect_ratio="9:16")
    assert (body["async"], body["size"], "webhook_url" in body) == (True, "1440x2560", False)


async def test_an_edit_keeps_the_first_picture_and_names_the_others_as_references(asker: Asker) -> None:
    mask = InputImage("image/png", b"mask-bytes")
    await asker.submits(200, ACCEPTED, operation="edit", images=[PNG, JPEG], mask=mask)
    asked = asker.upstream.asked[0]
    assert asked.path == "/v2/image/precise-edit/ideogram-4-5"
    assert parts_of(asked) == [
        ("prompt", "a fox"),
        ("num_images", "1"),
        ("image", ("image/png", b"png-bytes")),
        ("reference_images", ("image/jpeg", b"jpeg-bytes")),
        ("mask", ("image/png", b"mask-bytes")),
        ("async", "true"),
    ]


@pytest.mark.parametrize(
    ("body", "standing"),
    [
        (ACCEPTED, UpdateStatus.QUEUED),
        ({**ACCEPTED, "status": "pending"}, UpdateStatus.RUNNING),
        ({**ACCEPTED, "data": [SAFE]}, UpdateStatus.SUCCEEDED),
    ],
)
async def test_a_submit_gives_the_id(asker: Asker, body: Any, standing: UpdateStatus) -> None:
    update = await asker.submits(200, body)
    assert (update.status, update.provider_ref) == (standing, REF)


@pytest.mark.parametrize(
    ("changes", "standing", "urls", "failure"),
    [
        ({"status": "pending"}, UpdateStatus.RUNNING, [], None),
        ({"status": "never seen"}, UpdateStatus.RUNNING, [], None),
        ({"status": "completed", "data": [SAFE]}, UpdateStatus.SUCCEEDED, [SAFE["url"]], None),
        ({"status": "completed", "data": [UNSAFE, SAFE]}, UpdateStatus.SUCCEEDED, [SAFE["url"]], None),
        ({"status": "completed", "data": [UNSAFE]}, UpdateStatus.BLOCKED, [], BLOCKED),
        ({"status": "completed", "data": [{**UNSAFE, "url": ""}]}, UpdateStatus.BLOCKED, [], BLOCKED),
        ({"status": "completed", "data": []}, UpdateStatus.SUCCEEDED, [], None),
        (
            {"status": "failed", "failure_reason": "content_policy_violation"},
            UpdateStatus.BLOCKED,
            [],
            BLOCKED,
        ),
        (
            {"status": "failed", "failure_reason": "internal"},
            UpdateStatus.FAILED,
            [],
            Failure(FailureClass.UPSTREAM_FAULT, "generation_failed"),
        ),
    ],
)
async def test_a_look_says_how_it_stands(
    asker: Asker, changes: Any, standing: UpdateStatus, urls: list[str], failure: Failure | None
) -> None:
    update = await asker.polls(200, {"generation_id": REF, "usage_cost_usd_micros": 60000, **changes}, REF)
    assert (update.status, urls_of(update), update.failure) == (standing, urls, failure)
    assert update.cost == 60000
    assert (asker.upstream.asked[0].method, asker.upstream.asked[0].path) == ("GET", f"/v2/generations/{REF}")


def error(reject_reason: str | None = None) -> dict[str, Any]:
    return {"error": "its words", "reject_reason": reject_reason} if reject_reason else {"error": "its words"}


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (400, error(), REFUSED_INPUT),
        (401, error(), BAD_KEY),
        (402, error("insufficient_funds"), NO_MONEY),
        (402, error("daily_limit"), NO_MONEY),
        (402, error("inflight_limit"), TOO_FAST),
        (403, error(), BAD_KEY),
        (413, error(), REFUSED_INPUT),
        (422, error(), REFUSED_CONTENT),
        (429, error("inflight_limit"), TOO_FAST),
        (429, error(), TOO_FAST),
        (500, error(), REFUSED_FAULT),
        (503, error(), REFUSED_FAULT),
        (500, b"", "uncertain"),
        (502, HTML, "uncertain"),
        (422, HTML, "uncertain"),
        (200, {"seed": 1}, "uncertain"),
    ],
)
async def test_each_error_is_read_by_its_own_words(asker: Asker, status: int, body: Any, word: str) -> None:
    assert await asker.refuses(status, body) == word


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [(404, error(), "nothing"), (429, error(), TOO_FAST), (500, error(), "nothing"), (502, HTML, "nothing")],
)
async def test_an_error_to_a_look_never_means_failed(asker: Asker, status: int, body: Any, word: str) -> None:
    assert await asker.poll_fails(status, body) == word


def headers(raw: bytes, *, at: float | None = None, reference: str = REF) -> list[tuple[bytes, bytes]]:
    """What Ideogram sends beside a notice."""
    moment = str(int(time.time() if at is None else at))
    signed = "\n".join((reference, "user-1", moment, hashlib.sha256(raw).hexdigest())).encode()
    named = {
        "X-Ideogram-Webhook-Generation-Id": REF,
        "X-Ideogram-Webhook-User-Id": "user-1",
        "X-Ideogram-Webhook-Timestamp": moment,
        "X-Ideogram-Webhook-Key-Id": "k-1",
        "X-Ideogram-Webhook-Signature": KEY.sign(signed).hex(),
    }
    return [(name.encode(), value.encode()) for name, value in named.items()]


@pytest.fixture
def called_back(session: aiohttp.ClientSession, upstream: Upstream) -> DeclaredProvider:
    """The provider with its public keys at the scripted upstream."""
    x = base64.urlsafe_b64encode(KEY.public_key().public_bytes_raw()).decode().rstrip("=")
    upstream.answers(200, {"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k-1", "x": x}]})
    return DeclaredProvider(
        packaged_declaration("ideogram"),
        credentials={"api_key": SecretStr("key-1")},
        session=session,
        base_url=upstream.base_url,
        jwks_url=f"{upstream.base_url}/v1/.well-known/jwks.json",
    )


async def test_a_genuine_notice_is_believed(called_back: DeclaredProvider) -> None:
    raw = json.dumps(
        {"generation_id": REF, "created": "2026-11-29T00:00:00Z", "data": [SAFE, UNSAFE]}
    ).encode()
    await called_back.verify_callback(headers(raw), raw)
    update = called_back.read_callback(raw)
    assert (update.status, update.provider_ref) == (UpdateStatus.SUCCEEDED, REF)
    assert urls_of(update) == [SAFE["url"]]
    assert called_back.capabilities.trust is Trust.BODY


@pytest.mark.parametrize("spoiled", ["body", "time", "reference", "unsigned"])
async def test_a_notice_that_is_not_its_own_is_rejected(called_back: DeclaredProvider, spoiled: str) -> None:
    raw = json.dumps({"generation_id": REF, "data": [SAFE]}).encode()
    sent = {
        "body": headers(raw + b" "),
        "time": headers(raw, at=time.time() - 400),
        "reference": headers(raw, reference="another"),
        "unsigned": headers(raw)[:-1],
    }[spoiled]
    with pytest.raises(CallbackRejected):
        await called_back.verify_callback(sent, raw)


@pytest.mark.parametrize("body", [{"generation_id": REF}, {"generation_id": REF, "data": []}])
def test_a_notice_without_pictures_is_a_hint(called_back: DeclaredProvider, body: Any) -> None:
    assert called_back.read_callback(json.dumps(body).encode()).status is UpdateStatus.HINT


def test_a_lost_answer_waits_for_its_notice(asker: Asker) -> None:
    able = asker.provider.capabilities
    assert (able.after_uncertain, able.calls_back, able.can_poll) == (AfterUncertain.NONE, True, True)
    assert (able.mask_style, able.max_active) == (MaskStyle.BLACK, 10)
