"""Volcengine Visual: signatures to the byte, actions and versions, polls by POST, the outer code before all else."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Visitor, data_url, picture
from tests.lab.dialects.speakers.volc_visual import GET_RESULT, KEY_PAIR, MODEL, SUBMIT, asked, signature

pytestmark = pytest.mark.parametrize("name", ["volc-visual"])

VECTOR = "119d4c75da067c6cdd77dc87fb4e8250941c3bd74b530dca62825cd69f1e46a0"
PICTURE = base64.b64encode(picture()).decode()


async def submit(visitor: Visitor, fields: dict[str, Any] | None = None, **other: Any) -> Any:
    """A submit with these fields; the whole answer."""
    body = {"req_key": MODEL, "prompt": "a fox", "force_single": True, **(fields or {})}
    return await visitor.ask(asked(SUBMIT, body, **other))


async def look(visitor: Visitor, task_id: str, **fields: Any) -> Any:
    """A poll with these fields; the whole answer."""
    return await visitor.ask(asked(GET_RESULT, {"req_key": MODEL, "task_id": task_id, **fields}))


def test_the_speaker_signs_as_the_providers_own_client_does(name: str) -> None:
    """The expected value was computed once with volcengine 1.0.229 (auth/SignerV4.py) for this very call."""
    query = f"Action={SUBMIT}&Version=2022-08-31"
    assert signature(KEY_PAIR[1], ("/", query), b'{"prompt": "a fox"}', "20261129T120000Z") == VECTOR


async def test_an_answer_is_wrapped_in_a_code(visitor: Visitor) -> None:
    accepted = await submit(visitor)
    assert accepted.status == 200
    assert accepted.body["code"] == accepted.body["status"] == 10000
    assert list(accepted.body["data"]) == ["task_id"]


@pytest.mark.parametrize(
    ("other", "status", "code"),
    [
        ({"secret": "another"}, 401, "SignatureDoesNotMatch"),
        ({"key": "another"}, 401, "InvalidAccessKey"),
        ({"late_s": 1000}, 400, "InvalidTimestamp"),
        ({"late_s": -1000}, 400, "InvalidTimestamp"),
        ({"X_Date": "yesterday"}, 400, "InvalidTimestamp"),
        ({"X_Date": ""}, 400, "InvalidTimestamp"),
        ({"instead": "{}"}, 401, "SignatureDoesNotMatch"),
        ({"path": "/another/"}, 401, "SignatureDoesNotMatch"),
        ({"Host": "another.example"}, 401, "SignatureDoesNotMatch"),
        ({"X_Content_Sha256": "0" * 64}, 401, "SignatureDoesNotMatch"),
        ({"Content_Type": "application/json; charset=utf-8"}, 401, "SignatureDoesNotMatch"),
        ({"Authorization": ""}, 401, "MissingAuthenticationToken"),
        ({"Authorization": "Bearer key"}, 400, "InvalidAuthorization"),
        ({"version": "2020-08-26"}, 404, "InvalidActionOrVersion"),
    ],
)
async def test_the_gateway_refuses_in_a_shape_of_its_own(
    visitor: Visitor, other: dict[str, Any], status: int, code: str
) -> None:
    refused = await submit(visitor, **other)
    assert (refused.status, refused.body["ResponseMetadata"]["Error"]["Code"]) == (status, code)
    assert await visitor.accepted() == 0


async def test_an_unknown_action_is_not_found(visitor: Visitor) -> None:
    refused = await visitor.ask(asked("CVProcess", {"req_key": MODEL}))
    assert (refused.status, "ResponseMetadata" in refused.body) == (404, True)


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": None},
        {"prompt": "x" * 801},
        {"req_key": "jimeng_t2i_v99"},
        {"width": 1024},
        {"width": 512, "height": 512},
        {"width": 8192, "height": 4096},
        {"size": 1000},
        {"scale": 2},
        {"seed": "7"},
        {"force_single": "true"},
        {"n": 1},
        {"callback_url": "https://shop.example/callback"},
        {"image_urls": [1]},
        {"image_urls": ["https://127.0.0.1:1/none.png"]},
        {"binary_data_base64": [data_url(picture())]},
        {"binary_data_base64": [PICTURE] * 11},
    ],
)
async def test_a_wrong_field_is_refused(visitor: Visitor, fields: dict[str, Any]) -> None:
    refused = await submit(visitor, fields)
    assert (refused.status, refused.body["code"], refused.body["data"]) == (400, 50200, None)
    assert await visitor.accepted() == 0


async def test_pictures_come_bare_and_by_address(visitor: Visitor, caller: Caller) -> None:
    await submit(visitor, {"image_urls": [caller.picture_url], "binary_data_base64": [PICTURE]})
    item = await visitor.item()
    assert (item["operation"], item["inputs"]) == ("edit", [hashlib.sha256(picture()).hexdigest()] * 2)


@pytest.mark.parametrize(
    ("fields", "size"),
    [({"width": 2048, "height": 1024}, "2048x1024"), ({"size": 1 << 20}, "1024x1024"), ({}, "2048x2048")],
)
async def test_a_size_is_two_sides_or_an_area(visitor: Visitor, fields: dict[str, Any], size: str) -> None:
    await submit(visitor, fields)
    assert (await visitor.item())["size"] == size


async def test_left_to_itself_the_model_makes_more_than_one_picture(visitor: Visitor) -> None:
    last = await visitor.finished(await submit(visitor, {"force_single": False}))
    assert len(last.body["data"]["image_urls"]) == 2


async def test_pictures_are_addresses_only_where_they_were_asked_for(visitor: Visitor) -> None:
    task_id = (await submit(visitor)).body["data"]["task_id"]
    await visitor.item()
    told = (await look(visitor, task_id, req_json='{"return_url": true}')).body["data"]
    assert (len(told["image_urls"]), told["binary_data_base64"]) == (1, [])
    told = (await look(visitor, task_id)).body["data"]
    assert told["image_urls"] is None
    [text] = told["binary_data_base64"]
    assert base64.b64decode(text).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "fields",
    [{"req_json": {"return_url": True}}, {"req_json": "{"}, {"req_json": "[]"}, {"return_url": True}],
)
async def test_wishes_are_json_inside_json(visitor: Visitor, fields: dict[str, Any]) -> None:
    task_id = (await submit(visitor)).body["data"]["task_id"]
    assert (await look(visitor, task_id, **fields)).body["code"] == 50200


async def test_what_is_not_found_is_a_state_and_no_error(visitor: Visitor) -> None:
    task_id = (await submit(visitor)).body["data"]["task_id"]
    for answered in (await look(visitor, "1"), await look(visitor, task_id, req_key="jimeng_t2i_v30")):
        assert (answered.status, answered.body["code"]) == (200, 10000)
        assert answered.body["data"] == {"status": "not_found"}


async def test_states_come_in_their_order(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[0.5, 0.5])
    poll = visitor.speaker.poll((await submit(visitor)).body)
    seen: list[str] = []
    async with asyncio.timeout(60):
        while "done" not in seen:
            word = (await visitor.ask(poll)).body["data"]["status"]
            seen += [word] if word not in seen else []
            await asyncio.sleep(0.02)
    assert seen == ["in_queue", "generating", "done"]


@pytest.mark.parametrize(
    ("situation", "way", "status", "code", "data"),
    [
        ("blocked", "50411", 400, 50411, None),
        ("blocked", "done_but_blocked", 200, 50511, "done"),
        ("failed", "done_with_error", 200, 50500, "done"),
        ("failed", "expired", 200, 10000, "expired"),
    ],
)
async def test_a_bad_end_is_told_by_the_outer_code(
    visitor: Visitor, situation: str, way: str, status: int, code: int, data: str | None
) -> None:
    await visitor.turn(ending=situation, ending_way=way)
    last = await visitor.finished(await submit(visitor))
    assert (last.status, last.body["code"]) == (status, code)
    assert (last.body["data"] or {}).get("status") == data


async def test_the_body_of_a_poll_is_json(visitor: Visitor) -> None:
    refused = await visitor.ask(asked(GET_RESULT, [1]))
    assert json.loads(refused.raw)["code"] == 50200
