"""The relay: the record that polls and callbacks share, the spellings of many, its fields."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.relay import KEY, PATH

pytestmark = pytest.mark.parametrize("name", ["relay"])


async def submit(visitor: Visitor, **fields: Any) -> Any:
    """A submit with these fields; the whole answer."""
    body = {"model": "gpt-image-2", "prompt": "a fox", **fields}
    return await visitor.ask(Asked("POST", f"{PATH}/generations", body, headers=KEY))


async def test_a_submit_is_answered_with_an_id_and_a_word(visitor: Visitor) -> None:
    accepted = await submit(visitor)
    assert (accepted.status, set(accepted.body)) == (200, {"id", "status"})


async def test_tasks_speak_in_the_words_of_whoever_draws_them(visitor: Visitor) -> None:
    submits = [await submit(visitor) for _ in range(3)]
    assert [accepted.body["status"] for accepted in submits] == ["queued", "pending", "submitted"]
    ended = [(await visitor.finished(accepted)).body["status"] for accepted in submits]
    assert ended == ["succeeded", "completed", "succeeded"]


async def test_callbacks_have_the_record_of_a_poll(visitor: Visitor, caller: Caller) -> None:
    accepted = await submit(visitor, callback_url=caller.callback_url, n=2)
    await caller.until(lambda: len(caller.taken) == 2)
    first, last = (json.loads(raw) for _, raw in caller.taken)
    polled = (await visitor.finished(accepted)).body
    assert (first["id"], first["images"], first["error"]) == (accepted.body["id"], [], None)
    assert set(last) == set(polled) == {"id", "status", "progress", "images", "error"}
    assert (last["progress"], len(last["images"])) == (100, 2)
    assert all(headers["X-Signature"].startswith("sha256=") for headers, _ in caller.taken)


async def test_without_an_address_nobody_is_called(visitor: Visitor, caller: Caller) -> None:
    await visitor.finished(await submit(visitor))
    assert caller.taken == []


async def test_pictures_may_come_inside_a_poll_but_never_inside_a_callback(
    visitor: Visitor, caller: Caller
) -> None:
    await visitor.turn(variant="inline")
    accepted = await submit(visitor, callback_url=caller.callback_url)
    last = await visitor.finished(accepted)
    assert [set(image) for image in last.body["images"]] == [{"b64_json"}]
    await caller.until(lambda: len(caller.taken) == 2)
    assert [set(image) for image in json.loads(caller.taken[-1][1])["images"]] == [{"url"}]


async def test_pictures_make_it_an_edit(visitor: Visitor, caller: Caller) -> None:
    await submit(visitor, image_urls=[caller.picture_url, data_url(picture())], seed=7)
    item = await visitor.item()
    assert item["inputs"] == [hashlib.sha256(picture()).hexdigest()] * 2
    assert (item["operation"], item["details"]["seed"]) == ("edit", 7)


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": ""},
        {"model": "another"},
        {"n": 5},
        {"n": "1"},
        {"size": "64x64"},
        {"seed": -1},
        {"callback_url": "ftp://host"},
        {"image_urls": "https://host.example/1.png"},
        {"image_urls": ["no picture"]},
        {"reference": "ours"},
    ],
)
async def test_a_wrong_field_is_refused(visitor: Visitor, fields: dict[str, Any]) -> None:
    refused = await submit(visitor, **fields)
    assert (refused.status, refused.body["error"]["code"]) == (422, "validation_error")
    assert next(iter(fields)) in refused.body["error"]["message"]
    assert await visitor.accepted() == 0


async def test_a_task_that_there_is_not_is_not_found(visitor: Visitor) -> None:
    refused = await visitor.ask(Asked("GET", f"{PATH}/tasks/img_1", headers=KEY))
    assert (refused.status, refused.body["error"]["code"]) == (404, "not_found")
