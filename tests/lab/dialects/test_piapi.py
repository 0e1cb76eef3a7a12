"""PiAPI: task types, words in mixed case, the caller's secret in a header."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.piapi import KEY, PATH

pytestmark = pytest.mark.parametrize("name", ["piapi"])

SCHNELL = {"model": "Qubico/flux1-schnell", "task_type": "txt2img"}
SMALL = {"prompt": "a fox", "width": 256, "height": 256}


async def submit(visitor: Visitor, wishes: dict[str, Any], **fields: Any) -> Any:
    """A submit with these wishes; the whole answer."""
    return await visitor.ask(Asked("POST", PATH, {**SCHNELL, "input": wishes, **fields}, headers=KEY))


async def test_a_submit_is_answered_with_a_record_without_a_state(visitor: Visitor) -> None:
    submitted = await submit(visitor, SMALL)
    assert submitted.body["code"] == 200
    record = submitted.body["data"]
    assert (record["status"], record["output"], record["error"]["code"]) == ("", None, 0)
    assert (await visitor.item())["ids"] == [record["task_id"]]


async def test_words_are_written_with_and_without_a_capital(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    poll = visitor.speaker.poll((await submit(visitor, SMALL)).body)
    words = {(await visitor.ask(poll)).body["data"]["status"] for _ in range(4)}
    assert words == {"Pending", "pending", "Staged", "staged"} & words
    assert len(words) > 2


@pytest.mark.parametrize("count", [1, 3])
async def test_one_picture_has_a_field_and_several_have_a_list(visitor: Visitor, count: int) -> None:
    submitted = await submit(visitor, {**SMALL, "batch_size": count})
    record = (await visitor.finished(submitted)).body["data"]
    assert record["output"]["image_url"].startswith("http")
    assert (record["output"]["image_urls"] is None) == (count == 1)
    assert len(visitor.speaker.pictures(await visitor.finished(submitted))) == count
    assert record["meta"]["usage"]["consume"] == 20_000 * count


@pytest.mark.parametrize(
    ("fields", "wishes"),
    [
        ({"model": "Qubico/flux9"}, {}),
        ({"task_type": "imagine"}, {}),
        ({"model": "Qubico/flux1-dev"}, {"batch_size": 2}),
        ({}, {"batch_size": 5}),
        ({}, {"width": 2048, "height": 1024}),
        ({}, {"denoise": 0.5}),
        ({}, {"guidance_scale": "2"}),
        ({"task_type": "img2img"}, {"image": "https://127.0.0.1:1/none.png"}),
        ({"config": {"webhook_config": {"endpoint": "ftp://h/"}}}, {}),
        ({"config": {"service_mode": "secret"}}, {}),
    ],
)
async def test_a_mistake_is_named_beside_the_data(
    visitor: Visitor, fields: dict[str, Any], wishes: dict[str, Any]
) -> None:
    refused = await submit(visitor, {**SMALL, **wishes}, **fields)
    assert (refused.status, refused.body["code"]) == (400, 400)
    assert refused.body["data"]["error"]["message"]
    assert await visitor.accepted() == 0


async def test_pictures_are_fetched_and_not_sent_along(visitor: Visitor, caller: Caller) -> None:
    edit = {"prompt": "a fox", "image": caller.picture_url}
    await submit(visitor, edit, task_type="img2img")
    assert (await visitor.item())["operation"] == "edit"
    refused = await submit(visitor, {**edit, "image": data_url(picture())}, task_type="img2img")
    assert refused.status == 400


async def test_a_callback_shows_the_secret_that_came_with_the_task_or_nothing(
    visitor: Visitor, caller: Caller
) -> None:
    for secret in ("our own words", None):
        address = {"endpoint": caller.callback_url} | ({"secret": secret} if secret else {})
        caller.taken.clear()
        submitted = await submit(visitor, SMALL, config={"webhook_config": address})
        await caller.until(lambda: len(caller.taken) == 1)
        headers, raw = caller.taken[0]
        assert headers.get("x-webhook-secret") == secret
        told = json.loads(raw)["data"]
        assert (told["task_id"], told["status"]) == (submitted.body["data"]["task_id"], "completed")
