"""OpenAI Images as declared: what is sent, and what its answers mean."""

from __future__ import annotations

from datetime import date
from typing import Any

import aiohttp
import pytest

from safelight.domain.provider import AfterUncertain, InputImage, MaskStyle, Output, UpdateStatus
from safelight.providers import capabilities_of, models_of, packaged_declaration
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    NO_MONEY,
    PNG,
    PNG_BASE64,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
)
from tests.providers.upstreams.parts import parts_of

DONE = {
    "created": 1_795_000_000,
    "data": [{"b64_json": PNG_BASE64}],
    "size": "1024x1024",
    "usage": {"input_tokens": 50, "output_tokens": 4160, "total_tokens": 4210},
}
MASK = InputImage("image/png", b"mask-bytes")


def error(code: str | None, kind: str = "invalid_request_error", **more: Any) -> dict[str, Any]:
    return {"error": {"message": "its words", "type": kind, "param": None, "code": code, **more}}


@pytest.fixture
def asker(session: aiohttp.ClientSession, upstream: Upstream) -> Asker:
    return Asker("openai", session, upstream, model="gpt-image-2")


async def test_a_picture_is_asked_for_as_json(asker: Asker) -> None:
    body = await asker.sends(
        200, DONE, n=2, size="1536x864", options={"quality": "high", "output_format": "webp", "seed": 1}
    )
    assert body == {
        "model": "gpt-image-2",
        "prompt": "a fox",
        "n": 2,
        "size": "1536x864",
        "quality": "high",
        "output_format": "webp",
    }
    asked = asker.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/images/generations")
    assert asked.headers["authorization"] == "Bearer canary-key-71f3"
    assert "idempotency-key" not in asked.headers


@pytest.mark.parametrize(
    ("ratio", "size"), [("1:1", "1024x1024"), ("3:2", "1536x1024"), ("2:3", "1024x1536")]
)
async def test_a_ratio_becomes_one_of_its_sizes(asker: Asker, ratio: str, size: str) -> None:
    assert (await asker.sends(200, DONE, aspect_ratio=ratio))["size"] == size


async def test_an_edit_sends_all_pictures_and_the_mask_as_files(asker: Asker) -> None:
    await asker.submits(
        200, DONE, operation="edit", images=[PNG, JPEG], mask=MASK, options={"quality": "high"}
    )
    asked = asker.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/images/edits")
    assert parts_of(asked) == [
        ("model", "gpt-image-2"),
        ("prompt", "a fox"),
        ("n", "1"),
        ("image[]", ("image/png", b"png-bytes")),
        ("image[]", ("image/jpeg", b"jpeg-bytes")),
        ("mask", ("image/png", b"mask-bytes")),
        ("quality", "high"),
    ]


async def test_the_answer_carries_the_pictures(asker: Asker) -> None:
    update = await asker.submits(200, DONE)
    assert (update.status, update.outputs) == (UpdateStatus.SUCCEEDED, (Output(data=b"png-bytes"),))
    assert update.cost == 4160


async def test_fewer_pictures_than_asked_for_are_those_that_there_are(asker: Asker) -> None:
    update = await asker.submits(200, DONE, n=4)
    assert len(update.outputs) == 1


async def test_a_success_without_pictures_is_told_as_it_is(asker: Asker) -> None:
    update = await asker.submits(200, {"created": 1, "data": []})
    assert (update.status, update.outputs, update.failure) == (UpdateStatus.SUCCEEDED, (), None)


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (400, error("invalid_value"), REFUSED_INPUT),
        (400, error("invalid_image_file", "image_generation_user_error"), REFUSED_INPUT),
        (400, error("moderation_blocked", "image_generation_user_error"), REFUSED_CONTENT),
        (400, error("content_policy_violation"), REFUSED_CONTENT),
        (400, error("billing_hard_limit_reached"), NO_MONEY),
        (429, error("insufficient_quota", "insufficient_quota"), NO_MONEY),
        (429, error(None, "insufficient_quota"), NO_MONEY),
        (429, error("rate_limit_exceeded", "tokens"), TOO_FAST),
        (401, error("invalid_api_key"), BAD_KEY),
        (403, error(None), BAD_KEY),
        (404, error("model_not_found"), REFUSED_FAULT),
        (500, error(None, "server_error"), REFUSED_FAULT),
        (500, error("image_generation_failed", "image_generation_server_error"), REFUSED_FAULT),
        (503, error(None, "server_error"), REFUSED_FAULT),
        (500, error(None, "surprise"), "uncertain"),
        (502, HTML, "uncertain"),
        (504, b"", "uncertain"),
        (200, HTML, "uncertain"),
        (200, {"created": 1}, "uncertain"),
    ],
)
async def test_each_error_is_read_by_its_own_words(asker: Asker, status: int, body: Any, word: str) -> None:
    assert await asker.refuses(status, body) == word


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after": "20"}, 20.0), ({"retry-after-ms": "1500", "retry-after": "20"}, 1.5), ({}, None)],
)
async def test_the_time_to_wait_is_read_from_both_headers(
    asker: Asker, headers: dict[str, str], seconds: float | None
) -> None:
    asker.upstream.answers(429, error("rate_limit_exceeded"), headers)
    with pytest.raises(Exception, match="rate_limited") as raised:
        await asker.provider.submit(asker.submission())
    assert getattr(raised.value, "retry_after_s", "none") == seconds


def test_old_models_have_their_last_day() -> None:
    last_days = {model.name: model.retires_on for model in packaged_declaration("openai").models}
    assert last_days["gpt-image-1"] == date(2026, 10, 23)
    assert {last_days[name] for name in ("gpt-image-1.5", "gpt-image-1-mini", "chatgpt-image-latest")} == {
        date(2026, 12, 1)
    }
    assert last_days["gpt-image-2.6-flare"] is None


def test_only_the_second_generation_takes_any_size() -> None:
    models = {model.name: model for model in models_of(packaged_declaration("openai"))}
    assert {name for name, model in models.items() if "" in model.sizes} == {
        name for name in models if name.startswith("gpt-image-2")
    }


def test_nothing_can_be_asked_about_later() -> None:
    able = capabilities_of(packaged_declaration("openai"))
    assert (able.is_synchronous, able.can_poll, able.calls_back, able.can_cancel) == (
        True,
        False,
        False,
        False,
    )
    assert (able.after_uncertain, able.mask_style) == (AfterUncertain.NONE, MaskStyle.CLEAR)
    assert (able.needs_image_data, able.needs_image_urls) == (True, False)
