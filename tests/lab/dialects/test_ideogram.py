"""Ideogram: at once or with an id, callbacks only of successes, unsafe pictures, keys, mistakes."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from PIL import Image

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.forms import FORM_TYPE, form
from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Visitor, picture

pytestmark = pytest.mark.parametrize("name", ["ideogram"])
KEY = {"Api-Key": "ideogram-test-api-key"}
WORDS = {"prompt": PROMPT}
IMAGE = ("image", picture())
SIZE = "x".join(map(str, Image.open(io.BytesIO(picture())).size))


async def sent(
    visitor: Visitor, endpoint: str, fields: Mapping[str, object], files: Iterable[tuple[str, bytes]] = ()
) -> Answered:
    headers = {**KEY, **FORM_TYPE}
    return await visitor.ask(
        Asked("POST", f"/v2/image/{endpoint}", data=form(fields, files), headers=headers)
    )


async def test_without_async_the_answer_has_the_pictures(visitor: Visitor) -> None:
    await visitor.turn(small_pictures=True)
    body = (await sent(visitor, "generate/ideogram-4-5", {**WORDS, "num_images": 2})).body
    assert [item["is_image_safe"] for item in body["data"]] == [True, True]
    asked = Asked("POST", "/v2/image/generate/ideogram-3", {**WORDS, "aspect_ratio": "16x9"}, headers=KEY)
    told = (await visitor.ask(asked)).body
    assert told["data"][0]["resolution"] == "1312x736"
    assert told["generation_id"]


async def test_with_async_or_a_callback_the_answer_has_an_id_alone(visitor: Visitor, caller: Caller) -> None:
    for fields in ({"async": "true"}, {"webhook_url": caller.callback_url}):
        body = (await sent(visitor, "generate/ideogram-4-5", {**WORDS, **fields})).body
        assert "data" not in body
        assert body["generation_id"]


async def test_the_callback_is_what_an_answer_at_once_would_be(visitor: Visitor, caller: Caller) -> None:
    await visitor.turn(small_pictures=True)
    submitted = await visitor.submit(callback_url=caller.callback_url)
    await caller.until(lambda: bool(caller.taken))
    headers, raw = caller.taken[0]
    body = json.loads(raw)
    assert body["generation_id"] == submitted.body["generation_id"]
    assert headers["X-Ideogram-Webhook-Generation-Id"] == body["generation_id"]
    assert body["data"][0]["is_image_safe"] is True
    jwks = await visitor.ask(Asked("GET", "/v1/.well-known/jwks.json"))
    assert [key["kid"] for key in jwks.body["keys"]] == [headers["X-Ideogram-Webhook-Key-Id"]]


async def test_failures_are_not_called_back(visitor: Visitor, caller: Caller) -> None:
    await visitor.turn(ending="failed")
    last = await visitor.finished(await visitor.submit(callback_url=caller.callback_url))
    assert last.body["status"] == "failed"
    await asyncio.sleep(0.3)
    assert caller.taken == []


async def test_unsafe_pictures_complete_the_generation_and_are_billed(
    visitor: Visitor, caller: Caller
) -> None:
    await visitor.turn(ending="blocked", ending_way="unsafe")
    last = await visitor.finished(await visitor.submit(n=2, callback_url=caller.callback_url))
    assert last.body["status"] == "completed"
    assert [(item["url"], item["is_image_safe"]) for item in last.body["data"]] == [("", False)] * 2
    assert (await visitor.item())["billed"] == 2
    await caller.until(lambda: bool(caller.taken))
    assert json.loads(caller.taken[0][1])["data"] == last.body["data"]


async def test_some_pictures_may_be_unsafe(visitor: Visitor) -> None:
    await visitor.turn(partial=1, seed=3, small_pictures=True)
    last = await visitor.finished(await visitor.submit(n=4))
    assert len(last.body["data"]) == 4
    assert 0 < len(visitor.speaker.pictures(last)) < 4


async def test_a_policy_fails_the_generation_or_the_call(visitor: Visitor) -> None:
    await visitor.turn(ending="blocked", ending_way="policy")
    last = await visitor.finished(await visitor.submit())
    assert (last.body["status"], last.body["failure_reason"]) == ("failed", "content_policy_violation")
    assert (await sent(visitor, "generate/ideogram-4-5", WORDS)).status == 422


async def test_the_older_endpoint_wants_the_callback_in_the_query(visitor: Visitor, caller: Caller) -> None:
    path = "/v1/ideogram-v4/async/generate"
    data = form({"text_prompt": PROMPT, "resolution": "1024x1024"})
    asked = Asked("POST", path, data=data, headers={**KEY, **FORM_TYPE})
    refused = await visitor.ask(asked)
    assert refused.body["error"] == "query.webhook_url: field required"
    query = urlencode({"webhook_url": caller.callback_url})
    accepted = await visitor.ask(replace(asked, path=f"{path}?{query}"))
    await caller.until(lambda: bool(caller.taken))
    poll = Asked("GET", f"/v1/generations/{accepted.body['generation_id']}", headers=KEY)
    assert (await visitor.ask(poll)).body["status"] == "completed"


@pytest.mark.parametrize(
    ("endpoint", "fields", "files", "operation", "size"),
    [
        ("generate/ideogram-4", {"resolution": "1440x2880"}, [], "generate", "1440x2880"),
        ("generate/ideogram-4-5", {"size": "source"}, [("images", picture())], "edit", SIZE),
        ("generate/ideogram-4-5", {"size": "320x256"}, [("images", picture())] * 5, "edit", "320x256"),
        ("remix/ideogram-3", {"resolution": "1024x1024"}, [IMAGE], "edit", "1024x1024"),
        ("precise-edit/ideogram-4-5", {"quality": "very_low"}, [IMAGE], "edit", SIZE),
        (
            "precise-edit/ideogram-4-5",
            {},
            [IMAGE, ("mask", picture("L")), ("reference_images", picture())],
            "inpaint",
            SIZE,
        ),
    ],
)
async def test_each_endpoint_draws(
    visitor: Visitor,
    endpoint: str,
    fields: dict[str, object],
    files: list[tuple[str, bytes]],
    operation: str,
    size: str,
) -> None:
    await visitor.turn(small_pictures=True)
    assert (await sent(visitor, endpoint, {**WORDS, **fields}, files)).status == 200
    item = await visitor.item()
    assert (item["operation"], item["size"], item["model"]) == (operation, size, endpoint.partition("/")[2])
    assert len(item["inputs"]) == len([name for name, _ in files if name != "mask"])


@pytest.mark.parametrize(
    ("endpoint", "fields", "files", "told"),
    [
        ("generate/ideogram-4-5", {"size": "1000x1000"}, [], "size"),
        ("generate/ideogram-4-5", {"size": "source"}, [], "size"),
        ("generate/ideogram-4-5", {"aspect_ratio": "1x1"}, [], "aspect_ratio"),
        ("generate/ideogram-4-5", {"num_images": 9}, [], "num_images"),
        ("generate/ideogram-4-5", {"magic_prompt": "AUTO"}, [], "magic_prompt"),
        ("generate/ideogram-4-5", {"webhook_url": "callback"}, [], "webhook_url"),
        ("generate/ideogram-4-5", {"size": "300x300"}, [("images", picture())], "size"),
        ("generate/ideogram-4-5", {}, [("images", picture())] * 6, "images"),
        ("generate/ideogram-4-5", {}, [("mask", picture("L"))], "mask"),
        ("generate/ideogram-3", {"aspect_ratio": "1x1", "resolution": "1024x1024"}, [], "resolution"),
        ("generate/ideogram-3", {"aspect_ratio": "1:1"}, [], "aspect_ratio"),
        ("inpaint/ideogram-3", {}, [IMAGE], "mask"),
        ("precise-edit/ideogram-4-5", {}, [("image", b"no picture")], "image"),
    ],
)
async def test_each_mistake_is_named(
    visitor: Visitor, endpoint: str, fields: dict[str, object], files: list[tuple[str, bytes]], told: str
) -> None:
    refused = await sent(visitor, endpoint, {**WORDS, **fields}, files)
    assert refused.status == 400
    assert refused.body["error"].startswith(f"{told}:")
    assert await visitor.accepted() == 0


async def test_an_endpoint_that_is_not_there_says_so(visitor: Visitor) -> None:
    assert (await sent(visitor, "generate/ideogram-9", WORDS)).status == 404
