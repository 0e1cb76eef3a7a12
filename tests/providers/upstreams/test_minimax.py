"""MiniMax as declared: what is sent, and what the number inside each answer means."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import UpdateStatus
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    NO_MONEY,
    PNG,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

URLS = ["https://minimax.example/1.jpg", "https://minimax.example/2.jpg"]


def answer(*urls: str, failed: int = 0) -> dict[str, Any]:
    return {
        "id": "03ff3cd0",
        "data": {"image_urls": list(urls)},
        "metadata": {"success_count": str(len(urls)), "failed_count": str(failed)},
        "base_resp": {"status_code": 0, "status_msg": "success"},
    }


def error(code: int) -> dict[str, Any]:
    return {"id": "", "data": None, "base_resp": {"status_code": code, "status_msg": "its words"}}


@pytest.fixture
def asker(session: aiohttp.ClientSession, upstream: Upstream) -> Asker:
    return Asker("minimax", session, upstream)


@pytest.mark.parametrize(
    ("wishes", "sizes"),
    [
        ({"size": "1024x768"}, {"width": 1024, "height": 768}),
        ({"aspect_ratio": "21:9"}, {"aspect_ratio": "21:9"}),
    ],
)
async def test_a_size_is_two_numbers_or_a_ratio(asker: Asker, wishes: Any, sizes: dict[str, Any]) -> None:
    body = await asker.sends(200, answer(*URLS), n=2, options={"prompt_optimizer": True}, **wishes)
    assert body == {
        "model": "image-01",
        "prompt": "a fox",
        "n": 2,
        "prompt_optimizer": True,
        **sizes,
    }
    asked = asker.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/v1/image_generation")
    assert asked.headers["authorization"] == "Bearer canary-key-71f3"


async def test_a_picture_is_a_person_to_draw_again(asker: Asker) -> None:
    body = await asker.sends(200, answer(*URLS), operation="edit", images=[PNG])
    assert body["subject_reference"] == [{"type": "character", "image_file": PNG.url}]


@pytest.mark.parametrize("count", [1, 2])
async def test_the_pictures_that_came_count(asker: Asker, count: int) -> None:
    update = await asker.submits(200, answer(*URLS[:count], failed=2 - count), n=2)
    assert (update.status, urls_of(update), update.cost) == (UpdateStatus.SUCCEEDED, URLS[:count], count)


async def test_a_success_of_which_all_failed_was_filtered(asker: Asker) -> None:
    update = await asker.submits(200, answer(failed=2), n=2)
    assert (update.status, update.failure) == (
        UpdateStatus.BLOCKED,
        Failure(FailureClass.CONTENT_BLOCKED, "content_blocked"),
    )


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (200, error(1002), TOO_FAST),
        (200, error(1039), TOO_FAST),
        (200, error(1004), BAD_KEY),
        (200, error(2038), BAD_KEY),
        (200, error(2049), BAD_KEY),
        (200, error(1008), NO_MONEY),
        (429, error(1008), NO_MONEY),
        (500, error(1008), NO_MONEY),
        (200, error(1026), REFUSED_CONTENT),
        (200, error(1027), REFUSED_CONTENT),
        (200, error(2013), REFUSED_INPUT),
        (200, error(1000), REFUSED_FAULT),
        (200, error(1033), REFUSED_FAULT),
        (200, {"data": {"image_urls": URLS}}, "uncertain"),
        (200, HTML, "uncertain"),
        (502, HTML, "uncertain"),
    ],
)
async def test_the_number_decides_and_not_the_status(asker: Asker, status: int, body: Any, word: str) -> None:
    assert await asker.refuses(status, body) == word
