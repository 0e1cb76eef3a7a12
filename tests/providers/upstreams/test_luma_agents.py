"""Luma Agents: pictures in base64 with their type, failures with a code, addresses for an hour."""

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
    JPEG,
    JPEG_BASE64,
    KEY,
    NO_MONEY,
    PNG,
    PNG_BASE64,
    REFUSED_CONTENT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

URL = "https://storage.example/generations/a1/output.png?X-Amz-Expires=3600"


def generation(**changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": "a1",
        "type": "image",
        "state": "queued",
        "model": "uni-1",
        "created_at": "2026-11-20T10:00:00Z",
        "output": [],
        "failure_reason": None,
        "failure_code": None,
    }
    return {**record, **changes}


@pytest.fixture
def agents(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    """Luma Agents, asked for uni-1."""
    return Asker("luma-agents", session, upstream)


async def test_a_submit_sends_only_what_was_asked_for(agents: Asker) -> None:
    options = {"style": "manga", "web_search": False, "output_format": "png"}
    update = await agents.submits(201, generation(), aspect_ratio="3:1", options=options)
    asked = agents.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/generations")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    wanted = {"model": "uni-1", "type": "image", "prompt": "a fox", "aspect_ratio": "3:1", **options}
    assert asked.body == wanted
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "a1")


async def test_an_edit_has_a_source_and_references(agents: Asker) -> None:
    sent = await agents.sends(201, generation(), operation="edit", images=[PNG, JPEG])
    assert sent == {
        "model": "uni-1",
        "type": "image_edit",
        "prompt": "a fox",
        "source": {"data": PNG_BASE64, "media_type": "image/png"},
        "image_ref": [{"data": JPEG_BASE64, "media_type": "image/jpeg"}],
    }


@pytest.mark.parametrize(
    ("changes", "status", "failure_class"),
    [
        ({"state": "processing"}, UpdateStatus.RUNNING, None),
        ({"state": "completed", "output": [{"type": "image", "url": URL}]}, UpdateStatus.SUCCEEDED, None),
        ({"state": "failed", "failure_code": "content_moderated"}, UpdateStatus.BLOCKED, "content_blocked"),
        ({"state": "failed", "failure_code": "generation_failed"}, UpdateStatus.FAILED, "upstream_fault"),
        ({"state": "failed", "failure_code": "budget_exhausted"}, UpdateStatus.FAILED, "upstream_fault"),
        ({"state": "failed", "failure_code": "output_not_found"}, UpdateStatus.FAILED, "upstream_fault"),
    ],
)
async def test_what_a_look_says(
    agents: Asker, changes: dict[str, Any], status: UpdateStatus, failure_class: str | None
) -> None:
    update = await agents.polls(200, generation(**changes), "a1")
    assert agents.upstream.asked[0].path == "/generations/a1"
    assert (update.status, urls_of(update)) == (status, [URL] if "output" in changes else [])
    found = update.failure.failure_class if update.failure else None
    assert found == (FailureClass(failure_class) if failure_class else None)


@pytest.mark.parametrize(
    ("http", "body", "word"),
    [
        (422, {"detail": "prompt too long"}, REFUSED_INPUT),
        (400, {"error": {"code": "content_moderated", "message": "no"}}, REFUSED_CONTENT),
        (403, {"code": "budget_exhausted", "message": "no"}, NO_MONEY),
        (402, {"detail": "pay first"}, NO_MONEY),
        (401, {"detail": "bad key"}, BAD_KEY),
        (429, {"detail": "slow down"}, TOO_FAST),
        (400, {"reason": "a shape that nobody has described"}, "uncertain"),
        (500, {"detail": "Internal Server Error"}, "uncertain"),
        (502, HTML, "uncertain"),
    ],
)
async def test_what_an_answered_submit_comes_to(agents: Asker, http: int, body: Any, word: str) -> None:
    assert await agents.refuses(http, body) == word


async def test_results_live_an_hour(agents: Asker) -> None:
    assert agents.provider.capabilities.result_lifetime_s == 3600
