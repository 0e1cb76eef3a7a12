"""Black Forest Labs: what is its own. There is no client of its own that could be asked."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Answered, Asked, Visitor, picture
from tests.lab.dialects.speakers.bfl import KEY

pytestmark = pytest.mark.parametrize("name", ["bfl"])
RAW = base64.b64encode(picture()).decode()


async def submit(visitor: Visitor, model: str = "flux-2-pro", **fields: Any) -> Answered:
    """A submit with these fields; the whole answer."""
    return await visitor.ask(Asked("POST", f"/v1/{model}", {"prompt": "a fox", **fields}, headers=KEY))


@pytest.mark.parametrize(
    ("model", "fields", "where", "kind"),
    [
        ("flux-2-pro", {"prompt": None}, ["body", "prompt"], "missing"),
        ("flux-2-pro", {"width": 1000}, ["body", "width"], "value_error"),
        ("flux-2-pro", {"width": 2048, "height": 2048}, ["body", "width"], "value_error"),
        ("flux-2-pro", {"aspect_ratio": "1:1"}, ["body", "aspect_ratio"], "extra_forbidden"),
        ("flux-2-klein-9b", {"input_image_5": RAW}, ["body", "input_image_5"], "extra_forbidden"),
        ("flux-kontext-pro", {"width": 1024}, ["body", "width"], "extra_forbidden"),
        ("flux-pro-1.1", {"height": 720}, ["body", "height"], "value_error"),
        ("flux-pro-1.0-fill", {}, ["body", "image"], "missing"),
        (
            "flux-2-pro",
            {"input_image": f"data:image/png;base64,{RAW}"},
            ["body", "input_image"],
            "value_error",
        ),
    ],
)
async def test_a_wrong_field_is_named_in_a_list_of_details(
    visitor: Visitor, model: str, fields: dict[str, Any], where: list[str], kind: str
) -> None:
    refused = await submit(visitor, model, **fields)
    [detail] = refused.body["detail"]
    assert (refused.status, detail["loc"], detail["type"]) == (422, where, kind)
    assert await visitor.accepted() == 0


async def test_an_answer_names_either_the_polling_or_the_callback(visitor: Visitor, caller: Caller) -> None:
    polled = (await submit(visitor)).body
    called = (await submit(visitor, webhook_url=caller.callback_url)).body
    assert set(polled) == {"id", "cost", "polling_url"}
    assert set(called) == {"id", "cost", "status", "webhook_url"}
    assert polled["polling_url"].startswith(f"{visitor.base}/bfl/")
    await caller.until(lambda: bool(caller.taken))


async def test_pictures_are_numbered_fields(visitor: Visitor, caller: Caller) -> None:
    await submit(visitor, input_image=RAW, input_image_2=caller.picture_url, width=256, height=256)
    item = await visitor.item()
    assert item["inputs"] == [hashlib.sha256(picture()).hexdigest()] * 2
    assert (item["operation"], item["size"]) == ("edit", "256x256")


@pytest.mark.parametrize(
    ("way", "word"), [("request", "Request Moderated"), ("content", "Content Moderated")]
)
async def test_moderation_is_a_state_without_a_result(visitor: Visitor, way: str, word: str) -> None:
    await visitor.turn(ending="blocked", ending_way=way)
    last = await visitor.finished(await submit(visitor))
    assert (last.status, last.body["status"], last.body["result"]) == (200, word, None)
    assert last.body["details"]


@pytest.mark.parametrize(
    ("ending", "way", "code"),
    [
        ("failed", "error", "generation_timeout"),
        ("failed", "internal", "internal_error"),
        ("blocked", "policy", "content_policy_violation"),
        ("invalid_request", "image", "invalid_image"),
    ],
)
async def test_an_error_says_why_beside_its_state(visitor: Visitor, ending: str, way: str, code: str) -> None:
    await visitor.turn(ending=ending, ending_way=way)
    last = await visitor.finished(await submit(visitor))
    assert (last.body["status"], last.body["error"], last.body["result"]) == ("Error", code, None)
    assert last.body["message"]


async def test_an_id_that_nobody_knows_is_a_state(visitor: Visitor) -> None:
    asked = Asked("GET", "/v1/get_result?id=00000000-0000-0000-0000-000000000000", headers=KEY)
    assert (await visitor.ask(asked)).body["status"] == "Task not found"


async def test_a_task_may_be_known_at_its_own_cluster_only(visitor: Visitor) -> None:
    await visitor.turn(variant="cluster")
    accepted = await submit(visitor)
    plain = Asked("GET", f"/v1/get_result?id={accepted.body['id']}", headers=KEY)
    assert (await visitor.ask(plain)).body["status"] == "Task not found"
    assert (await visitor.finished(accepted)).body["status"] == "Ready"


async def test_a_callback_is_signed_with_the_secret_that_came_with_the_task(
    visitor: Visitor, caller: Caller
) -> None:
    for secret in ("one secret", None):
        await submit(visitor, webhook_url=caller.callback_url, webhook_secret=secret)
        await visitor.item(is_told=True)
    (signed, raw), (unsigned, _) = caller.taken
    digest = hmac.new(b"one secret", raw, hashlib.sha256).hexdigest()
    assert signed["X-BFL-Signature"] == f"sha256={digest}"
    assert "X-BFL-Signature" not in unsigned


@pytest.mark.parametrize(
    ("knobs", "members"),
    [
        ({}, {"id", "status", "timestamp", "result"}),
        ({"variant": "task_id"}, {"task_id", "status", "timestamp", "result"}),
        ({"ending": "failed", "ending_way": "error"}, {"id", "status", "timestamp", "error", "message"}),
        ({"ending": "blocked", "ending_way": "request"}, {"id", "status", "timestamp", "result", "details"}),
    ],
)
async def test_callbacks_have_a_shape_of_their_own(
    visitor: Visitor, caller: Caller, knobs: dict[str, Any], members: set[str]
) -> None:
    await visitor.turn(**knobs)
    await submit(visitor, webhook_url=caller.callback_url)
    await caller.until(lambda: bool(caller.taken))
    assert set(json.loads(caller.taken[0][1])) == members


async def test_a_picture_can_be_fetched_for_ten_minutes_from_the_end(visitor: Visitor) -> None:
    last = await visitor.finished(await submit(visitor))
    result = last.body["result"]
    sealed = result["sample"].rpartition("/")[2]
    until = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))[12:].decode().split("|")[2]
    assert float(until) == pytest.approx(result["end_time"] + 600, abs=1)
