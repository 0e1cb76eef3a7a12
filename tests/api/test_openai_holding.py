"""How long a caller is held, what it gets when that is not long enough, and that nothing is lost meanwhile."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Collection, Sequence
from typing import Any
from unittest.mock import patch
from uuid import UUID

import asyncpg
import openai
import pytest
from starlette.requests import Request

from safelight.api.parts import ApiParts
from safelight.api.waiting import LOOK_S, Held, Waiting
from safelight.db import views
from safelight.db.statements import Connection
from safelight.domain.ids import new_id
from tests.api.door import Answer, Door, running_door
from tests.api.pictures import png
from tests.api.shop import SHOE, Shop, small

BODY = {"prompt": SHOE}


async def ask(door: Door, path: str = "generations", **options: Any) -> Answer:
    headers = options.pop("headers", {})
    return await door.request("POST", f"/v1/images/{path}", json=BODY, headers=headers, **options)


def check_on_its_way(answer: Answer) -> str:
    """It is a task that is still open; returns its id."""
    assert answer.status == 202, answer.body
    task = answer.json
    assert (task["object"], task["status"]) == ("image.task", "queued")
    assert "data" not in task
    assert answer.headers["Location"] == f"/v1/images/tasks/{task['id']}?response_format=b64_json"
    assert int(answer.headers["Retry-After"]) >= 1
    task_id: str = task["id"]
    return task_id


@pytest.mark.parametrize(
    ("path", "prefer", "applied"),
    [
        ("generations", "respond-async", "respond-async"),
        ("generations", "wait=0", "wait=0"),
        ("generations", "wait=0, respond-async", "wait=0"),
        ("generations/async", "", None),
    ],
)
async def test_who_does_not_want_to_wait_gets_the_task_at_once(
    door: Door, path: str, prefer: str, applied: str | None
) -> None:
    async with asyncio.timeout(60):
        answer = await ask(door, path, headers={"Prefer": prefer} if prefer else {})
    task_id = check_on_its_way(answer)
    assert answer.headers.get("Preference-Applied") == applied
    assert (await door.request("GET", f"/v1/tasks/{task_id}")).json["status"] == "processing"


async def test_an_edit_is_answered_at_once_too(door: Door) -> None:
    async with openai.AsyncOpenAI(base_url=f"{door.url}/v1", api_key=door.caller.key) as client:
        answer = await client.images.edit(
            image=png(), prompt="x", extra_headers={"Prefer": "respond-async"}, response_format="url"
        )
    assert answer.data is None
    body = {"prompt": "x", "images": [{"file_id": (await door.upload(png())).json["id"]}]}
    again = await door.request("POST", "/v1/images/edits/async", json=body)
    check_on_its_way(again)


async def test_a_picture_that_takes_too_long_is_fetched_later(shop: Shop) -> None:
    loop = asyncio.get_running_loop()
    async with shop.client() as client:
        begun = loop.time()
        first = await client.images.with_raw_response.generate(
            model="lab-sync", response_format="url", extra_headers={"Prefer": "wait=1"}, **small()
        )
        assert 1.0 <= loop.time() - begun < 4.0
        assert (first.status_code, first.headers["preference-applied"]) == (202, "wait=1")
        assert first.parse().data is None
        place = first.headers["location"]
        assert place.endswith("?response_format=url")
        waiting = await shop.door.request("GET", place)
        assert (waiting.status, waiting.json["status"]) == (200, "queued")
        async with shop.working():
            ready = await shop.door.request("GET", place, headers={"Prefer": "wait=30"})
    assert ready.json["status"] == "completed"
    assert ready.json["completed_at"] >= ready.json["created"]
    assert ready.json["credits"] == {"held": 0, "captured": 1, "released": 0}
    assert (await shop.door.ask("GET", ready.json["data"][0]["url"])).status == 200
    assert len(await shop.tasks()) == 1


async def test_no_caller_is_held_for_longer_than_the_operator_allows(parts: ApiParts) -> None:
    settings = parts.settings.model_copy(update={"hold_s": 0.3})
    async with running_door(dataclasses.replace(parts, settings=settings)) as door, asyncio.timeout(60):
        check_on_its_way(await ask(door, headers={"Prefer": "wait=500"}))
        check_on_its_way(await ask(door))


async def test_a_task_is_nobodys_but_its_accounts(door: Door) -> None:
    task_id = check_on_its_way(await ask(door, "generations/async"))
    stranger = await door.new_caller()
    foreign = await door.request("GET", f"/v1/images/tasks/{task_id}", by=stranger)
    missing = await door.request("GET", f"/v1/images/tasks/{new_id()}", by=stranger)
    assert (foreign.status, foreign.json) == (404, missing.json)
    assert (await door.request("GET", "/v1/images/tasks/nonsense")).status == 404
    wrong = await door.request("GET", f"/v1/images/tasks/{task_id}?response_format=file")
    assert (wrong.status, wrong.json["error"]["param"]) == (400, "response_format")


async def test_who_hangs_up_loses_nothing_and_finds_the_picture_by_the_key(shop: Shop) -> None:
    headers = {"Idempotency-Key": "order-1"}
    async with shop.client() as client:
        with pytest.raises(openai.APITimeoutError):
            await client.images.generate(model="lab-callback", timeout=1.0, extra_headers=headers, **small())
        await shop.until(lambda: shop.held == 0)
        async with shop.working():
            again = await client.images.with_raw_response.generate(
                model="lab-callback", extra_headers=headers, **small()
            )
            once_more = await client.images.with_raw_response.generate(
                model="lab-callback", extra_headers=headers, **small()
            )
    assert again.headers["idempotent-replayed"] == "true"
    first, second = json.loads(again.content), json.loads(once_more.content)
    assert first["data"][0]["b64_json"] == second["data"][0]["b64_json"]
    assert [UUID(first["id"])] == await shop.tasks()
    assert (await shop.door.request("GET", "/v1/balance")).json == {"available": 999, "held": 0}


async def test_without_a_key_every_request_is_a_new_task(door: Door) -> None:
    ids = {check_on_its_way(await ask(door, "generations/async")) for _ in range(2)}
    assert len(ids) == 2


async def test_a_key_at_the_same_time_is_one_task_and_is_nothing_to_the_other_doors(door: Door) -> None:
    headers = {"Idempotency-Key": "order-1", "Prefer": "respond-async"}
    answers = await asyncio.gather(*(ask(door, headers=headers) for _ in range(5)))
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    other = await door.submit(BODY, key="order-1")
    assert other.status == 202
    assert other.json["id"] != answers[0].json["id"]


async def test_an_edit_that_is_sent_again_waits_for_the_same_task(door: Door) -> None:
    headers = {"Idempotency-Key": "order-1", "Prefer": "respond-async"}
    async with openai.AsyncOpenAI(base_url=f"{door.url}/v1", api_key=door.caller.key) as client:
        found = [
            await client.images.with_raw_response.edit(
                image=[(name, png())], prompt="x", extra_headers=headers
            )
            for name in ("a.png", "b.png")
        ]
    assert len({json.loads(one.content)["id"] for one in found}) == 1


async def test_a_key_that_was_accepted_counts_more_than_what_is_thought_of_the_body_today(
    parts: ApiParts, door: Door
) -> None:
    headers = {"Idempotency-Key": "order-1", "Prefer": "respond-async"}
    task_id = check_on_its_way(await ask(door, headers=headers))
    empty = dataclasses.replace(parts, catalog=type(parts.catalog)([]))
    async with running_door(empty) as later:
        again = await ask(later, headers=headers, by=door.caller)
    assert check_on_its_way(again) == task_id


async def test_when_the_server_stops_the_held_are_answered(shop: Shop) -> None:
    asked = [asyncio.create_task(ask(shop.door)) for _ in range(3)]
    await shop.until(lambda: shop.held == 3)
    shop.waiting.let_go()
    async with asyncio.timeout(2):
        for answer in await asyncio.gather(*asked):
            check_on_its_way(answer)
        check_on_its_way(await ask(shop.door))


class Looks:
    """Counts the looks of a process, and how many tasks each was about; the first ones meet these faults."""

    def __init__(self, faults: Sequence[Exception] = ()) -> None:
        self.sizes: list[int] = []
        self.faults = list(faults)
        self._look = views.ended

    async def __call__(self, connection: Connection, task_ids: Collection[UUID]) -> set[UUID]:
        self.sizes.append(len(task_ids))
        if self.faults:
            raise self.faults.pop(0)
        return await self._look(connection, task_ids)


def silent_request() -> Request:
    """A request whose caller says nothing more, and stays."""

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    return Request({"type": "http", "headers": []}, receive)


async def test_an_account_may_take_half_of_the_places_and_others_the_rest(parts: ApiParts) -> None:
    waiting = Waiting(parts.database, places=4)
    one, other, third = new_id(), new_id(), new_id()

    def hold(account_id: UUID) -> asyncio.Task[Held]:
        return asyncio.create_task(waiting.hold(silent_request(), account_id, new_id(), within_s=60))

    held = [hold(one), hold(one)]
    async with asyncio.timeout(60):
        assert await hold(one) is Held.NOT_YET
        held += [hold(other), hold(other)]
        assert await hold(third) is Held.NOT_YET
    assert not any(place.done() for place in held)
    held.pop().cancel()
    held.append(hold(third))
    await asyncio.sleep(0)
    waiting.let_go()
    assert set(await asyncio.gather(*held)) == {Held.NOT_YET}


async def test_a_thousand_are_held_by_one_look_for_all(door: Door, parts: ApiParts) -> None:
    task_ids = [UUID(check_on_its_way(await ask(door, "generations/async"))) for _ in range(20)]
    waiting = Waiting(parts.database, places=2_000)
    loop, looks = asyncio.get_running_loop(), Looks()
    with patch.object(views, "ended", looks):
        accounts = [new_id() for _ in range(4)]
        held = [
            asyncio.create_task(
                waiting.hold(silent_request(), accounts[place % 4], task_ids[place % 20], within_s=3.0)
            )
            for place in range(1_000)
        ]
        begun = loop.time()
        await asyncio.sleep(1.0)
        assert 1 <= len(looks.sizes) <= (loop.time() - begun) / LOOK_S + 1
        await door.request("POST", f"/v1/tasks/{task_ids[0]}/cancel")
        ended = await asyncio.gather(*held)
        assert [ended.count(Held.ENDED), ended.count(Held.NOT_YET)] == [50, 950]
        assert set(looks.sizes) <= {19, 20}
        looks_until_now = len(looks.sizes)
        await asyncio.sleep(3 * LOOK_S)
        assert len(looks.sizes) <= looks_until_now + 1


async def test_a_look_that_fails_loses_nobody(door: Door) -> None:
    looks = Looks(faults=[asyncpg.ConnectionDoesNotExistError("gone"), OSError("unreachable")])
    with patch.object(views, "ended", looks):
        asked = asyncio.create_task(ask(door))
        async with asyncio.timeout(60):
            while len(looks.sizes) < 3:  # noqa: ASYNC110 - looks send no event
                await asyncio.sleep(0.02)
            (task,) = (await door.request("GET", "/v1/tasks")).json["data"]
            await door.request("POST", f"/v1/tasks/{task['id']}/cancel")
            answer = await asked
    assert (answer.status, answer.json["error"]["code"]) == (409, "task_canceled")
    assert looks.faults == []
