"""MiniMax: codes with the status 200, counts as strings, both result forms, mistakes."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.dialects.speaker import Answered, Visitor, data_url, picture

pytestmark = pytest.mark.parametrize("name", ["minimax"])


async def submitted(visitor: Visitor, wanted: int = 1, **changes: Any) -> Answered:
    asked = visitor.speaker.submit(n=wanted)
    return await visitor.ask(replace(asked, json={**asked.json, **changes}))


async def test_counts_are_strings_and_tell_what_is_missing(visitor: Visitor) -> None:
    await visitor.turn(partial=1, seed=3, small_pictures=True)
    body = (await submitted(visitor, wanted=4)).body
    counts = body["metadata"]
    assert all(isinstance(count, str) for count in counts.values())
    assert int(counts["success_count"]) == len(body["data"]["image_urls"]) < 4
    assert int(counts["failed_count"]) == 4 - int(counts["success_count"])
    assert body["base_resp"] == {"status_code": 0, "status_msg": "success"}


async def test_pictures_come_inline_if_asked_for(visitor: Visitor) -> None:
    body = (await submitted(visitor, response_format="base64")).body
    assert base64.b64decode(body["data"]["image_base64"][0])[:3] == b"\xff\xd8\xff"


async def test_every_refusal_has_the_status_200(visitor: Visitor) -> None:
    told = await visitor.read("/lab/dialects/minimax")
    codes = set()
    for situation, ways in told["refusals"].items():
        for way in ways:
            await visitor.turn(refuse=situation, refuse_way=way)
            refused = await visitor.submit()
            assert (refused.status, "data" in refused.body) == (200, False)
            codes.add(refused.body["base_resp"]["status_code"])
    assert codes == {1000, 1001, 1002, 1004, 1008, 1013, 1026, 2013, 2038, 2049}
    assert await visitor.accepted() == 0


async def test_a_character_comes_along_as_a_data_url(visitor: Visitor) -> None:
    subject = {"type": "character", "image_file": data_url(picture())}
    await submitted(visitor, subject_reference=[subject])
    item = await visitor.item()
    assert (item["operation"], len(item["inputs"])) == ("edit", 1)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": "image-02"}, "model"),
        ({"prompt": "x" * 1501}, "prompt"),
        ({"n": 10}, "n"),
        ({"aspect_ratio": "5:4"}, "aspect_ratio"),
        ({"aspect_ratio": None, "width": 512}, "height"),
        ({"aspect_ratio": None, "width": 516, "height": 512}, "width"),
        ({"response_format": "b64_json"}, "response_format"),
        ({"subject_reference": [{"type": "dog", "image_file": "x"}]}, "subject_reference.0.type"),
        (
            {"subject_reference": [{"type": "character", "image_file": "AAAA"}]},
            "subject_reference.0.image_file",
        ),
        ({"mask": "x"}, "mask"),
    ],
)
async def test_each_mistake_is_named(visitor: Visitor, changes: dict[str, Any], told: str) -> None:
    refused = await submitted(visitor, **changes)
    code, message = refused.body["base_resp"].values()
    assert (refused.status, code) == (200, 2013)
    assert f" {told}:" in message
    assert await visitor.accepted() == 0


async def test_both_sides_or_nothing_say_the_size(visitor: Visitor) -> None:
    await visitor.turn(small_pictures=True)
    await submitted(visitor, aspect_ratio=None, width=1280, height=640)
    assert (await visitor.item())["size"] == "1280x640"
    await submitted(visitor, aspect_ratio=None)
    assert (await visitor.item())["size"] == "1024x1024"
