"""Flux Art: an idempotency key with every submit, points charged and given back, public addresses only."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import AfterUncertain, UpdateStatus
from safelight.errors import ProviderUnavailable
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    KEY,
    NO_MONEY,
    PNG,
    REFUSED_CONTENT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)


def record(status: str, **more: Any) -> dict[str, Any]:
    return {"data": {"id": "j1", "status": status, **more}}


def error(code: str, message: str = "its words") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "details": []}}


@pytest.fixture
def flux(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    return Asker("flux-art", session, upstream)


@pytest.mark.parametrize("status", [201, 200])
async def test_a_submit_has_our_reference_as_its_key(flux: Asker, status: int) -> None:
    update = await flux.submits(status, record("queued"), aspect_ratio="16:9", options={"quality": "high"})
    asked = flux.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/images/generations")
    assert asked.headers["idempotency-key"] == "t1-1"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "gpt-image-2",
        "mode": "generate",
        "prompt": "a fox",
        "count": 1,
        "aspect_ratio": "16:9",
        "quality": "high",
    }
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "j1")


async def test_an_edit_names_public_addresses(flux: Asker) -> None:
    body = await flux.sends(201, record("queued"), operation="edit", images=[PNG, JPEG])
    assert body["mode"] == "edit"
    assert body["image_urls"] == ["https://shop.example/inputs/1.png", "https://shop.example/inputs/2.jpg"]
    capabilities = flux.provider.capabilities
    assert (capabilities.needs_image_urls, capabilities.needs_image_data) == (True, False)


@pytest.mark.parametrize(
    ("word", "status"),
    [("queued", "queued"), ("processing", "running"), ("canceled", "canceled"), ("reviewing", "running")],
)
async def test_a_look_reads_the_state(flux: Asker, word: str, status: str) -> None:
    assert (await flux.polls(200, record(word))).status == status
    assert flux.upstream.asked[0].path == "/tasks/j1"


@pytest.mark.parametrize("output", [["https://f/1"], [{"url": "https://f/1"}]])
async def test_a_finished_task_costs_what_was_charged_less_what_came_back(flux: Asker, output: Any) -> None:
    usage = {"points_charged": 40, "points_refunded": 28}
    update = await flux.polls(200, record("succeeded", output=output, usage=usage))
    assert update.status is UpdateStatus.SUCCEEDED
    assert urls_of(update) == ["https://f/1"]
    assert update.cost == 12


@pytest.mark.parametrize(
    ("told", "failure_class"),
    [
        ({"code": "generation_failed", "message": "model trouble"}, FailureClass.UPSTREAM_FAULT),
        ({"code": "content_moderation", "message": "no"}, FailureClass.CONTENT_BLOCKED),
        ({"message": "Blocked by our content policy"}, FailureClass.CONTENT_BLOCKED),
    ],
)
async def test_why_a_task_has_failed(flux: Asker, told: Any, failure_class: FailureClass) -> None:
    update = await flux.polls(200, record("failed", error=told))
    assert update.failure is not None
    assert update.failure.failure_class is failure_class


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (400, "invalid_request", REFUSED_INPUT),
        (400, "invalid_media_url", REFUSED_INPUT),
        (422, "validation_error", REFUSED_INPUT),
        (401, "invalid_api_key", BAD_KEY),
        (402, "insufficient_points", NO_MONEY),
        (402, "membership_required", NO_MONEY),
        (429, "rate_limit", TOO_FAST),
        (429, "concurrent_limit", TOO_FAST),
        (409, "idempotency_key_reused", "uncertain"),
        (500, "internal_error", "uncertain"),
        (503, "unavailable", "uncertain"),
    ],
)
async def test_what_a_refusal_means(flux: Asker, status: int, code: str, outcome: str) -> None:
    assert await flux.refuses(status, error(code)) == outcome


async def test_moderation_is_known_by_its_words(flux: Asker) -> None:
    told = error("invalid_request", "The prompt violates our content policy")
    assert await flux.refuses(400, told) == REFUSED_CONTENT


async def test_how_long_to_wait_is_heard(flux: Asker) -> None:
    flux.upstream.answers(429, error("rate_limit"), {"Retry-After": "17"})
    with pytest.raises(ProviderUnavailable) as raised:
        await flux.provider.submit(flux.submission())
    assert raised.value.retry_after_s == 17


async def test_a_gateways_page_leaves_a_submit_open_and_the_same_key_may_be_sent_again(flux: Asker) -> None:
    assert await flux.refuses(502, HTML) == "uncertain"
    assert flux.provider.capabilities.after_uncertain is AfterUncertain.SAME_KEY


async def test_a_task_that_is_not_found_has_not_failed(flux: Asker) -> None:
    assert await flux.poll_fails(404, error("task_not_found")) == "nothing"
