"""Flux Art: keys that replay, points that come back, addresses that are public, errors with details."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.flux_art import KEY, PATH, submit

pytestmark = pytest.mark.parametrize("name", ["flux-art"])

BODY = {"model": "gpt-image-2", "mode": "generate", "prompt": "a fox", "count": 1}


async def test_a_new_task_is_answered_201_with_the_place_to_look(visitor: Visitor) -> None:
    accepted = await visitor.ask(submit(BODY))
    assert (accepted.status, accepted.body["data"]["status"]) == (201, "queued")
    place = accepted.headers["Location"]
    assert place == f"{visitor.base}/flux-art{PATH}/tasks/{accepted.body['data']['id']}"
    assert (await visitor.ask(Asked("GET", place, headers=KEY))).status == 200


async def test_the_same_key_and_body_are_the_same_task(visitor: Visitor) -> None:
    first = await visitor.ask(submit(BODY, "order-1001"))
    await visitor.finished(first)
    again = await visitor.ask(submit(dict(reversed(BODY.items())), "order-1001"))
    assert (again.status, again.body["data"]["status"]) == (200, "succeeded")
    assert again.body["data"]["id"] == first.body["data"]["id"]
    assert again.headers["Location"] == first.headers["Location"]
    assert await visitor.accepted() == 1


async def test_a_key_is_not_good_for_another_body(visitor: Visitor) -> None:
    await visitor.ask(submit(BODY, "order-1001"))
    refused = await visitor.ask(submit({**BODY, "prompt": "a hare"}, "order-1001"))
    assert (refused.status, refused.body["error"]["code"]) == (409, "idempotency_key_reused")
    assert await visitor.accepted() == 1


@pytest.mark.parametrize("key", ["", "short-1", "k" * 129, "with blank 1", "größer-als-8"])
async def test_without_a_good_key_nothing_is_taken(visitor: Visitor, key: str) -> None:
    refused = await visitor.ask(submit(BODY, key))
    assert (refused.status, refused.body["error"]["code"]) == (400, "invalid_request")
    assert await visitor.accepted() == 0


@pytest.mark.parametrize("key", ["k" * 8, "k" * 128, "Order:1001.a_b-c"])
async def test_good_keys_have_eight_to_128_characters(visitor: Visitor, key: str) -> None:
    assert (await visitor.ask(submit(BODY, key))).status == 201


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"prompt": " a  b "}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"mode": None}, "mode"),
        ({"mode": "inpaint"}, "mode"),
        ({"model": "gpt-image-1"}, "model"),
        ({"count": 2}, "count"),
        ({"aspect_ratio": "wide"}, "aspect_ratio"),
        ({"size": "1024*1024"}, "size"),
        ({"quality": "best"}, "quality"),
        ({"image_urls": ["https://host.example/1.png"]}, "image_urls"),
        ({"mode": "edit"}, "image_urls"),
        ({"n": 1}, "n"),
    ],
)
async def test_a_wrong_field_is_told_in_the_details(
    visitor: Visitor, fields: dict[str, Any], field: str
) -> None:
    refused = await visitor.ask(submit({**BODY, **fields}))
    assert (refused.status, refused.body["error"]["code"]) == (422, "validation_error")
    assert [detail["field"] for detail in refused.body["error"]["details"]] == [field]
    assert await visitor.accepted() == 0


@pytest.mark.parametrize(
    "source", [data_url(picture()), "http://host.example/1.png", "ftp://127.0.0.1/1.png"]
)
async def test_pictures_are_public_addresses_only(visitor: Visitor, source: str) -> None:
    refused = await visitor.ask(submit({**BODY, "mode": "edit", "image_urls": [source]}))
    assert (refused.status, refused.body["error"]["code"]) == (400, "invalid_media_url")


async def test_pictures_are_fetched_in_their_order(visitor: Visitor, caller: Caller) -> None:
    urls = [caller.picture_url, caller.picture_url]
    await visitor.ask(submit({**BODY, "mode": "edit", "image_urls": urls, "aspect_ratio": "16:9"}))
    item = await visitor.item()
    assert item["inputs"] == [hashlib.sha256(picture()).hexdigest()] * 2
    assert (item["operation"], item["size"]) == ("edit", "1024x576")


@pytest.mark.parametrize(
    ("quality", "ending", "charged", "given_back"),
    [
        ("high", None, 8, 0),
        ("auto", None, 20, 15),
        ("high", "failed", 8, 8),
        ("auto", "blocked", 20, 20),
    ],
)
async def test_points_are_charged_at_once_and_given_back(
    visitor: Visitor, quality: str, ending: str | None, charged: int, given_back: int
) -> None:
    await visitor.turn(ending=ending)
    accepted = await visitor.ask(submit({**BODY, "quality": quality}))
    assert accepted.body["data"]["usage"]["points_charged"] == charged
    usage = (await visitor.finished(accepted)).body["data"]["usage"]
    assert usage == {"points_charged": charged, "points_refunded": given_back}


async def test_limits_say_how_long_to_wait(visitor: Visitor) -> None:
    for situation, code in (("rate_limited", "rate_limit"), ("concurrency_limited", "concurrent_limit")):
        await visitor.turn(refuse=situation)
        refused = await visitor.ask(submit(BODY))
        assert (refused.status, refused.body["error"]["code"]) == (429, code)
        assert int(refused.headers["Retry-After"]) > 0


async def test_tasks_are_listed_with_the_latest_first(visitor: Visitor) -> None:
    ids = [(await visitor.ask(submit(BODY))).body["data"]["id"] for _ in range(3)]
    listed = await visitor.ask(Asked("GET", f"{PATH}/tasks", headers=KEY))
    assert [task["id"] for task in listed.body["data"]] == ids[::-1]


async def test_models_are_listed_for_whoever_has_a_key(visitor: Visitor) -> None:
    listed = await visitor.ask(Asked("GET", f"{PATH}/models", headers=KEY))
    assert "gpt-image-2" in [model["id"] for model in listed.body["data"]]
    refused = await visitor.ask(Asked("GET", f"{PATH}/models"))
    assert (refused.status, refused.body["error"]["code"]) == (401, "invalid_api_key")


async def test_a_task_that_there_is_not_is_not_found(visitor: Visitor) -> None:
    refused = await visitor.ask(Asked("GET", f"{PATH}/tasks/task_1", headers=KEY))
    assert (refused.status, refused.body["error"]["code"]) == (404, "task_not_found")
