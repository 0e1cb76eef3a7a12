"""Runway: a version in every call, ratios in pixels, costs of failures, a cancel that ends with 204."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import UpdateStatus
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    KEY,
    NO_MONEY,
    PNG,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

URL = "https://dnznrvs05pmza.cloudfront.net/1.png?_jwt=abc"


def task(status: str, **changes: Any) -> dict[str, Any]:
    return {"id": "w1", "status": status, "createdAt": "2026-11-20T10:00:00Z", **changes}


@pytest.fixture
def runway(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    """Runway, asked for Gen-4 Image."""
    return Asker("runway", session, upstream)


@pytest.mark.parametrize(
    ("wishes", "ratio"),
    [
        ({}, "1024:1024"),
        ({"size": "1920x1080"}, "1920:1080"),
        ({"aspect_ratio": "9:16"}, "1080:1920"),
    ],
)
async def test_a_ratio_is_always_sent_in_pixels(runway: Asker, wishes: Any, ratio: str) -> None:
    sent = await runway.sends(200, {"id": "w1", "estimatedCost": {"credits": 8}}, **wishes)
    asked = runway.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/v1/text_to_image")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["x-runway-version"] == "2024-11-06"
    assert sent == {"model": "gen4_image", "promptText": "a fox", "ratio": ratio}


async def test_an_edit_is_a_prompt_with_references(runway: Asker) -> None:
    images = [PNG, replace(JPEG, url=None)]
    sent = await runway.sends(200, {"id": "w1"}, operation="edit", images=images, options={"seed": 7})
    assert sent["referenceImages"] == [{"uri": PNG.url}, {"uri": "data:image/jpeg;base64,anBlZy1ieXRlcw=="}]
    assert sent["seed"] == 7


async def test_a_model_without_a_seed_is_sent_none(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    gemini = Asker("runway", session, upstream, model="gemini_image3_pro")
    sent = await gemini.sends(200, {"id": "w1"}, size="1344x768", options={"seed": 7})
    assert sent == {"model": "gemini_image3_pro", "promptText": "a fox", "ratio": "1344:768"}


@pytest.mark.parametrize(
    ("body", "status", "cost"),
    [
        (task("PENDING", estimatedCost={"credits": 8}), UpdateStatus.QUEUED, None),
        (task("THROTTLED", estimatedCost={"credits": 8}), UpdateStatus.QUEUED, None),
        (task("RUNNING", progress=0.25), UpdateStatus.RUNNING, None),
        (task("SOMETHING_NEW"), UpdateStatus.RUNNING, None),
        (task("SUCCEEDED", output=[URL], cost={"credits": 8}), UpdateStatus.SUCCEEDED, 8.0),
        (task("FAILED", failure="x", failureCode="INTERNAL", cost={"credits": 0}), UpdateStatus.FAILED, 0.0),
        (task("CANCELLED", cost={"credits": 3}), UpdateStatus.CANCELED, 3.0),
    ],
)
async def test_what_a_look_says(
    runway: Asker, body: dict[str, Any], status: UpdateStatus, cost: float | None
) -> None:
    update = await runway.polls(200, body, "w1")
    asked = runway.upstream.asked[0]
    assert (asked.path, asked.headers["x-runway-version"]) == ("/v1/tasks/w1", "2024-11-06")
    assert (update.status, update.cost) == (status, cost)
    assert urls_of(update) == ([URL] if status is UpdateStatus.SUCCEEDED else [])
    assert update.percent == (25 if "progress" in body else None)


@pytest.mark.parametrize(
    ("code", "failure_class"),
    [
        ("SAFETY.INPUT.TEXT", FailureClass.CONTENT_BLOCKED),
        ("SAFETY.OUTPUT.IMAGE", FailureClass.CONTENT_BLOCKED),
        ("INPUT_PREPROCESSING.SAFETY.TEXT", FailureClass.CONTENT_BLOCKED),
        ("INPUT_PREPROCESSING.SAFETY.THIRD_PARTY", FailureClass.CONTENT_BLOCKED),
        ("ASSET.INVALID", FailureClass.INVALID_REQUEST),
        ("INPUT_PREPROCESSING.INTERNAL", FailureClass.UPSTREAM_FAULT),
        ("INTERNAL.BAD_OUTPUT.CODE01", FailureClass.UPSTREAM_FAULT),
        ("THIRD_PARTY.UNAVAILABLE", FailureClass.UPSTREAM_FAULT),
        (None, FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_a_failure_has_a_code(runway: Asker, code: str | None, failure_class: FailureClass) -> None:
    update = await runway.polls(200, task("FAILED", failure="its words", failureCode=code), "w1")
    assert update.failure is not None
    assert (update.failure.failure_class, update.excerpt) == (failure_class, "its words")


@pytest.mark.parametrize(
    ("http", "body", "word"),
    [
        (400, {"error": "Validation of body failed", "issues": []}, REFUSED_INPUT),
        (400, {"error": "You do not have enough credits to run this task."}, NO_MONEY),
        (401, {"error": "Unauthorized"}, BAD_KEY),
        (429, {"error": "Too many"}, TOO_FAST),
        (500, {"error": "Internal"}, "uncertain"),
        (429, HTML, "uncertain"),
        (502, HTML, "uncertain"),
    ],
)
async def test_what_an_answered_submit_comes_to(runway: Asker, http: int, body: Any, word: str) -> None:
    assert await runway.refuses(http, body) == word


async def test_a_delete_is_no_cancel(runway: Asker) -> None:
    # It would destroy what is finished, and its answer does not tell one from the other.
    assert not runway.provider.capabilities.can_cancel


async def test_looks_keep_five_seconds_apart(runway: Asker) -> None:
    capabilities = runway.provider.capabilities
    assert (capabilities.min_poll_gap_s, capabilities.calls_back) == (5.0, False)
