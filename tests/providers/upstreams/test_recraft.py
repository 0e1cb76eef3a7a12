"""Recraft as declared: what is sent, and how its plain words are read."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from safelight.domain.provider import InputImage, MaskStyle, UpdateStatus
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    PNG,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)
from tests.providers.upstreams.parts import Part, parts_of

URL = "https://img.recraft.example/1"
DONE = {"created": 1, "credits": 40, "data": [{"url": URL}]}
FILE = ("image", ("image/png", b"png-bytes"))


@pytest.fixture
def asker(session: aiohttp.ClientSession, upstream: Upstream) -> Asker:
    return Asker("recraft", session, upstream, model="recraftv3")


@pytest.mark.parametrize(
    ("wishes", "size"), [({"size": "1536x1024"}, "1536x1024"), ({"aspect_ratio": "16:9"}, "16:9"), ({}, None)]
)
async def test_a_size_is_one_or_a_ratio(asker: Asker, wishes: dict[str, Any], size: str | None) -> None:
    body = await asker.sends(200, DONE, n=2, options={"style": "digital_illustration", "seed": 3}, **wishes)
    assert body.pop("size", None) == size
    assert body == {
        "model": "recraftv3",
        "prompt": "a fox",
        "n": 2,
        "style": "digital_illustration",
        "random_seed": 3,
    }
    asked = asker.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/images/generations")
    assert asked.headers["authorization"] == "Bearer canary-key-71f3"


@pytest.mark.parametrize(
    ("wishes", "path", "parts"),
    [
        ({}, "/images/imageToImage", [FILE, ("strength", "0.5")]),
        ({"options": {"strength": 0.2}}, "/images/imageToImage", [FILE, ("strength", "0.2")]),
        (
            {"mask": InputImage("image/png", b"mask-bytes")},
            "/images/inpaint",
            [FILE, ("mask", ("image/png", b"mask-bytes"))],
        ),
    ],
)
async def test_an_edit_goes_to_the_tool_for_it(
    asker: Asker, wishes: dict[str, Any], path: str, parts: list[Part]
) -> None:
    await asker.submits(200, DONE, operation="edit", images=[PNG], **wishes)
    asked = asker.upstream.asked[0]
    assert asked.path == path
    assert parts_of(asked) == [
        ("model", "recraftv3"),
        ("prompt", "a fox"),
        ("n", "1"),
        *parts,
    ]
    assert asker.provider.capabilities.mask_style is MaskStyle.WHITE


async def test_the_answer_carries_the_addresses(asker: Asker) -> None:
    update = await asker.submits(200, DONE, n=2)
    assert (update.status, urls_of(update), update.cost) == (UpdateStatus.SUCCEEDED, [URL], 40)


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (401, b"request unauthorized", BAD_KEY),
        (404, b"404 page not found", REFUSED_FAULT),
        (400, b"size is not supported", REFUSED_INPUT),
        (400, {"code": "invalid", "message": "its words"}, REFUSED_INPUT),
        (429, b"too many requests", TOO_FAST),
        (500, b"internal", "uncertain"),
        (500, {"message": "internal"}, "uncertain"),
        (502, HTML, "uncertain"),
        (401, HTML, "uncertain"),
        (200, b"done", "uncertain"),
        (200, {"created": 1}, "uncertain"),
    ],
)
async def test_plain_words_count_with_a_status_that_speaks(
    asker: Asker, status: int, body: Any, word: str
) -> None:
    assert await asker.refuses(status, body) == word
