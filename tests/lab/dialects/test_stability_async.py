"""Stability's slow endpoints: the status is the state, the header says how the picture comes."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.dialects.forms import form
from tests.lab.dialects.speaker import Answered, Visitor, picture

pytestmark = pytest.mark.parametrize("name", ["stability-async"])


async def polled(visitor: Visitor, accepted: Any, accept: str = "image/*") -> Answered:
    poll = visitor.speaker.poll(accepted)
    assert poll is not None
    return await visitor.ask(replace(poll, headers={**poll.headers, "Accept": accept}))


async def test_a_poll_is_202_until_the_picture_is_there(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[0.3, 0.3], small_pictures=True)
    accepted = await visitor.submit()
    assert list(accepted.body) == ["id"]
    open_still = await polled(visitor, accepted.body)
    assert (open_still.status, open_still.body["status"]) == (202, "in-progress")
    told = (await visitor.finished(accepted)).body
    done = await polled(visitor, accepted.body)
    assert (done.status, done.headers["finish-reason"]) == (200, "SUCCESS")
    assert base64.b64decode(told["result"]) == done.raw
    assert told["finish_reason"] == "SUCCESS"


async def test_an_id_that_is_unknown_or_too_old_is_not_found(visitor: Visitor) -> None:
    assert (await polled(visitor, {"id": "nothing"})).status == 404
    await visitor.turn(expire_result_s=0.3, small_pictures=True)
    accepted = await visitor.submit()
    assert (await visitor.finished(accepted)).status == 200
    await asyncio.sleep(0.3)
    gone = await polled(visitor, accepted.body)
    assert (gone.status, gone.body["name"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("ending", "way", "status", "word"),
    [
        ("blocked", "moderation", 403, "content_moderation"),
        ("invalid_request", "bad_request", 400, "bad_request"),
    ],
)
async def test_a_bad_end_is_a_status_of_the_poll(
    visitor: Visitor, ending: str, way: str, status: int, word: str
) -> None:
    await visitor.turn(ending=ending, ending_way=way)
    last = await visitor.finished(await visitor.submit())
    assert (last.status, last.body["name"]) == (status, word)


async def test_a_filtered_picture_comes_with_the_status_200(visitor: Visitor) -> None:
    await visitor.turn(ending="blocked", ending_way="filtered")
    last = await visitor.finished(await visitor.submit())
    assert (last.status, last.body["finish_reason"]) == (200, "CONTENT_FILTERED")


@pytest.mark.parametrize(
    ("path", "fields", "file", "told"),
    [
        ("upscale/creative", {}, "image", "prompt"),
        ("upscale/creative", {"prompt": "a", "creativity": 0.9}, "image", "creativity"),
        ("upscale/creative", {"prompt": "a"}, "subject_image", "subject_image"),
        ("edit/replace-background-and-relight", {}, "subject_image", "background_prompt"),
        ("edit/replace-background-and-relight", {"background_prompt": "a"}, "image", "image"),
    ],
)
async def test_each_mistake_is_named(
    visitor: Visitor, path: str, fields: dict[str, object], file: str, told: str
) -> None:
    asked = visitor.speaker.submit()
    data = form(fields, [(file, picture())])
    refused = await visitor.ask(replace(asked, path=f"/v2beta/stable-image/{path}", data=data))
    assert refused.status == 400
    assert refused.body["errors"][0].startswith(f"{told}:")
    assert await visitor.accepted() == 0
