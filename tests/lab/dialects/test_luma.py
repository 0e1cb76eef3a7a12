"""Luma: what is its own, and its own client as a witness."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import lumaai
import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Answered, Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.luma import KEY, PATH

pytestmark = pytest.mark.parametrize("name", ["luma"])


@pytest.fixture
async def client(visitor: Visitor) -> AsyncIterator[lumaai.AsyncLumaAI]:
    """Luma's own client."""
    base_url = f"{visitor.base}/luma/dream-machine/v1"
    async with lumaai.AsyncLumaAI(
        auth_token="luma-test-api-key",
        base_url=base_url,
        max_retries=0,
    ) as client:
        yield client


async def submit(visitor: Visitor, **fields: Any) -> Answered:
    """A submit with these fields; the whole answer."""
    body = {"model": "photon-1", "prompt": "a fox", **fields}
    return await visitor.ask(Asked("POST", f"{PATH}/image", body, headers=KEY))


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"model": "ray-2"}, "model"),
        ({"prompt": "a"}, "prompt"),
        ({"aspect_ratio": "3:2"}, "aspect_ratio"),
        ({"format": "webp"}, "format"),
        ({"modify_image_ref": {"url": data_url(picture())}}, "modify_image_ref.url"),
        ({"image_ref": [{"weight": 0.5}]}, "image_ref.0.url"),
        ({"size": "1024x1024"}, "size"),
    ],
)
async def test_a_wrong_field_is_named_in_one_text(
    visitor: Visitor, fields: dict[str, Any], where: str
) -> None:
    refused = await submit(visitor, **fields)
    assert refused.status == 400
    assert refused.body["detail"].startswith(where)
    assert await visitor.accepted() == 0


async def test_the_whole_request_is_echoed(visitor: Visitor, caller: Caller) -> None:
    accepted = await submit(
        visitor, callback_url=caller.callback_url, style_ref=[{"url": caller.picture_url}]
    )
    assert accepted.status == 201
    assert accepted.body["request"] == {
        "generation_type": "image",
        "model": "photon-1",
        "prompt": "a fox",
        "callback_url": caller.callback_url,
        "style_ref": [{"url": caller.picture_url}],
    }
    await caller.until(lambda: bool(caller.taken))


async def test_a_picture_of_every_kind_is_fetched(visitor: Visitor, caller: Caller) -> None:
    url = caller.picture_url
    await submit(
        visitor,
        modify_image_ref={"url": url, "weight": 1},
        image_ref=[{"url": url}],
        character_ref={"identity0": {"images": [url, url]}},
    )
    assert (await visitor.item())["inputs"] == [hashlib.sha256(picture()).hexdigest()] * 4


async def test_every_change_is_told_without_a_signature(visitor: Visitor, caller: Caller) -> None:
    await submit(visitor, callback_url=caller.callback_url)
    await visitor.item(is_told=True)
    assert [json.loads(raw)["state"] for _, raw in caller.taken] == ["dreaming", "completed"]
    assert not any("signature" in name.lower() for headers, _ in caller.taken for name in headers)


async def test_a_callback_that_is_not_taken_is_given_up_within_a_second(
    visitor: Visitor, caller: Caller
) -> None:
    # There is no such route at the receiver.
    await submit(visitor, callback_url=f"{caller.url}/nobody")
    assert (await visitor.item(is_told=True))["outcome"] == "done"


@pytest.mark.parametrize("way", ["prompt", "image"])
async def test_moderation_is_told_in_words_only(visitor: Visitor, way: str) -> None:
    await visitor.turn(ending="blocked", ending_way=way)
    last = await visitor.finished(await submit(visitor))
    assert (last.body["state"], last.body["assets"]) == ("failed", None)
    assert "moderation" in last.body["failure_reason"]


async def test_a_list_goes_by_limit_and_offset(visitor: Visitor) -> None:
    made = [(await submit(visitor)).body["id"] for _ in range(3)]
    pages = [
        (await visitor.ask(Asked("GET", f"{PATH}?limit=2&offset={offset}", headers=KEY))).body
        for offset in (0, 2)
    ]
    assert [[one["id"] for one in page["generations"]] for page in pages] == [made[:0:-1], made[:1]]
    assert [page["has_more"] for page in pages] == [True, False]


async def test_its_own_client_gets_its_picture(visitor: Visitor, client: lumaai.AsyncLumaAI) -> None:
    made = await client.generations.image.create(
        model="photon-flash-1", prompt="a fox", aspect_ratio="16:9", format="png", sync=True
    )
    assert made.id is not None
    assert made.state == "completed"
    seen = await client.generations.get(made.id)
    assert seen.assets is not None
    assert seen.assets.image is not None
    assert (await visitor.ask(Asked("GET", seen.assets.image))).raw.startswith(b"\x89PNG")
    page = await client.generations.list(limit=10, offset=0)
    assert [one.id for one in page.generations] == [made.id]


async def test_its_own_client_deletes(visitor: Visitor, client: lumaai.AsyncLumaAI) -> None:
    await visitor.turn(latency_s=[30, 30])
    made = await client.generations.image.create(model="photon-1", prompt="a fox")
    assert (made.id is not None, made.state) == (True, "queued")
    await client.generations.delete(str(made.id))
    with pytest.raises(lumaai.NotFoundError):
        await client.generations.get(str(made.id))
    assert (await visitor.item())["outcome"] == "canceled"
