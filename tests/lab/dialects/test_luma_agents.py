"""Luma Agents: what is its own. Its client is not installed here."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Answered, Asked, Visitor, picture
from tests.lab.dialects.speakers.luma_agents import KEY, PATH

pytestmark = pytest.mark.parametrize("name", ["luma-agents"])
RAW = base64.b64encode(picture()).decode()


async def submit(visitor: Visitor, **fields: Any) -> Answered:
    """A submit with these fields; the whole answer."""
    return await visitor.ask(
        Asked("POST", PATH, {"model": "uni-1", "type": "image", "prompt": "a fox", **fields}, headers=KEY)
    )


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"model": "photon-1"}, "model"),
        ({"type": "video"}, "type"),
        ({"type": "image_edit"}, "source"),
        ({"aspect_ratio": "4:3"}, "aspect_ratio"),
        ({"image_ref": [{"data": RAW}]}, "image_ref.0.media_type"),
        (
            {"image_ref": [{"data": RAW, "media_type": "image/png", "url": "http://a.example"}]},
            "image_ref.0.",
        ),
        ({"callback_url": "http://127.0.0.1:1"}, "callback_url"),
    ],
)
async def test_a_wrong_field_is_named_in_one_text(
    visitor: Visitor, fields: dict[str, Any], where: str
) -> None:
    refused = await submit(visitor, **fields)
    assert refused.status == 400
    assert refused.body["detail"].startswith(where)
    assert await visitor.accepted() == 0


async def test_an_edit_has_a_source_and_perhaps_references(visitor: Visitor, caller: Caller) -> None:
    source = {"data": RAW, "media_type": "image/png"}
    await submit(visitor, type="image_edit", source=source, image_ref=[{"url": caller.picture_url}])
    item = await visitor.item()
    assert item["inputs"] == [hashlib.sha256(picture()).hexdigest()] * 2
    assert item["operation"] == "edit"


async def test_the_states_are_its_own(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[0.3, 0.3])
    accepted, seen = await submit(visitor), []
    assert (accepted.status, accepted.body["state"]) == (201, "queued")
    while not visitor.speaker.is_final(look := await visitor.ask(visitor.speaker.poll(accepted.body))):
        seen.append(look.body["state"])
    assert list(dict.fromkeys(seen))[-1] == "processing"
    assert look.body["output"][0]["type"] == "image"


async def test_a_later_look_has_fresh_addresses(visitor: Visitor) -> None:
    accepted = await submit(visitor)
    first, second = [(await visitor.finished(accepted)).body["output"][0]["url"] for _ in range(2)]
    assert first != second
    assert [(await visitor.ask(Asked("GET", url))).status for url in (first, second)] == [200, 200]


@pytest.mark.parametrize(
    ("situation", "way"), [("blocked", "content_moderated"), ("failed", "budget_exhausted")]
)
async def test_a_failure_has_a_code(visitor: Visitor, situation: str, way: str) -> None:
    await visitor.turn(ending=situation, ending_way=way)
    last = await visitor.finished(await submit(visitor))
    assert (last.body["state"], last.body["failure_code"], last.body["output"]) == ("failed", way, [])
