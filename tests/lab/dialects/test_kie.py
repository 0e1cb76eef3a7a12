"""Kie.ai: codes in a 200, JSON within JSON, a signature that spares the body."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.kie import KEY, PATH, SECRET

pytestmark = pytest.mark.parametrize("name", ["kie"])


async def submit(visitor: Visitor, model: str = "nano-banana-2", **wishes: Any) -> Any:
    """A submit with these wishes; the whole answer."""
    body = {"model": model, "input": {"prompt": "a fox", **wishes}}
    return await visitor.ask(Asked("POST", PATH, body, headers=KEY))


async def polled(visitor: Visitor, submitted: Any) -> Any:
    """The last record."""
    return (await visitor.finished(submitted)).body


async def test_a_submit_is_answered_with_nothing_but_an_id(visitor: Visitor) -> None:
    submitted = await submit(visitor, aspect_ratio="16:9", resolution="2K", output_format="jpg")
    assert submitted.body == {
        "code": 200,
        "msg": "success",
        "data": {"taskId": submitted.body["data"]["taskId"]},
    }
    item = await visitor.item()
    wide, high = map(int, item["size"].split("x"))
    assert abs(wide / high - 16 / 9) < 0.01
    assert item["details"] == {"aspect_ratio": "16:9", "resolution": "2K", "output_format": "jpg"}


async def test_the_result_is_a_text_that_holds_json(visitor: Visitor) -> None:
    record = (await polled(visitor, await submit(visitor)))["data"]
    assert isinstance(record["resultJson"], str)
    assert len(json.loads(record["resultJson"])["resultUrls"]) == 1
    assert json.loads(record["param"])["input"]["prompt"] == "a fox"
    assert record["completeTime"] >= record["createTime"]


@pytest.mark.parametrize(
    ("model", "wishes", "code"),
    [
        ("nano-banana-9", {}, 422),
        ("nano-banana-2", {"aspect_ratio": "1:8"}, 422),
        ("nano-banana-2", {"n": 2}, 422),
        ("nano-banana-2", {"resolution": "8K"}, 422),
        ("nano-banana-2", {"image_urls": ["https://h/1.png"]}, 422),
        ("nano-banana-2-lite", {"resolution": "1K"}, 422),
        ("nano-banana-2-lite", {"image_urls": [data_url(picture())]}, 451),
    ],
)
async def test_a_mistake_is_a_code_in_a_200(
    visitor: Visitor, model: str, wishes: dict[str, Any], code: int
) -> None:
    refused = await submit(visitor, model, **wishes)
    assert (refused.status, refused.body["code"], refused.body["data"]) == (200, code, None)
    assert await visitor.accepted() == 0


async def test_a_wrong_key_is_a_code_in_a_200(visitor: Visitor) -> None:
    refused = await visitor.ask(Asked("POST", PATH, {}, headers={"Authorization": "Bearer another"}))
    assert (refused.status, refused.body["code"]) == (200, 401)


async def test_both_words_for_waiting_are_shown(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    poll = visitor.speaker.poll((await submit(visitor)).body)
    states = [(await visitor.ask(poll)).body["data"]["state"] for _ in range(4)]
    assert sorted(set(states)) == ["queuing", "waiting"]


async def test_the_envelope_may_repeat_why_a_task_has_failed(visitor: Visitor) -> None:
    seen = {}
    for way in ("500", "repeated"):
        await visitor.turn(ending="failed", ending_way=way)
        told = await polled(visitor, await submit(visitor))
        seen[way] = (told["code"], told["data"]["state"], told["data"]["failCode"])
    assert seen == {"500": (200, "fail", "500"), "repeated": (501, "fail", "501")}


async def test_a_callback_is_the_polls_answer_and_its_signature_covers_the_id_only(
    visitor: Visitor, caller: Caller
) -> None:
    submitted = await visitor.submit(callback_url=caller.callback_url)
    last = await polled(visitor, submitted)
    await caller.until(lambda: len(caller.taken) == 1)
    headers, raw = caller.taken[0]
    told = json.loads(raw)
    assert told.keys() == last.keys()
    assert told["data"] | {"resultJson": ""} == last["data"] | {"resultJson": ""}
    assert len(json.loads(told["data"]["resultJson"])["resultUrls"]) == 1
    message = f"{told['data']['taskId']}.{headers['X-Webhook-Timestamp']}".encode()
    digest = base64.b64encode(hmac.new(SECRET, message, hashlib.sha256).digest()).decode()
    assert headers["X-Webhook-Signature"] == digest
