"""PiAPI: a task type per operation, states in mixed case, our own secret back in a header."""

from __future__ import annotations

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
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

SECRET = "canary-callback-33cc"


def record(status: str, **more: Any) -> dict[str, Any]:
    told = {"task_id": "j1", "status": status, "output": None, "error": {"code": 0, "message": ""}}
    return {"code": 200, "message": "success", "data": {**told, **more}}


@pytest.fixture
def piapi(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    return Asker("piapi", session, upstream, credentials={"api_key": KEY, "callback_secret": SECRET})


async def test_a_submit_names_model_and_task_type(piapi: Asker) -> None:
    wishes = {"n": 2, "size": "768x1024", "options": {"guidance_scale": 2.5}}
    update = await piapi.submits(200, record("Pending"), callback_url=piapi.callback_url, **wishes)
    asked = piapi.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/api/v1/task")
    assert asked.headers["x-api-key"] == KEY
    assert asked.body == {
        "model": "Qubico/flux1-schnell",
        "task_type": "txt2img",
        "input": {
            "prompt": "a fox",
            "guidance_scale": 2.5,
            "width": 768,
            "height": 1024,
            "batch_size": 2,
        },
        "config": {"webhook_config": {"endpoint": piapi.callback_url, "secret": SECRET}},
    }
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "j1")


async def test_an_edit_is_another_task_type(piapi: Asker) -> None:
    body = await piapi.sends(200, record("pending"), operation="edit", images=[PNG], options={"denoise": 0.4})
    assert body["task_type"] == "img2img"
    assert body["input"] == {
        "prompt": "a fox",
        "denoise": 0.4,
        "image": "https://shop.example/inputs/1.png",
        "batch_size": 1,
    }


async def test_an_acceptance_may_leave_its_state_empty(piapi: Asker) -> None:
    assert (await piapi.submits(200, record(""))).status is UpdateStatus.QUEUED


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("Pending", "queued"),
        ("staged", "queued"),
        ("Processing", "running"),
        ("COMPLETED", "succeeded"),
        ("Failed", "failed"),
        ("retrying", "running"),
    ],
)
async def test_the_case_of_a_state_does_not_count(piapi: Asker, word: str, status: str) -> None:
    update = await piapi.polls(200, record(word, output={"image_url": "https://p/1"}))
    assert update.status == status
    assert piapi.upstream.asked[0].path == "/api/v1/task/j1"


@pytest.mark.parametrize(
    ("output", "urls"),
    [
        ({"image_url": "https://p/1"}, ["https://p/1"]),
        ({"image_url": "https://p/1", "image_urls": []}, ["https://p/1"]),
        (
            {"image_url": "https://p/1", "image_urls": ["https://p/1", "https://p/2"]},
            ["https://p/1", "https://p/2"],
        ),
    ],
)
async def test_one_picture_or_several(piapi: Asker, output: Any, urls: list[str]) -> None:
    update = await piapi.polls(200, record("completed", output=output, meta={"usage": {"consume": 20000}}))
    assert urls_of(update) == urls
    assert update.cost == 20000


@pytest.mark.parametrize(
    ("text", "failure_class"),
    [("model trouble", FailureClass.UPSTREAM_FAULT), ("NSFW content found", FailureClass.CONTENT_BLOCKED)],
)
async def test_a_failed_task_says_why(piapi: Asker, text: str, failure_class: FailureClass) -> None:
    update = await piapi.polls(200, record("failed", error={"code": 1100, "message": text}))
    assert update.failure is not None
    assert update.failure.failure_class is failure_class


@pytest.mark.parametrize("in_body", [True, False])
@pytest.mark.parametrize(
    ("code", "outcome"),
    [(400, REFUSED_INPUT), (401, BAD_KEY), (402, NO_MONEY), (429, TOO_FAST), (500, "uncertain")],
)
async def test_what_a_refusal_means(piapi: Asker, in_body: bool, code: int, outcome: str) -> None:
    told = {"code": code, "message": "its words", "data": None}
    assert await piapi.refuses(200 if in_body else code, told) == outcome


@pytest.mark.parametrize(
    ("text", "outcome"), [("insufficient credits", NO_MONEY), ("prompt is banned", REFUSED_CONTENT)]
)
async def test_money_and_moderation_are_known_by_their_words(piapi: Asker, text: str, outcome: str) -> None:
    told = {"code": 400, "message": "failed", "data": {"error": {"message": text}}}
    assert await piapi.refuses(400, told) == outcome


async def test_a_gateways_page_leaves_a_submit_open(piapi: Asker) -> None:
    assert await piapi.refuses(502, HTML) == "uncertain"


async def test_an_error_never_ends_a_task(piapi: Asker) -> None:
    assert await piapi.poll_fails(404, {"code": 404, "message": "no such task"}) == "nothing"


async def test_a_callback_shows_our_secret_and_remains_a_hint(piapi: Asker) -> None:
    await piapi.provider.verify_callback([(b"x-webhook-secret", SECRET.encode())], b"{}")
    assert piapi.provider.capabilities.trust is Trust.HINT
    for headers in ([], [(b"x-webhook-secret", b"guessed")]):
        with pytest.raises(CallbackRejected):
            await piapi.provider.verify_callback(headers, b"{}")


async def test_without_a_secret_none_is_asked_for(upstream: Upstream, session: aiohttp.ClientSession) -> None:
    piapi = Asker("piapi", session, upstream)
    body = await piapi.sends(200, record("pending"), callback_url=piapi.callback_url)
    assert body["config"] == {"webhook_config": {"endpoint": piapi.callback_url}}
    await piapi.provider.verify_callback([], b"{}")
