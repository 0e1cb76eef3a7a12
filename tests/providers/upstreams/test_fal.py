"""fal.ai: the queue's status and result calls, the signed callback, and the two shapes of its errors."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import SecretStr

from safelight.domain.failure import FailureClass
from safelight.domain.provider import ProviderUpdate, Trust, UpdateStatus
from safelight.errors import CallbackRejected
from safelight.providers import DeclaredProvider, packaged_declaration
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    KEY,
    NO_MONEY,
    PNG,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

PICTURES = {"images": [{"url": "https://v3.fal.media/files/1.png", "width": 1024}], "seed": 7}


def accepted(base_url: str) -> dict[str, Any]:
    root = f"{base_url}/fal-ai/flux/requests/r1"
    return {
        "request_id": "r1",
        "gateway_request_id": "g9",
        "queue_position": 2,
        "response_url": root,
        "status_url": f"{root}/status",
        "cancel_url": f"{root}/cancel",
    }


def model_error(kind: str, message: str = "its words") -> dict[str, Any]:
    return {"detail": [{"loc": ["body", "prompt"], "msg": message, "type": kind, "input": "a fox"}]}


def platform_error(kind: str) -> dict[str, Any]:
    return {"detail": "the platform's words", "error_type": kind}


@pytest.fixture
def fal(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    """fal, asked for FLUX.1 dev."""
    return Asker("fal", session, upstream, model="fal-ai/flux/dev")


async def looks(fal: Asker, status: Any, result: Any = None, result_status: int = 200) -> ProviderUpdate:
    """What a look says: the status call is answered with `status`, the result call with `result`."""
    fal.upstream.answers(200, status)
    if result is not None:
        fal.upstream.answers(result_status, result)
    return await fal.provider.poll(fal.attempt("r1"))


async def test_a_submit_carries_the_models_input_and_our_address_in_the_query(fal: Asker) -> None:
    update = await fal.submits(
        200,
        accepted(fal.upstream.base_url),
        n=2,
        size="1024x768",
        options={"seed": 7, "guidance_scale": 3.5},
        callback_url=fal.callback_url,
    )
    asked = fal.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/fal-ai/flux/dev")
    assert asked.query == {"fal_webhook": fal.callback_url}
    assert asked.headers["authorization"] == f"Key {KEY}"
    assert asked.body == {
        "prompt": "a fox",
        "image_size": {"width": 1024, "height": 768},
        "num_images": 2,
        "seed": 7,
        "guidance_scale": 3.5,
    }
    assert (update.status, update.provider_ref, update.position) == (UpdateStatus.QUEUED, "r1", 2)
    assert set(update.links) == {"poll", "result", "cancel"}


@pytest.mark.parametrize(
    ("model", "wishes", "path", "body"),
    [
        (
            "fal-ai/flux-pro/kontext",
            {"images": [PNG], "aspect_ratio": "16:9"},
            "/fal-ai/flux-pro/kontext",
            {"image_url": PNG.url, "aspect_ratio": "16:9", "num_images": 1},
        ),
        (
            "fal-ai/flux-pro/v1/fill",
            {"images": [PNG], "mask": replace(PNG, url=None)},
            "/fal-ai/flux-pro/v1/fill",
            {"image_url": PNG.url, "mask_url": "data:image/png;base64,cG5nLWJ5dGVz", "num_images": 1},
        ),
        (
            "fal-ai/nano-banana",
            {"images": [PNG, JPEG]},
            "/fal-ai/nano-banana/edit",
            {"image_urls": [PNG.url, JPEG.url], "num_images": 1},
        ),
        (
            "fal-ai/bytedance/seedream/v4/text-to-image",
            {"images": [JPEG], "size": "2048x2048"},
            "/fal-ai/bytedance/seedream/v4/edit",
            {"image_urls": [JPEG.url], "image_size": {"width": 2048, "height": 2048}, "num_images": 1},
        ),
    ],
)
async def test_every_model_takes_pictures_in_its_own_fields(
    upstream: Upstream,
    session: aiohttp.ClientSession,
    model: str,
    wishes: dict[str, Any],
    path: str,
    body: dict[str, Any],
) -> None:
    fal = Asker("fal", session, upstream, model=model)
    sent = await fal.sends(200, accepted(upstream.base_url), operation="edit", **wishes)
    assert (upstream.asked[0].path, sent) == (path, {"prompt": "a fox", **body})


async def test_a_look_follows_the_links_that_the_submit_gave(fal: Asker) -> None:
    fal.upstream.answers(200, accepted(fal.upstream.base_url))
    fal.upstream.answers(200, {"status": "COMPLETED", "metrics": {"inference_time": 3.5}})
    fal.upstream.answers(200, PICTURES)
    update = await fal.provider.submit(fal.submission())
    # The other reference shows that the links are taken and no address is built.
    attempt = replace(fal.attempt("r1"), links=update.links, upstream_model="fal-ai/other/dev")
    done = await fal.provider.poll(attempt)
    assert [asked.path for asked in fal.upstream.asked[1:]] == [
        "/fal-ai/flux/requests/r1/status",
        "/fal-ai/flux/requests/r1",
    ]
    assert (done.status, done.run_s) == (UpdateStatus.SUCCEEDED, 3.5)
    assert urls_of(done) == ["https://v3.fal.media/files/1.png"]


async def test_an_open_attempt_is_told_with_202(fal: Asker) -> None:
    fal.upstream.answers(202, {"status": "IN_PROGRESS"})
    assert (await fal.provider.poll(fal.attempt("r1"))).status is UpdateStatus.RUNNING


async def test_without_links_the_models_sub_path_is_dropped(fal: Asker) -> None:
    update = await looks(fal, {"status": "IN_QUEUE", "queue_position": 4})
    assert fal.upstream.asked[0].path == "/fal-ai/flux/requests/r1/status"
    assert (update.status, update.position) == (UpdateStatus.QUEUED, 4)


async def test_a_link_to_a_stranger_is_not_kept(fal: Asker) -> None:
    update = await fal.submits(
        200, {**accepted(fal.upstream.base_url), "status_url": "https://evil.example/s"}
    )
    assert "poll" not in update.links


@pytest.mark.parametrize(
    ("status", "result", "word"),
    [
        ({"status": "IN_PROGRESS", "logs": []}, None, UpdateStatus.RUNNING),
        ({"status": "SOMETHING_NEW"}, None, UpdateStatus.RUNNING),
        (
            {"status": "COMPLETED"},
            {"image": {"url": "https://v3.fal.media/files/1.png"}},
            UpdateStatus.SUCCEEDED,
        ),
        ({"status": "COMPLETED"}, {**PICTURES, "has_nsfw_concepts": [False]}, UpdateStatus.SUCCEEDED),
        ({"status": "COMPLETED"}, {**PICTURES, "has_nsfw_concepts": [True]}, UpdateStatus.BLOCKED),
    ],
)
async def test_what_a_look_says(fal: Asker, status: Any, result: Any, word: UpdateStatus) -> None:
    assert (await looks(fal, status, result)).status is word


@pytest.mark.parametrize(
    ("status", "failure_class"),
    [
        ({"error": "x", "error_type": "content_policy_violation"}, FailureClass.CONTENT_BLOCKED),
        ({"error": "flagged: content policy"}, FailureClass.CONTENT_BLOCKED),
        ({"error": "x", "error_type": "bad_request"}, FailureClass.INVALID_REQUEST),
        ({"error": "Invalid status code: 413"}, FailureClass.INVALID_REQUEST),
        ({"error": "x", "error_type": "runner_disconnected"}, FailureClass.UPSTREAM_FAULT),
        ({"error": "Invalid status code: 500"}, FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_completed_with_an_error_has_failed(
    fal: Asker, status: dict[str, Any], failure_class: FailureClass
) -> None:
    update = await looks(fal, {"status": "COMPLETED", **status})
    assert update.failure is not None
    assert update.failure.failure_class is failure_class
    assert len(fal.upstream.asked) == 1


@pytest.mark.parametrize(
    ("http", "body", "failure_class"),
    [
        (422, model_error("content_policy_violation"), FailureClass.CONTENT_BLOCKED),
        (422, model_error("value_error.missing"), FailureClass.INVALID_REQUEST),
        (422, {"detail": "the picture cannot be read"}, FailureClass.INVALID_REQUEST),
        (400, model_error("downstream_service_error"), FailureClass.UPSTREAM_FAULT),
        (400, {"detail": "the picture cannot be read"}, FailureClass.INVALID_REQUEST),
        (500, model_error("internal_server_error"), FailureClass.UPSTREAM_FAULT),
        (504, model_error("generation_timeout"), FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_the_result_call_of_a_failed_attempt_says_why(
    fal: Asker, http: int, body: Any, failure_class: FailureClass
) -> None:
    quoted = f"Invalid status code: {400 if http == 400 else 422}"
    completed = {"status": "COMPLETED", "error": quoted, "error_type": "bad_request"}
    update = await looks(fal, completed, body, http)
    assert update.failure is not None
    assert update.failure.failure_class is failure_class
    assert update.provider_ref in (None, "r1")


@pytest.mark.parametrize(
    ("http", "body"),
    [
        (400, {"detail": "Request is still in progress"}),
        (404, {"detail": "not found"}),
        (502, HTML),
        (503, platform_error("internal_error")),
    ],
)
async def test_another_error_of_the_result_call_says_nothing(fal: Asker, http: int, body: Any) -> None:
    fal.upstream.answers(200, {"status": "COMPLETED"})
    assert await fal.poll_fails(http, body) == "nothing"


@pytest.mark.parametrize(
    ("http", "body", "headers", "word"),
    [
        (422, model_error("content_policy_violation"), {}, REFUSED_CONTENT),
        (422, {"detail": "flagged"}, {"X-Fal-Error-Type": "content_policy_violation"}, REFUSED_CONTENT),
        (422, model_error("value_error.missing"), {}, REFUSED_INPUT),
        (404, {"detail": "no such app"}, {}, REFUSED_INPUT),
        (401, {"detail": "invalid key credentials"}, {}, BAD_KEY),
        (403, {"detail": "User is locked. Reason: Admin lock."}, {}, BAD_KEY),
        (403, {"detail": "User is locked. Reason: Exhausted balance. Top up."}, {}, NO_MONEY),
        (403, {"detail": "User is locked. Reason: TOP_UP."}, {}, NO_MONEY),
        (429, {"detail": "slow down"}, {"Retry-After": "3"}, TOO_FAST),
        (429, platform_error("concurrent_requests_limit"), {}, TOO_FAST),
        (429, {}, {"X-Fal-Error-Type": "concurrent_requests_limit"}, TOO_FAST),
        (503, platform_error("runner_scheduling_failure"), {}, REFUSED_FAULT),
        (500, {"detail": "x"}, {"X-Fal-Error-Type": "internal_error"}, REFUSED_FAULT),
        (504, platform_error("request_timeout"), {}, REFUSED_FAULT),
        (500, {"detail": "Internal Server Error"}, {}, "uncertain"),
        (499, platform_error("client_disconnected"), {}, "uncertain"),
        (429, HTML, {}, "uncertain"),
        (502, HTML, {}, "uncertain"),
    ],
)
async def test_what_an_answered_submit_comes_to(
    fal: Asker, http: int, body: Any, headers: dict[str, str], word: str
) -> None:
    assert await fal.refuses(http, body, headers) == word


@pytest.mark.parametrize(
    ("http", "word", "is_canceled"),
    [
        (200, "OK", True),
        (202, "CANCELLATION_REQUESTED", False),
        (400, "ALREADY_COMPLETED", False),
        (404, "NOT_FOUND", False),
    ],
)
async def test_a_cancel_is_confirmed_only_out_of_the_line(
    fal: Asker, http: int, word: str, is_canceled: bool
) -> None:
    fal.upstream.answers(http, {"status": word})
    assert await fal.provider.cancel(fal.attempt("r1")) is is_canceled
    asked = fal.upstream.asked[0]
    assert (asked.method, asked.path) == ("PUT", "/fal-ai/flux/requests/r1/cancel")


def signed(key: Ed25519PrivateKey, raw: bytes, **changes: bytes) -> list[tuple[bytes, bytes]]:
    """The headers of a callback as fal makes them: four lines, signed, in hex."""
    values = {"at": b"%d" % time.time(), "user": b"u1", **changes}
    lines = (b"r1", values["user"], values["at"], hashlib.sha256(raw).hexdigest().encode())
    return [
        (b"x-fal-webhook-request-id", b"r1"),
        (b"x-fal-webhook-user-id", b"u1"),
        (b"x-fal-webhook-timestamp", values["at"]),
        (b"x-fal-webhook-signature", key.sign(b"\n".join(lines)).hex().encode()),
    ]


async def test_a_callback_is_believed_if_one_of_fals_keys_has_signed_it(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    other, key = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    points = [base64.urlsafe_b64encode(one.public_key().public_bytes_raw()) for one in (other, key)]
    keys = [{"kty": "OKP", "crv": "Ed25519", "x": point.decode().rstrip("=")} for point in points]
    upstream.answers(200, {"keys": keys})
    provider = DeclaredProvider(
        packaged_declaration("fal"),
        credentials={"api_key": SecretStr(KEY)},
        session=session,
        jwks_url=f"{upstream.base_url}/.well-known/jwks.json",
    )
    raw = json.dumps({"request_id": "r1", "status": "OK", "payload": PICTURES}).encode()
    await provider.verify_callback(signed(key, raw), raw)
    assert provider.capabilities.trust is Trust.BODY
    stale = b"%d" % (time.time() - 400)
    for headers, body in (
        (signed(key, raw), raw + b" "),
        (signed(key, raw, user=b"u2"), raw),
        (signed(key, raw, at=stale), raw),
        (signed(Ed25519PrivateKey.generate(), raw), raw),
        ([], raw),
    ):
        with pytest.raises(CallbackRejected):
            await provider.verify_callback(headers, body)


@pytest.mark.parametrize(
    ("changes", "status", "failure_class"),
    [
        ({"status": "OK", "payload": PICTURES}, UpdateStatus.SUCCEEDED, None),
        ({"status": "OK", "payload": None, "payload_error": "not JSON"}, UpdateStatus.SUCCEEDED, None),
        (
            {"status": "OK", "payload": {**PICTURES, "has_nsfw_concepts": [True]}},
            UpdateStatus.BLOCKED,
            FailureClass.CONTENT_BLOCKED,
        ),
        (
            {"status": "ERROR", "payload": model_error("content_policy_violation")},
            UpdateStatus.BLOCKED,
            FailureClass.CONTENT_BLOCKED,
        ),
        (
            {
                "status": "ERROR",
                "error": "Invalid status code: 422",
                "payload": model_error("image_too_small"),
            },
            UpdateStatus.FAILED,
            FailureClass.INVALID_REQUEST,
        ),
        (
            {"status": "ERROR", "error": "Invalid status code: 422", "payload": {"detail": "no"}},
            UpdateStatus.FAILED,
            FailureClass.INVALID_REQUEST,
        ),
        (
            {"status": "ERROR", "error": "Invalid status code: 500", "payload": {"detail": "boom"}},
            UpdateStatus.FAILED,
            FailureClass.UPSTREAM_FAULT,
        ),
    ],
)
async def test_what_a_callback_says(
    fal: Asker, changes: dict[str, Any], status: UpdateStatus, failure_class: FailureClass | None
) -> None:
    raw = json.dumps({"request_id": "r1", "gateway_request_id": "g9", **changes}).encode()
    update = fal.provider.read_callback(raw)
    assert (update.provider_ref, update.status) == ("r1", status)
    assert (update.failure.failure_class if update.failure else None) is failure_class
    assert bool(update.outputs) is (status is UpdateStatus.SUCCEEDED and changes["payload"] is not None)
