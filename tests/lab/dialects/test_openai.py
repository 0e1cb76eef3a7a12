"""OpenAI's own client against the lab: pictures, edits, streams, and what it raises."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import aiohttp
import httpx
import openai
import pytest

from tests.lab.dialects.speaker import PROMPT, Visitor, data_url, picture

pytestmark = pytest.mark.parametrize("name", ["openai"])
MODEL = "gpt-image-2"
PNG = ("a.png", picture(), "image/png")
MASK = ("mask.png", picture("RGBA"), "image/png")


@pytest.fixture
async def client(visitor: Visitor) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        api_key="openai-test-api-key", base_url=f"{visitor.base}/openai/v1", max_retries=0, timeout=10
    ) as client:
        yield client


async def test_the_real_client_gets_its_pictures(visitor: Visitor, client: openai.AsyncOpenAI) -> None:
    answer = await client.images.generate(model=MODEL, prompt=PROMPT, n=2, size="1536x864", quality="low")
    assert answer.data is not None
    assert [base64.b64decode(image.b64_json or "")[:4] for image in answer.data] == [b"\x89PNG"] * 2
    assert (answer.size, answer.quality, answer.output_format) == ("1536x864", "low", "png")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    item = await visitor.item()
    assert (item["model"], item["operation"], item["n"], item["size"]) == (MODEL, "generate", 2, "1536x864")


async def test_the_real_client_edits_two_files_with_a_mask(
    visitor: Visitor, client: openai.AsyncOpenAI
) -> None:
    other = ("b.jpg", picture(form="JPEG"), "image/jpeg")
    answer = await client.images.edit(
        model=MODEL, image=[PNG, other], mask=MASK, prompt=PROMPT, output_format="webp", n=1
    )
    assert answer.data is not None
    assert base64.b64decode(answer.data[0].b64_json or "")[:4] == b"RIFF"
    item = await visitor.item()
    assert (item["operation"], len(item["inputs"]), len(item["mask"])) == ("inpaint", 2, 64)
    await client.images.edit(model=MODEL, image=PNG, prompt=PROMPT)
    assert (await visitor.item())["operation"] == "edit"


async def test_the_real_client_streams_partial_pictures(visitor: Visitor, client: openai.AsyncOpenAI) -> None:
    await visitor.turn(latency_s=[0.2, 0.2], small_pictures=True)
    stream = await client.images.generate(model=MODEL, prompt=PROMPT, stream=True, partial_images=2)
    events = [event async for event in stream]
    assert [event.type for event in events] == [
        "image_generation.partial_image",
        "image_generation.partial_image",
        "image_generation.completed",
    ]
    assert [getattr(event, "partial_image_index", None) for event in events] == [0, 1, None]
    edits = await client.images.edit(model=MODEL, image=PNG, prompt=PROMPT, stream=True, partial_images=1)
    types: list[str] = [event.type async for event in edits]
    assert types == ["image_edit.partial_image", "image_edit.completed"]


@pytest.mark.parametrize("how", ["reset_after_head", "truncated_json"])
async def test_a_stream_can_be_cut(visitor: Visitor, client: openai.AsyncOpenAI, how: str) -> None:
    await visitor.turn(gateway={"where": "submit", "how": how, "is_accepted": True}, small_pictures=True)
    with suppress(openai.APIError, httpx.HTTPError, ValueError):
        async for event in await client.images.generate(
            model=MODEL, prompt=PROMPT, stream=True, partial_images=2
        ):
            assert event.type == "image_generation.partial_image"
    assert (await visitor.item())["outcome"] == "done"


async def test_a_stream_that_has_begun_ends_in_an_error(visitor: Visitor, client: openai.AsyncOpenAI) -> None:
    await visitor.turn(ending="blocked", ending_way="output")
    stream = await client.images.generate(model=MODEL, prompt=PROMPT, stream=True)
    with pytest.raises(openai.APIError) as raised:
        _ = [event async for event in stream]
    assert raised.value.code == "moderation_blocked"


@pytest.mark.parametrize(
    ("situation", "way", "error", "code"),
    [
        ("invalid_request", "value", openai.BadRequestError, "invalid_value"),
        ("invalid_request", "model", openai.NotFoundError, "model_not_found"),
        ("content_blocked", "input", openai.BadRequestError, "moderation_blocked"),
        ("credentials", "wrong", openai.AuthenticationError, "invalid_api_key"),
        ("funds", "quota", openai.RateLimitError, "insufficient_quota"),
        ("funds", "hard_limit", openai.BadRequestError, "billing_hard_limit_reached"),
        ("rate_limited", "seconds", openai.RateLimitError, "rate_limit_exceeded"),
        ("upstream_fault", "500", openai.InternalServerError, "server_error"),
    ],
)
async def test_the_real_client_raises_its_own_errors(
    visitor: Visitor,
    client: openai.AsyncOpenAI,
    situation: str,
    way: str,
    error: type[openai.APIStatusError],
    code: str,
) -> None:
    await visitor.turn(refuse=situation, refuse_way=way)
    with pytest.raises(error) as raised:
        await client.images.generate(model=MODEL, prompt=PROMPT)
    assert raised.value.code == code
    assert await visitor.accepted() == 0


async def test_the_real_client_waits_as_it_is_told(visitor: Visitor, client: openai.AsyncOpenAI) -> None:
    await visitor.turn(refuse="rate_limited", refuse_way="ms", refuse_times=1, small_pictures=True)
    answer = await client.with_options(max_retries=1).images.generate(model=MODEL, prompt=PROMPT)
    assert answer.data
    assert await visitor.accepted() == 1


@pytest.mark.parametrize(
    ("changes", "code", "param"),
    [
        ({"model": None}, "missing_required_parameter", "model"),
        ({"model": "gpt-image-1"}, "model_not_found", "model"),
        ({"model": "dall-e-3"}, "model_not_found", "model"),
        ({"prompt": "x" * 32_001}, "invalid_value", "prompt"),
        ({"n": 11}, "invalid_value", "n"),
        ({"n": "1"}, "invalid_type", "n"),
        ({"size": "1000x1000"}, "invalid_value", "size"),
        ({"size": "3200x1024"}, "invalid_value", "size"),
        ({"size": "3840x3840"}, "invalid_value", "size"),
        ({"model": "gpt-image-1.5", "size": "1536x864"}, "invalid_value", "size"),
        ({"quality": "max"}, "invalid_value", "quality"),
        ({"background": "transparent", "output_format": "jpeg"}, "invalid_value", "background"),
        ({"output_compression": 50}, "invalid_value", "output_compression"),
        ({"partial_images": 2}, "invalid_value", "partial_images"),
        ({"response_format": "url"}, "unknown_parameter", "response_format"),
        ({"style": "vivid"}, "unknown_parameter", "style"),
    ],
)
async def test_each_mistake_is_named(
    visitor: Visitor, changes: dict[str, Any], code: str, param: str
) -> None:
    asked = visitor.speaker.submit()
    refused = await visitor.ask(replace(asked, json={**asked.json, **changes}))
    assert refused.status in {400, 404}
    assert (refused.body["error"]["code"], refused.body["error"]["param"]) == (code, param)
    assert await visitor.accepted() == 0


async def test_a_model_takes_what_others_do_not(visitor: Visitor) -> None:
    asked = visitor.speaker.submit()
    for changes in (
        {"model": "gpt-image-2.5-flare", "quality": "max"},
        {"output_format": "jpeg", "output_compression": 50},
        {"background": "transparent"},
        {"model": "gpt-image-1.5", "size": "auto"},
    ):
        assert (await visitor.ask(replace(asked, json={**asked.json, **changes}))).status == 200


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"images": []}, "images"),
        ({"images": [{"file_id": "file-1"}]}, "images.0.file_id"),
        ({"images": [{"image_url": "data:image/png;base64,AAAA"}]}, "images.0.image_url"),
        ({"mask": {"image_url": data_url(picture())}}, "mask"),
        ({"input_fidelity": "high"}, "input_fidelity"),
        ({"moderation": "low"}, "moderation"),
    ],
)
async def test_mistakes_of_an_edit_are_named(visitor: Visitor, changes: dict[str, Any], param: str) -> None:
    asked = visitor.speaker.edit(data_url(picture()))
    assert asked is not None
    refused = await visitor.ask(replace(asked, json={**asked.json, **changes}))
    assert (refused.status, refused.body["error"]["param"]) == (400, param)
    assert await visitor.accepted() == 0


async def test_a_form_without_a_picture_or_with_a_foreign_file_is_refused(visitor: Visitor) -> None:
    asked = visitor.speaker.submit()
    for files in ((), ("image", "layer")):
        form = aiohttp.FormData({"model": MODEL, "prompt": PROMPT}, default_to_multipart=True)
        for file in files:
            form.add_field(file, picture(), filename="a.png", content_type="image/png")
        refused = await visitor.ask(replace(asked, path="/v1/images/edits", json=None, data=form))
        assert refused.body["error"]["param"] == ("layer" if files else "image")
    assert await visitor.accepted() == 0
