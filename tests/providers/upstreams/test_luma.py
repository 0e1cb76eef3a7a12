"""Luma Dream Machine: pictures by address, unsigned callbacks, a list by offset."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import Trust, UpdateStatus
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

SINCE = datetime(2026, 11, 20, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=1)
URL = "https://storage.cdn-luma.com/dream_machine/1.jpg"


def generation(**changes: Any) -> dict[str, Any]:
    record = {
        "id": "l1",
        "generation_type": "image",
        "state": "queued",
        "failure_reason": None,
        "created_at": "2026-11-20T10:00:00Z",
        "assets": None,
        "request": {"prompt": "a fox"},
    }
    return {**record, **changes}


@pytest.fixture
def luma(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    """Luma, asked for Photon."""
    return Asker("luma", session, upstream)


async def test_a_submit_carries_our_address(luma: Asker) -> None:
    update = await luma.submits(
        201,
        generation(),
        aspect_ratio="16:9",
        options={"output_format": "png"},
        callback_url=luma.callback_url,
    )
    asked = luma.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/generations/image")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "photon-1",
        "prompt": "a fox",
        "aspect_ratio": "16:9",
        "format": "png",
        "callback_url": luma.callback_url,
    }
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "l1")


async def test_the_first_picture_is_changed_and_the_others_are_examples(luma: Asker) -> None:
    third = replace(PNG, url="https://shop.example/inputs/3.png")
    sent = await luma.sends(201, generation(), operation="edit", images=[PNG, JPEG, third])
    assert sent == {
        "model": "photon-1",
        "prompt": "a fox",
        "modify_image_ref": {"url": PNG.url},
        "image_ref": [{"url": JPEG.url}, {"url": third.url}],
    }
    capabilities = luma.provider.capabilities
    assert (capabilities.needs_image_urls, capabilities.needs_image_data) == (True, False)


@pytest.mark.parametrize(
    ("changes", "status", "failure_class"),
    [
        ({"state": "queued"}, UpdateStatus.QUEUED, None),
        ({"state": "dreaming"}, UpdateStatus.RUNNING, None),
        ({"state": "nodding off"}, UpdateStatus.RUNNING, None),
        ({"state": "completed", "assets": {"image": URL, "video": None}}, UpdateStatus.SUCCEEDED, None),
        ({"state": "failed"}, UpdateStatus.FAILED, FailureClass.UPSTREAM_FAULT),
        (
            {
                "state": "failed",
                "failure_reason": "400: prompt not allowed because advanced moderation failed",
            },
            UpdateStatus.BLOCKED,
            FailureClass.CONTENT_BLOCKED,
        ),
    ],
)
async def test_what_a_look_says(
    luma: Asker, changes: dict[str, Any], status: UpdateStatus, failure_class: FailureClass | None
) -> None:
    update = await luma.polls(200, generation(**changes), "l1")
    assert luma.upstream.asked[0].path == "/generations/l1"
    assert (update.status, urls_of(update)) == (status, [URL] if changes.get("assets") else [])
    assert (update.failure.failure_class if update.failure else None) is failure_class


@pytest.mark.parametrize(
    ("http", "body", "word"),
    [
        (400, {"detail": "Invalid aspect ratio"}, REFUSED_INPUT),
        (422, {"detail": [{"msg": "field required"}]}, REFUSED_INPUT),
        (400, {"detail": "prompt not allowed because advanced moderation failed"}, REFUSED_CONTENT),
        (400, {"detail": "Insufficient credits"}, NO_MONEY),
        (403, {"detail": "Not authenticated"}, BAD_KEY),
        (429, {"detail": "Too many requests"}, TOO_FAST),
        (400, {"reason": "a shape that nobody has described"}, "uncertain"),
        (500, {"detail": "Internal Server Error"}, "uncertain"),
        (502, HTML, "uncertain"),
    ],
)
async def test_what_an_answered_submit_comes_to(luma: Asker, http: int, body: Any, word: str) -> None:
    assert await luma.refuses(http, body) == word


async def test_an_unsigned_callback_is_a_hint(luma: Asker) -> None:
    raw = json.dumps(generation(state="completed", assets={"image": URL})).encode()
    await luma.provider.verify_callback([], raw)
    assert luma.provider.read_callback(raw).provider_ref == "l1"
    assert luma.provider.capabilities.trust is Trust.HINT


async def test_a_list_goes_by_offset_through_all_there_is(luma: Asker) -> None:
    early = generation(id="l2", created_at="2026-11-01T00:00:00Z")
    luma.upstream.answers(200, {"generations": [early, generation()], "has_more": True, "count": 2})
    luma.upstream.answers(200, {"generations": [generation(id="l3")], "has_more": False, "count": 1})
    first = await luma.provider.list_records(SINCE, UNTIL, None)
    last = await luma.provider.list_records(SINCE, UNTIL, first.next_cursor)
    assert [line.provider_ref for line in (*first.records, *last.records)] == ["l1", "l3"]
    assert (first.next_cursor, last.next_cursor) == ("2", None)
    assert [asked.query for asked in luma.upstream.asked] == [
        {"limit": "100", "offset": "0"},
        {"limit": "100", "offset": "2"},
    ]


async def test_a_delete_is_no_cancel(luma: Asker) -> None:
    assert not luma.provider.capabilities.can_cancel
