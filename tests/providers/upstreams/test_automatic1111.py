"""AUTOMATIC1111 as declared: what is sent, and which of its pictures count."""

from __future__ import annotations

import base64
import json
from typing import Any

import aiohttp
import pytest

from safelight.domain.provider import InputImage, Output, UpdateStatus
from safelight.errors import ConfigurationError
from safelight.providers import DeclaredProvider, packaged_declaration
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    PNG,
    PNG_BASE64,
    REFUSED_FAULT,
    REFUSED_INPUT,
    Asker,
)

SHEET = base64.b64encode(b"sheet").decode()


def answer(*images: str, **info: Any) -> dict[str, Any]:
    return {"images": list(images), "parameters": {}, "info": json.dumps({"seed": 1, **info})}


def error(kind: str, detail: Any = "", errors: str = "") -> dict[str, Any]:
    return {"error": kind, "detail": detail, "body": "", "errors": errors}


@pytest.fixture
def asker(session: aiohttp.ClientSession, upstream: Upstream) -> Asker:
    return Asker("automatic1111", session, upstream, credentials={})


async def test_pictures_are_drawn_one_after_the_other(asker: Asker) -> None:
    options = {"negative_prompt": "fog", "steps": 20, "cfg_scale": 6.5, "sampler_name": "Euler a", "seed": 4}
    body = await asker.sends(200, answer(PNG_BASE64), n=2, size="768x512", options=options)
    assert body == {
        "prompt": "a fox",
        "n_iter": 2,
        "width": 768,
        "height": 512,
        **options,
        "force_task_id": "t1-1",
    }
    asked = asker.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/sdapi/v1/txt2img")
    assert "authorization" not in asked.headers


async def test_a_password_is_sent_where_there_is_one(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    known = {"username": "ann", "password": "canary-word"}
    await Asker("automatic1111", session, upstream, credentials=known).submits(200, answer(PNG_BASE64))
    told = upstream.asked[0].headers["authorization"].removeprefix("Basic ")
    assert base64.b64decode(told) == b"ann:canary-word"


async def test_an_edit_starts_from_the_picture(asker: Asker) -> None:
    mask = InputImage("image/png", b"mask-bytes")
    body = await asker.sends(200, answer(PNG_BASE64), operation="edit", images=[PNG], mask=mask)
    assert asker.upstream.asked[0].path == "/sdapi/v1/img2img"
    assert body["init_images"] == [PNG_BASE64]
    assert body["mask"] == base64.b64encode(b"mask-bytes").decode()
    assert (body["denoising_strength"], body["inpainting_fill"], body["resize_mode"]) == (0.6, 1, 1)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (answer(PNG_BASE64, PNG_BASE64, index_of_first_image=0), 2),
        (answer(SHEET, PNG_BASE64, PNG_BASE64, index_of_first_image=1), 2),
        (answer(PNG_BASE64), 1),
        ({"images": [PNG_BASE64], "info": ""}, 1),
        (answer(), 0),
    ],
)
async def test_the_sheet_of_all_pictures_is_none_of_them(asker: Asker, body: Any, count: int) -> None:
    update = await asker.submits(200, body, n=2)
    assert (update.status, update.outputs) == (UpdateStatus.SUCCEEDED, (Output(data=b"png-bytes"),) * count)


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (401, {"detail": "Not authenticated"}, BAD_KEY),
        (401, error("HTTPException", "Incorrect username or password"), BAD_KEY),
        (404, error("HTTPException", "Sampler not found"), REFUSED_INPUT),
        (422, {"detail": [{"loc": ["body", "steps"], "msg": "not a number"}]}, REFUSED_INPUT),
        (500, error("HTTPException", "Invalid encoded image"), REFUSED_INPUT),
        (500, error("OutOfMemoryError", errors="CUDA out of memory"), REFUSED_FAULT),
        (500, error("NansException"), REFUSED_FAULT),
        (500, b"Internal Server Error", "uncertain"),
        (502, HTML, "uncertain"),
        (200, {}, "uncertain"),
    ],
)
async def test_each_error_is_read_by_its_own_words(asker: Asker, status: int, body: Any, word: str) -> None:
    assert await asker.refuses(status, body) == word


def test_one_call_at_a_time(asker: Asker) -> None:
    able = asker.provider.capabilities
    assert (able.max_calls, able.max_active_tasks, able.is_synchronous) == (1, 1, True)


def test_its_address_must_be_told(session: aiohttp.ClientSession) -> None:
    with pytest.raises(ConfigurationError, match="set its base_url"):
        DeclaredProvider(packaged_declaration("automatic1111"), credentials={}, session=session)
