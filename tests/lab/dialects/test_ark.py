"""Ark: errors beside pictures with the status 200, both result forms, streams, mistakes by name."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Answered, Asked, Visitor, data_url, picture

pytestmark = pytest.mark.parametrize("name", ["ark"])
BLOCKED = "OutputImageSensitiveContentDetected"


async def submitted(visitor: Visitor, wanted: int = 1, **changes: Any) -> Answered:
    asked = visitor.speaker.submit(n=wanted)
    return await visitor.ask(replace(asked, json={**asked.json, **changes}))


async def test_pictures_come_as_addresses_or_inline(visitor: Visitor) -> None:
    linked = (await submitted(visitor)).body
    assert linked["data"][0]["url"].startswith("http")
    assert linked["data"][0]["size"] == "1024x1024"
    inline = (await submitted(visitor, response_format="b64_json", output_format="png")).body
    assert base64.b64decode(inline["data"][0]["b64_json"])[:4] == b"\x89PNG"
    assert inline["usage"]["generated_images"] == 1


async def test_a_sequence_has_several_pictures_and_alone_it_is_one(visitor: Visitor) -> None:
    assert len((await submitted(visitor, wanted=3)).body["data"]) == 3
    alone = await submitted(visitor, sequential_image_generation_options={"max_images": 4})
    assert len(alone.body["data"]) == 1


async def test_missing_pictures_are_told_among_the_items(visitor: Visitor) -> None:
    await visitor.turn(partial=1, seed=3)
    body = (await submitted(visitor, wanted=4)).body
    lost = [item["error"]["code"] for item in body["data"] if "error" in item]
    assert len(body["data"]) == 4
    assert set(lost) == {BLOCKED}
    assert body["usage"]["generated_images"] == 4 - len(lost) == (await visitor.item())["billed"]


async def test_missing_pictures_may_be_told_beside_the_items(visitor: Visitor) -> None:
    await visitor.turn(partial=1, seed=3, variant="error_beside")
    body = (await submitted(visitor, wanted=4)).body
    assert 0 < len(body["data"]) < 4
    assert all("url" in item for item in body["data"])
    assert body["error"]["code"] == BLOCKED


async def test_an_error_may_stand_in_an_answer_with_200(visitor: Visitor) -> None:
    await visitor.turn(ending="blocked", ending_way="error_in_200")
    whole = await submitted(visitor)
    assert (whole.status, whole.body["data"], whole.body["error"]["code"]) == (200, [], BLOCKED)
    await visitor.turn(ending="failed", ending_way="error_in_items")
    items = await submitted(visitor)
    assert items.status == 200
    assert items.body["data"][0]["error"]["code"] == "InternalServiceError"
    assert "error" not in items.body


async def test_a_stream_tells_each_picture_and_ends(visitor: Visitor) -> None:
    await visitor.turn(partial=1, seed=3, small_pictures=True)
    lines = (await submitted(visitor, wanted=3, stream=True)).raw.decode().strip().split("\n\n")
    assert lines[-1] == "data: [DONE]"
    events = [json.loads(line.partition("data: ")[2]) for line in lines[:-1]]
    kinds = [event["type"].removeprefix("image_generation.") for event in events]
    assert kinds[0] == "partial_succeeded"
    assert kinds[-2:] == ["partial_failed", "completed"]
    assert [event["image_index"] for event in events[:-1]] == [0, 1, 2]
    assert events[-1]["usage"]["generated_images"] == kinds.count("partial_succeeded")


async def test_a_stream_tells_an_error(visitor: Visitor) -> None:
    await visitor.turn(ending="failed", ending_way="internal")
    lines = (await submitted(visitor, stream=True)).raw.decode().strip().split("\n\n")
    assert json.loads(lines[0].partition("data: ")[2])["error"]["code"] == "InternalServiceError"
    assert lines[1:] == ["data: [DONE]"]


async def test_pictures_are_taken_by_address_and_as_data_urls(visitor: Visitor, caller: Caller) -> None:
    await submitted(visitor, image=caller.picture_url)
    assert len((await visitor.item())["inputs"]) == 1
    await submitted(visitor, image=[data_url(picture()), caller.picture_url])
    assert len((await visitor.item())["inputs"]) == 2


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"prompt": None}, 400, "MissingParameter"),
        ({"model": "gpt-image-2"}, 404, "InvalidEndpointOrModel.NotFound"),
        ({"size": "2048*2048"}, 400, "InvalidParameter"),
        ({"size": "100x5000"}, 400, "InvalidParameter"),
        ({"n": 2}, 400, "InvalidParameter"),
        ({"image": "AAAA"}, 400, "InvalidParameter"),
        ({"image": [7]}, 400, "InvalidParameter"),
        ({"response_format": "base64"}, 400, "InvalidParameter"),
        ({"watermark": "false"}, 400, "InvalidParameter"),
        ({"sequential_image_generation": "on"}, 400, "InvalidParameter"),
        ({"sequential_image_generation_options": {"max_images": 16}}, 400, "InvalidParameter"),
        ({"tools": [{"type": "code"}]}, 400, "InvalidParameter"),
    ],
)
async def test_each_mistake_is_refused(
    visitor: Visitor, changes: dict[str, Any], status: int, code: str
) -> None:
    refused = await submitted(visitor, **changes)
    assert (refused.status, refused.body["error"]["code"]) == (status, code)
    assert await visitor.accepted() == 0


async def test_a_path_that_is_not_there_says_so(visitor: Visitor) -> None:
    asked = Asked("GET", "/api/v3/images/generations", headers={"Authorization": "Bearer ark-test-api-key"})
    assert (await visitor.ask(asked)).status == 404
