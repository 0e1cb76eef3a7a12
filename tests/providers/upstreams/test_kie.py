"""Kie.ai: the verdict in the code of a 200, the result as text inside JSON, a proof that spares the body."""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import Trust, UpdateStatus
from safelight.errors import CallbackRejected
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
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

SECRET = "canary-callback-33cc"
TAKEN = {"code": 200, "msg": "success", "data": {"taskId": "j1"}}


def record(state: str, code: int = 200, **more: Any) -> dict[str, Any]:
    held = {"taskId": "j1", "state": state, "param": '{"input":{}}', "resultJson": "", "failCode": ""}
    return {"code": code, "message": "success", "data": {**held, **more}}


@pytest.fixture
def kie(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    return Asker("kie", session, upstream, credentials={"api_key": KEY, "callback_secret": SECRET})


async def test_a_submit_holds_the_wishes_in_its_input(kie: Asker) -> None:
    wishes = {"aspect_ratio": "1:1", "options": {"resolution": "1K", "output_format": "png"}}
    update = await kie.submits(200, TAKEN, callback_url=kie.callback_url, **wishes)
    asked = kie.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/api/v1/jobs/createTask")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "nano-banana-2",
        "callBackUrl": kie.callback_url,
        "input": {"prompt": "a fox", "aspect_ratio": "1:1", "resolution": "1K", "output_format": "png"},
    }
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "j1")


async def test_an_edit_names_addresses(kie: Asker) -> None:
    body = await kie.sends(200, TAKEN, operation="edit", images=[PNG])
    assert body["input"]["image_urls"] == ["https://shop.example/inputs/1.png"]


@pytest.mark.parametrize(
    ("word", "status"),
    [("waiting", "queued"), ("queuing", "queued"), ("generating", "running"), ("resting", "running")],
)
async def test_a_look_reads_the_state(kie: Asker, word: str, status: str) -> None:
    assert (await kie.polls(200, record(word))).status == status
    asked = kie.upstream.asked[0]
    assert (asked.path, asked.query) == ("/api/v1/jobs/recordInfo", {"taskId": "j1"})


async def test_the_result_is_read_out_of_its_text(kie: Asker) -> None:
    told = json.dumps({"resultUrls": ["https://k/1", "https://k/2"]})
    update = await kie.polls(200, record("success", resultJson=told))
    assert urls_of(update) == ["https://k/1", "https://k/2"]


@pytest.mark.parametrize(
    ("code", "text", "failure_class"),
    [
        ("400", "no", FailureClass.CONTENT_BLOCKED),
        ("500", "Your prompt was flagged as NSFW", FailureClass.CONTENT_BLOCKED),
        ("422", "bad ratio", FailureClass.INVALID_REQUEST),
        ("451", "download failed", FailureClass.INVALID_REQUEST),
        ("501", "failed", FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_a_failed_task_says_why(kie: Asker, code: str, text: str, failure_class: FailureClass) -> None:
    update = await kie.polls(200, record("fail", failCode=code, failMsg=text))
    assert update.failure is not None
    assert update.failure.failure_class is failure_class


async def test_a_failed_task_is_read_although_the_outer_code_repeats_it(kie: Asker) -> None:
    update = await kie.polls(200, record("fail", code=501, failCode="501", failMsg="failed"))
    assert update.status is UpdateStatus.FAILED


@pytest.mark.parametrize("http", [200, 0])
@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (401, BAD_KEY),
        (402, NO_MONEY),
        (429, TOO_FAST),
        (400, REFUSED_INPUT),
        (422, REFUSED_INPUT),
        (455, REFUSED_FAULT),
        (500, REFUSED_FAULT),
        (505, REFUSED_FAULT),
    ],
)
async def test_what_a_refusal_means_in_a_200_and_by_its_own_status(
    kie: Asker, http: int, code: int, outcome: str
) -> None:
    told = {"code": code, "msg": "its words", "data": None}
    assert await kie.refuses(http or code, told) == outcome


async def test_moderation_is_known_by_its_words(kie: Asker) -> None:
    assert await kie.refuses(200, {"code": 422, "msg": "content policy violation"}) == REFUSED_CONTENT


async def test_an_acceptance_is_no_refusal_whatever_its_words(kie: Asker) -> None:
    assert await kie.refuses(200, {**TAKEN, "msg": "passed moderation"}) == "accepted"


@pytest.mark.parametrize(
    ("status", "body"), [(502, HTML), (500, b""), (200, HTML), (200, {"code": 499, "msg": "?"})]
)
async def test_what_is_not_documented_leaves_a_submit_open(kie: Asker, status: int, body: Any) -> None:
    assert await kie.refuses(status, body) == "uncertain"


@pytest.mark.parametrize(("code", "word"), [(404, "nothing"), (500, "nothing"), (401, BAD_KEY)])
async def test_an_error_never_ends_a_task(kie: Asker, code: int, word: str) -> None:
    assert await kie.poll_fails(200, {"code": code, "msg": "its words", "data": None}) == word


def signed(task: str, moment: int) -> list[tuple[bytes, bytes]]:
    digest = hmac.digest(SECRET.encode(), f"{task}.{moment}".encode(), "sha256")
    return [
        (b"x-webhook-timestamp", str(moment).encode()),
        (b"x-webhook-signature", base64.b64encode(digest)),
    ]


@pytest.mark.parametrize("body", [{"data": {"taskId": "j1"}}, {"data": {"task_id": "j1"}}, {"taskId": "j1"}])
async def test_a_callback_is_signed_over_its_id_and_time(kie: Asker, body: Any) -> None:
    raw = json.dumps(body).encode()
    await kie.provider.verify_callback(signed("j1", int(time.time())), raw)


@pytest.mark.parametrize(("task", "ago_s", "reason"), [("j2", 0, "signature_wrong"), ("j1", 400, "stale")])
async def test_a_callback_about_another_task_or_time_is_refused(
    kie: Asker, task: str, ago_s: int, reason: str
) -> None:
    with pytest.raises(CallbackRejected, match=reason):
        await kie.provider.verify_callback(signed(task, int(time.time()) - ago_s), b'{"taskId": "j1"}')


def test_a_callback_is_never_believed_since_its_body_is_not_covered(kie: Asker) -> None:
    assert kie.provider.capabilities.trust is Trust.HINT
