"""midjourney-proxy: codes, parameters in the prompt, previews, a list of everything, unsigned callbacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.midjourney import KEY, PATH

pytestmark = pytest.mark.parametrize("name", ["midjourney"])


async def submit(visitor: Visitor, prompt: str = "a fox", **fields: Any) -> Any:
    """A submit with these fields; the whole answer."""
    return await visitor.ask(Asked("POST", PATH, {"prompt": prompt, **fields}, headers=KEY))


async def fetched(visitor: Visitor, submitted: Any) -> Any:
    """The task as one look shows it."""
    return (await visitor.ask(visitor.speaker.poll(submitted.body))).body


async def test_what_is_wished_stands_in_the_prompt(visitor: Visitor) -> None:
    submitted = await submit(visitor, "a fox --ar 16:9 --no fog, rain --seed 7 --v 6.1")
    assert (submitted.body["code"], submitted.body["result"].isdecimal()) == (1, True)
    item = await visitor.item()
    wide, high = map(int, item["size"].split("x"))
    assert abs(wide / high - 16 / 9) < 0.01
    told = {name: item["details"][name] for name in ("ar", "no", "seed", "v")}
    assert told == {"ar": "16:9", "no": "fog, rain", "seed": "7", "v": "6.1"}


@pytest.mark.parametrize(
    ("prompt", "fields"),
    [
        ("", {}),
        ("--ar 1:1", {}),
        ("a fox --ar wide", {}),
        ("a fox --ar 1:1 --ar 2:1", {}),
        ("a fox --glitter 3", {}),
        ("a fox", {"base64Array": ["AAAA"]}),
        ("a fox", {"base64Array": ["data:image/png;base64,AAAA"]}),
        ("a fox", {"base64Array": [data_url(picture())] * 6}),
        ("a fox", {"notifyHook": "nowhere"}),
    ],
)
async def test_a_mistake_is_code_four_in_a_200(visitor: Visitor, prompt: str, fields: dict[str, Any]) -> None:
    refused = await submit(visitor, prompt, **fields)
    assert (refused.status, refused.body["code"], refused.body["result"]) == (200, 4, None)
    assert await visitor.accepted() == 0


@pytest.mark.parametrize(("headers", "status"), [({}, 200), (KEY, 200), ({"mj-api-secret": "another"}, 401)])
async def test_a_wrong_secret_is_refused_without_a_word_and_none_is_let_in(
    visitor: Visitor, headers: dict[str, str], status: int
) -> None:
    answered = await visitor.ask(Asked("POST", PATH, {"prompt": "a fox"}, headers=headers))
    assert (answered.status, bool(answered.raw)) == (status, status == 200)


async def test_who_comes_after_others_is_told_so(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    answers = [(await submit(visitor)).body for _ in range(3)]
    assert [answer["code"] for answer in answers] == [1, 22, 22]
    assert [answer["properties"].get("numberOfQueues") for answer in answers] == [None, 1, 2]


async def test_an_unknown_id_is_an_empty_answer(visitor: Visitor) -> None:
    answered = await visitor.ask(Asked("GET", "/mj/task/1/fetch", headers=KEY))
    assert (answered.status, answered.raw) == (200, b"")


async def test_while_it_runs_its_address_is_that_of_a_preview(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[0.6, 0.6])
    submitted = await submit(visitor)
    while (task := await fetched(visitor, submitted))["status"] in {"NOT_START", "SUBMITTED"}:
        assert task["imageUrl"] is None
    assert task["status"] == "IN_PROGRESS"
    assert task["progress"].endswith("%")
    last = (await visitor.finished(submitted)).body
    assert (last["status"], last["progress"]) == ("SUCCESS", "100%")
    assert last["imageUrl"] not in (None, task["imageUrl"])


async def test_the_state_comes_back_everywhere(visitor: Visitor, caller: Caller) -> None:
    submitted = await submit(visitor, state="ours-1", notifyHook=caller.callback_url)
    await visitor.finished(submitted)
    listed = (await visitor.ask(Asked("GET", "/mj/task/list", headers=KEY))).body
    by_ids = Asked("POST", "/mj/task/list-by-condition", {"ids": [submitted.body["result"]]}, headers=KEY)
    found = (await visitor.ask(by_ids)).body
    assert [task["state"] for task in (*listed, *found)] == ["ours-1", "ours-1"]
    await caller.until(lambda: len(caller.taken) == 3)
    assert {json.loads(raw)["state"] for _, raw in caller.taken} == {"ours-1"}


async def test_the_line_is_listed(visitor: Visitor) -> None:
    await submit(visitor)
    await visitor.item()
    await visitor.turn(latency_s=[30, 30])
    waiting = (await submit(visitor)).body["result"]
    listed = (await visitor.ask(Asked("GET", "/mj/task/queue", headers=KEY))).body
    assert [task["id"] for task in listed] == [waiting]


async def test_every_change_is_told_once_and_proved_by_nothing(visitor: Visitor, caller: Caller) -> None:
    await visitor.turn(latency_s=[0.2, 0.2])
    await submit(visitor, notifyHook=caller.callback_url)
    await caller.until(lambda: len(caller.taken) == 3)
    told = [json.loads(raw) for _, raw in caller.taken]
    assert [task["status"] for task in told] == ["IN_PROGRESS", "IN_PROGRESS", "SUCCESS"]
    assert not [header for headers, _ in caller.taken for header in headers if "sign" in header.lower()]


async def test_the_proxys_own_time_out_is_told_in_chinese(visitor: Visitor) -> None:
    await visitor.turn(ending="failed", ending_way="timeout")
    task = (await visitor.finished(await submit(visitor))).body
    assert (task["status"], task["failReason"]) == ("FAILURE", "任务超时")
