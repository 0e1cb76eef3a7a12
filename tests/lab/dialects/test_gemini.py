"""Google's own client against the lab: pictures among the parts, blocks with the status 200, errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from tests.lab.dialects.speaker import PROMPT, Visitor, picture

pytestmark = pytest.mark.parametrize("name", ["gemini"])
MODEL = "gemini-3-pro-image"


class Client:
    """The real client that waits, in a thread of its own: its other one warns about its own session."""

    def __init__(self, base: str) -> None:
        options = types.HttpOptions(base_url=f"{base}/gemini", timeout=10_000)
        self._client = genai.Client(api_key="gemini-test-api-key", http_options=options)

    async def generate(self, contents: Any = PROMPT, **config: Any) -> types.GenerateContentResponse:
        """Generate, with the config's fields."""
        wish = types.GenerateContentConfig(**config)
        return await asyncio.to_thread(
            self._client.models.generate_content, model=MODEL, contents=contents, config=wish
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


@pytest.fixture
def client(visitor: Visitor) -> Iterator[Client]:
    client = Client(visitor.base)
    yield client
    client.close()


def found(answer: types.GenerateContentResponse) -> list[types.Blob]:
    return [part.inline_data for part in answer.parts or [] if part.inline_data is not None]


def finish(answer: types.GenerateContentResponse) -> types.FinishReason | None:
    assert answer.candidates
    return answer.candidates[0].finish_reason


async def test_the_real_client_finds_its_picture_among_the_parts(visitor: Visitor, client: Client) -> None:
    answer = await client.generate(
        response_modalities=["TEXT", "IMAGE"],
        image_config=types.ImageConfig(aspect_ratio="16:9", image_size="2K"),
    )
    assert answer.text
    [blob] = found(answer)
    assert blob.mime_type == "image/png"
    assert (blob.data or b"")[:4] == b"\x89PNG"
    assert finish(answer) == types.FinishReason.STOP
    item = await visitor.item()
    assert (item["model"], item["prompt"], item["size"]) == (MODEL, PROMPT, "2688x1536")


async def test_without_texts_the_only_part_is_the_picture(visitor: Visitor, client: Client) -> None:
    answer = await client.generate(response_modalities=["IMAGE"])
    assert answer.text is None
    assert len(found(answer)) == 1


async def test_the_real_client_edits_two_pictures(visitor: Visitor, client: Client) -> None:
    answer = await client.generate(
        [
            PROMPT,
            types.Part.from_bytes(data=picture(), mime_type="image/png"),
            types.Part.from_bytes(data=picture(form="JPEG"), mime_type="image/jpeg"),
        ]
    )
    assert len(found(answer)) == 1
    item = await visitor.item()
    assert (item["operation"], len(item["inputs"])) == ("edit", 2)


async def test_a_success_may_have_words_only(visitor: Visitor, client: Client) -> None:
    await visitor.turn(empty_success=1)
    answer = await client.generate()
    assert answer.text
    assert found(answer) == []


async def test_blocks_come_with_the_status_200(visitor: Visitor, client: Client) -> None:
    await visitor.turn(refuse="content_blocked", refuse_way="PROHIBITED_CONTENT", refuse_times=1)
    blocked = await client.generate()
    assert blocked.candidates is None
    assert blocked.prompt_feedback is not None
    assert blocked.prompt_feedback.block_reason == types.BlockedReason.PROHIBITED_CONTENT
    assert await visitor.accepted() == 0
    await visitor.turn(ending="blocked", ending_way="IMAGE_SAFETY")
    finished = await client.generate()
    assert finish(finished) == types.FinishReason.IMAGE_SAFETY
    assert found(finished) == []


@pytest.mark.parametrize(
    ("situation", "way", "error", "status"),
    [
        ("invalid_request", "model", errors.ClientError, "NOT_FOUND"),
        ("credentials", "wrong", errors.ClientError, "INVALID_ARGUMENT"),
        ("rate_limited", "body", errors.ClientError, "RESOURCE_EXHAUSTED"),
        ("upstream_fault", "unavailable", errors.ServerError, "UNAVAILABLE"),
        ("upstream_fault", "deadline", errors.ServerError, "DEADLINE_EXCEEDED"),
    ],
)
async def test_the_real_client_raises_its_own_errors(
    visitor: Visitor, client: Client, situation: str, way: str, error: type[errors.APIError], status: str
) -> None:
    await visitor.turn(refuse=situation, refuse_way=way)
    with pytest.raises(error) as raised:
        await client.generate()
    assert raised.value.status == status


async def test_the_time_to_wait_stands_in_the_body(visitor: Visitor) -> None:
    await visitor.turn(refuse="rate_limited", refuse_way="body")
    refused = await visitor.submit()
    assert refused.status == 429
    assert "Retry-After" not in refused.headers
    [delay] = [detail["retryDelay"] for detail in refused.body["error"]["details"] if "retryDelay" in detail]
    assert delay == "1s"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"contents": []}, "contents"),
        ({"contents": [{"parts": []}]}, "contents.0.parts"),
        ({"contents": [{"parts": [{"text": "a", "inlineData": {}}]}]}, "contents.0.parts.0.data"),
        (
            {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "?"}}]}]},
            "contents.0.parts.0.inlineData.data",
        ),
        ({"contents": [{"role": "system", "parts": [{"text": "a"}]}]}, "contents.0.role"),
        ({"generationConfig": {"candidateCount": 2}}, "generationConfig.candidateCount"),
        ({"generationConfig": {"responseModalities": ["TEXT"]}}, "generationConfig.responseModalities"),
        (
            {"generationConfig": {"imageConfig": {"aspectRatio": "5:1"}}},
            "generationConfig.imageConfig.aspectRatio",
        ),
        (
            {"generationConfig": {"imageConfig": {"imageSize": "8K"}}},
            "generationConfig.imageConfig.imageSize",
        ),
        ({"generationConfig": {"imageConfig": {"size": "1K"}}}, "generationConfig.imageConfig.size"),
        ({"safetySettings": [{"category": "HARM", "threshold": "OFF"}]}, "safetySettings.0.category"),
        ({"mask": "x"}, "mask"),
    ],
)
async def test_each_mistake_is_named(visitor: Visitor, changes: dict[str, Any], field: str) -> None:
    asked = visitor.speaker.submit()
    refused = await visitor.ask(replace(asked, json={**asked.json, **changes}))
    assert refused.status == 400
    [detail] = refused.body["error"]["details"]
    assert detail["fieldViolations"][0]["field"] == field
    assert await visitor.accepted() == 0


async def test_a_model_that_draws_nothing_is_not_found(visitor: Visitor) -> None:
    asked = visitor.speaker.submit()
    refused = await visitor.ask(replace(asked, path="/v1beta/models/gemini-2.5-flash:generateContent"))
    assert (refused.status, refused.body["error"]["status"]) == (404, "NOT_FOUND")
