"""Stability AI as declared, its answers at once and its slow tools."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import InputImage, Output, UpdateStatus
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    NO_MONEY,
    PNG,
    PNG_BASE64,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
)
from tests.providers.upstreams.parts import Part, parts_of

DONE = {"image": PNG_BASE64, "finish_reason": "SUCCESS", "seed": 7}
MASK = InputImage("image/png", b"mask-bytes")
FILE = ("image/png", b"png-bytes")
BLOCKED = Failure(FailureClass.CONTENT_BLOCKED, "content_blocked")
JOB = "4cb93251d974ed0dc6d652d8a7a53d14cbef174ae4662a017d53d7b6101542da"
ERRORS = [
    (400, "bad_request", REFUSED_INPUT),
    (401, "unauthorized", BAD_KEY),
    (402, "payment_required", NO_MONEY),
    (403, "content_moderation", REFUSED_CONTENT),
    (403, "forbidden", BAD_KEY),
    (413, "payload_too_large", REFUSED_INPUT),
    (422, "invalid_language", REFUSED_INPUT),
    (429, "rate_limit_exceeded", TOO_FAST),
    (500, "internal_error", REFUSED_FAULT),
    (500, "surprise", "uncertain"),
]


def error(name: str) -> dict[str, Any]:
    return {"id": "e-1", "name": name, "errors": ["its words"]}


@pytest.mark.parametrize(
    ("model", "path", "wishes", "parts"),
    [
        (
            "stable-image-core",
            "generate/core",
            {
                "aspect_ratio": "16:9",
                "options": {"negative_prompt": "fog", "seed": 7, "style_preset": "anime"},
            },
            [
                ("prompt", "a fox"),
                ("negative_prompt", "fog"),
                ("aspect_ratio", "16:9"),
                ("seed", "7"),
                ("style_preset", "anime"),
                ("output_format", "png"),
            ],
        ),
        (
            "sd3.5-large",
            "generate/sd3",
            {"options": {"output_format": "jpeg"}},
            [("prompt", "a fox"), ("model", "sd3.5-large"), ("output_format", "jpeg")],
        ),
        (
            "sd3.5-large",
            "generate/sd3",
            {"operation": "edit", "images": [PNG], "aspect_ratio": "1:1"},
            [
                ("prompt", "a fox"),
                ("model", "sd3.5-large"),
                ("mode", "image-to-image"),
                ("image", FILE),
                ("strength", "0.7"),
                ("output_format", "png"),
            ],
        ),
        (
            "stable-image-ultra",
            "generate/ultra",
            {"operation": "edit", "images": [PNG], "options": {"strength": 0.2}},
            [("prompt", "a fox"), ("image", FILE), ("strength", "0.2"), ("output_format", "png")],
        ),
        (
            "stable-image-inpaint",
            "edit/inpaint",
            {"operation": "edit", "images": [PNG], "mask": MASK},
            [
                ("prompt", "a fox"),
                ("image", FILE),
                ("mask", ("image/png", b"mask-bytes")),
                ("output_format", "png"),
            ],
        ),
    ],
)
async def test_each_wish_goes_to_its_endpoint_in_parts(
    session: aiohttp.ClientSession,
    upstream: Upstream,
    model: str,
    path: str,
    wishes: dict[str, Any],
    parts: list[Part],
) -> None:
    await Asker("stability", session, upstream, model=model).submits(200, DONE, **wishes)
    asked = upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", f"/v2beta/stable-image/{path}")
    assert (asked.headers["accept"], asked.headers["authorization"]) == (
        "application/json",
        "Bearer canary-key-71f3",
    )
    assert parts_of(asked) == parts


async def test_the_answer_carries_the_picture(session: aiohttp.ClientSession, upstream: Upstream) -> None:
    update = await Asker("stability", session, upstream).submits(200, DONE)
    assert (update.status, update.outputs) == (UpdateStatus.SUCCEEDED, (Output(data=b"png-bytes"),))


@pytest.mark.parametrize("image", [PNG_BASE64, "", None])
async def test_a_filtered_picture_is_none(
    session: aiohttp.ClientSession, upstream: Upstream, image: str | None
) -> None:
    body = {"image": image, "finish_reason": "CONTENT_FILTERED", "seed": 7}
    update = await Asker("stability", session, upstream).submits(200, body)
    assert (update.status, update.failure, update.outputs) == (UpdateStatus.BLOCKED, BLOCKED, ())


@pytest.mark.parametrize("name", ["stability", "stability-async"])
@pytest.mark.parametrize(("status", "code", "word"), ERRORS)
async def test_each_error_is_read_by_its_own_words(
    session: aiohttp.ClientSession, upstream: Upstream, name: str, status: int, code: str, word: str
) -> None:
    assert await Asker(name, session, upstream).refuses(status, error(code)) == word


@pytest.mark.parametrize(("status", "body"), [(502, HTML), (504, b""), (200, {}), (200, HTML), (429, HTML)])
async def test_an_answer_that_is_not_its_own_proves_nothing(
    session: aiohttp.ClientSession, upstream: Upstream, status: int, body: Any
) -> None:
    assert await Asker("stability", session, upstream).refuses(status, body) == "uncertain"


@pytest.mark.parametrize(
    ("model", "path", "parts"),
    [
        (
            "stable-image-creative-upscale",
            "upscale/creative",
            [("image", FILE), ("prompt", "a fox"), ("creativity", "0.3"), ("output_format", "png")],
        ),
        (
            "stable-image-relight",
            "edit/replace-background-and-relight",
            [("subject_image", FILE), ("background_prompt", "a fox"), ("output_format", "png")],
        ),
    ],
)
async def test_a_slow_tool_answers_with_an_id(
    session: aiohttp.ClientSession, upstream: Upstream, model: str, path: str, parts: list[Part]
) -> None:
    asker = Asker("stability-async", session, upstream, model=model)
    update = await asker.submits(
        200, {"id": JOB}, operation="edit", images=[PNG], options={"creativity": 0.3}
    )
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, JOB)
    assert upstream.asked[0].path == f"/v2beta/stable-image/{path}"
    assert parts_of(upstream.asked[0]) == parts


@pytest.mark.parametrize(
    ("status", "body", "standing"),
    [
        (202, {"id": JOB, "status": "in-progress"}, UpdateStatus.RUNNING),
        (200, DONE, UpdateStatus.SUCCEEDED),
        (200, {"result": PNG_BASE64, "finish_reason": "SUCCESS", "seed": 7}, UpdateStatus.SUCCEEDED),
        (200, {"result": PNG_BASE64, "finish_reason": "CONTENT_FILTERED"}, UpdateStatus.BLOCKED),
        (403, error("content_moderation"), UpdateStatus.BLOCKED),
        (400, error("bad_request"), UpdateStatus.FAILED),
    ],
)
async def test_the_state_of_a_result_is_the_status_of_the_answer(
    session: aiohttp.ClientSession, upstream: Upstream, status: int, body: Any, standing: UpdateStatus
) -> None:
    update = await Asker("stability-async", session, upstream).polls(status, body, JOB)
    assert update.status is standing
    assert len(update.outputs) == (standing is UpdateStatus.SUCCEEDED)
    assert (upstream.asked[0].method, upstream.asked[0].path) == ("GET", f"/v2beta/results/{JOB}")


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (404, error("not_found"), "nothing"),
        (429, error("rate_limit_exceeded"), TOO_FAST),
        (401, error("unauthorized"), BAD_KEY),
        (500, error("internal_error"), "nothing"),
        (502, HTML, "nothing"),
        (200, b"", "nothing"),
        (200, {"message": "your call"}, "nothing"),
    ],
)
async def test_an_answer_that_is_not_about_the_picture_says_nothing(
    session: aiohttp.ClientSession, upstream: Upstream, status: int, body: Any, word: str
) -> None:
    assert await Asker("stability-async", session, upstream).poll_fails(status, body) == word
