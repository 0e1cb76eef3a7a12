"""APIMart: answers that are lists, pictures that are lists of lists."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import UpdateStatus
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

TAKEN = {"code": 200, "data": [{"status": "submitted", "task_id": "j1"}]}


def record(status: str, **more: Any) -> dict[str, Any]:
    return {"code": 200, "data": {"id": "another-form-of-j1", "status": status, "progress": 40, **more}}


@pytest.fixture
def apimart(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    return Asker("apimart", session, upstream)


async def test_a_submit_gives_a_ratio_as_its_size(apimart: Asker) -> None:
    await apimart.submits(200, TAKEN, aspect_ratio="16:9", images=[PNG], options={"resolution": "2k"})
    asked = apimart.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/v1/images/generations")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "gpt-image-2",
        "prompt": "a fox",
        "size": "16:9",
        "resolution": "2k",
        "image_urls": ["https://shop.example/inputs/1.png"],
    }


@pytest.mark.parametrize(
    "data",
    [
        [{"status": "submitted", "task_id": "j1"}],
        {"status": "submitted", "task_id": "j1"},
        {"id": "j1", "status": "pending", "progress": 0},
    ],
)
async def test_an_acceptance_is_a_list_or_one_record(apimart: Asker, data: Any) -> None:
    update = await apimart.submits(200, {"code": 200, "data": data})
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "j1")


@pytest.mark.parametrize(
    ("word", "status"),
    [("submitted", "queued"), ("pending", "queued"), ("processing", "running"), ("cancelled", "canceled")],
)
async def test_a_look_reads_state_and_progress(apimart: Asker, word: str, status: str) -> None:
    update = await apimart.polls(200, record(word))
    assert (update.status, update.percent) == (status, 40)
    asked = apimart.upstream.asked[0]
    assert (asked.path, asked.query) == ("/v1/tasks/j1", {"language": "en"})


@pytest.mark.parametrize(
    ("images", "urls"),
    [
        ([{"url": ["https://a/1", "https://a/2"]}, {"url": ["https://a/3"]}], ["1", "2", "3"]),
        ([{"url": "https://a/1"}], ["1"]),
    ],
)
async def test_addresses_lie_in_lists_or_alone(apimart: Asker, images: Any, urls: list[str]) -> None:
    done = record("completed", result={"images": images}, actual_time=19, cost=0.006)
    update = await apimart.polls(200, done)
    assert urls_of(update) == [f"https://a/{url}" for url in urls]
    assert (update.run_s, update.cost) == (19, 0.006)


@pytest.mark.parametrize(
    ("text", "failure_class"),
    [
        ("upstream trouble", FailureClass.UPSTREAM_FAULT),
        ("blocked by content policy", FailureClass.CONTENT_BLOCKED),
    ],
)
async def test_a_failed_task_says_why(apimart: Asker, text: str, failure_class: FailureClass) -> None:
    update = await apimart.polls(200, record("failed", error={"message": text}))
    assert update.failure is not None
    assert update.failure.failure_class is failure_class


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (400, 400, REFUSED_INPUT),
        (401, 401, BAD_KEY),
        (402, 402, NO_MONEY),
        (403, 403, BAD_KEY),
        (429, 429, TOO_FAST),
        (200, 400, REFUSED_INPUT),
        (200, 401, BAD_KEY),
        (200, 402, NO_MONEY),
        (200, 429, TOO_FAST),
        (200, 500, "uncertain"),
        (500, 500, "uncertain"),
    ],
)
async def test_what_a_refusal_means(apimart: Asker, status: int, code: int, outcome: str) -> None:
    assert await apimart.refuses(status, {"error": {"code": code, "message": "its words"}}) == outcome


async def test_moderation_is_known_by_its_words(apimart: Asker) -> None:
    told = {"error": {"code": 400, "message": "The prompt violates the safety rules"}}
    assert await apimart.refuses(400, told) == REFUSED_CONTENT


async def test_a_gateways_page_leaves_a_submit_open(apimart: Asker) -> None:
    assert await apimart.refuses(502, HTML) == "uncertain"


async def test_an_error_never_ends_a_task(apimart: Asker) -> None:
    assert await apimart.poll_fails(404, {"error": {"code": 404, "message": "no such task"}}) == "nothing"
