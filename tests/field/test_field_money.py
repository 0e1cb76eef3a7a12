"""Money from the field: one hold, one end of it, and nothing in between that anybody could lose."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest
from pydantic import ValidationError

from safelight.db import accounts
from safelight.db.statements import Connection
from safelight.domain.credits import quote, settlement_of
from safelight.errors import AssetError
from safelight.settings import ModelSettings
from safelight.telemetry import set_fault_hook
from tests.field.scene import Line, Scene, assert_calm, said
from tests.lifecycle.upstreams import run_task, signed
from tests.world import World

SHOE = {"model": "lab-poll", "prompt": "a red shoe on white", "size": "64x64"}


def cut_after_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Returns what arms it: the next transaction is committed, and its connection lost before anybody knows."""
    transaction, is_armed = world.database.transaction, False

    @contextlib.asynccontextmanager
    async def cut() -> AsyncIterator[Connection]:
        nonlocal is_armed
        async with transaction() as connection:
            yield connection
        if is_armed:
            is_armed = False
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    def arm() -> None:
        nonlocal is_armed
        is_armed = True

    monkeypatch.setattr(world.database, "transaction", cut)
    return arm


async def test_D04_a_commit_whose_answer_was_lost_is_not_done_twice(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = cut_after_commit(scene.world, monkeypatch)
    task_id, record = await scene.drawn()
    arm()
    assert await scene.called_back(task_id, signed(record)) == 503
    assert await scene.called_back(task_id, signed(record)) == 202
    await scene.world.archive_all()
    assert await scene.ending(task_id) == ("succeeded", 1, 0)
    assert await scene.settled(task_id) == 1
    assert await scene.world.balance() == (999, 0)


@pytest.mark.usefixtures("no_fault_left")
async def test_D04_a_settlement_that_was_cut_off_is_done_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = cut_after_commit(scene.world, monkeypatch)
    task_id, record = await scene.drawn()
    await scene.called_back(task_id, signed(record))
    set_fault_hook(lambda name: arm() if name == "before_settle_commit" else None)
    with pytest.raises(asyncpg.ConnectionDoesNotExistError):
        await scene.world.archive_all()
    set_fault_hook(None)
    await scene.world.pass_time(seconds=30)
    await scene.world.graph.archive.archive(task_id)
    assert await scene.ending(task_id) == ("succeeded", 1, 0)
    assert await scene.settled(task_id) == 1
    assert len((await scene.view(task_id))["assets"]) == 1


async def test_D08_what_fails_after_the_end_takes_nothing_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any) -> None:
        raise AssetError("storage", "disk full", is_retryable=True)

    task_id = await run_task(scene.world, "lab-sync")
    await scene.world.archive_all()
    store = scene.world.graph.context.store
    monkeypatch.setattr(store, "delete", full)
    with pytest.raises(AssetError):
        await scene.world.graph.archive.unstage(task_id)
    monkeypatch.setattr(store, "put", full)
    monkeypatch.setattr(scene.door.parts.pictures, "thumbnail", full)
    (asset,) = (await scene.view(task_id))["assets"]
    small = await scene.door.request("GET", f"/v1/assets/{asset['id']}/thumbnail")
    assert small.status == 503
    assert (await scene.get(f"/v1/assets/{asset['id']}")).headers["Content-Type"] == "image/png"
    assert await scene.ending(task_id) == ("succeeded", 1, 0)
    assert (await scene.view(task_id))["status"] == "ready"


async def test_D10_after_a_failure_every_sum_is_what_was_bought(scene: Scene) -> None:
    await scene.world.knobs(moderate=1)
    by = await scene.door.new_caller(granted=10)
    answer = await scene.door.submit({**SHOE, "n": 3}, by=by)
    assert (await scene.door.request("GET", "/v1/balance", by=by)).json == {"available": 7, "held": 3}
    await scene.world.dispatch("lab-poll")
    await scene.world.until_drawn()
    await scene.world.pass_time(seconds=60)
    await scene.world.look("lab-poll")
    view = (await scene.door.request("GET", answer.headers["Location"], by=by)).json
    assert (view["status"], view["credits"]) == ("failed", {"held": 0, "captured": 0, "released": 3})
    assert (await scene.door.request("GET", "/v1/balance", by=by)).json == {"available": 10, "held": 0}
    entries = (await scene.door.request("GET", "/v1/entries", by=by)).json["data"]
    assert [entry["kind"] for entry in entries] == ["settle", "hold", "grant"]
    assert [sum(entry[name] for entry in entries) for name in ("available_delta", "held_delta")] == [10, 0]


async def test_D11_without_a_place_in_the_queue_there_is_no_task_and_no_hold(scene: Scene) -> None:
    async with scene.world.database.connection() as connection:
        await connection.execute("ALTER TABLE pgqueuer.pgqueuer RENAME TO away")
        before = await scene.door.rows()
        answer = await scene.door.submit(SHOE, key="k")
        assert (answer.status, await scene.door.rows()) == (500, before)
        assert await scene.world.balance() == (1_000, 0)
        await connection.execute("ALTER TABLE pgqueuer.away RENAME TO pgqueuer")
    assert (await scene.door.submit(SHOE, key="k")).status == 202
    assert await scene.world.balance() == (999, 1)


@pytest.mark.usefixtures("no_fault_left")
async def test_D12_a_release_that_fails_is_tried_until_it_is_done(scene: Scene, logs: list[Line]) -> None:
    await scene.world.knobs(moderate=1)
    task_id, record = await scene.drawn()
    errors: list[Exception] = [
        asyncpg.DeadlockDetectedError("deadlock detected"),
        asyncpg.SerializationError("could not serialize"),
        asyncpg.DeadlockDetectedError("deadlock detected"),
        TimeoutError(),
    ]

    def fail(name: str) -> None:
        if name == "before_advance_commit" and errors:
            raise errors.pop(0)

    set_fault_hook(fail)
    # Three conflicts are tried again at once; for what is no conflict the provider is asked to come again.
    assert await scene.called_back(task_id, signed(record)) == 503
    assert errors == []
    assert await scene.called_back(task_id, signed(record)) == 202
    assert await scene.ending(task_id) == ("blocked", 0, 1)
    assert await scene.settled(task_id) == 1
    assert await scene.world.balance() == (1_000, 0)
    assert len(said(logs, "request_failed")) == 1


async def test_D15_credits_are_whole_numbers_from_the_price_to_the_last_entry(scene: Scene) -> None:
    for price in (0.1, "0.0005", -1):
        with pytest.raises(ValidationError):
            ModelSettings.model_validate({"price": price})
    ends = [settlement_of(quote(7, 3), unit_price=7, delivered=2) for _ in range(200)]
    assert sum(end.captured for end in ends) == 200 * 14
    assert sum(end.released for end in ends) == 200 * 7
    by = await scene.door.new_caller(granted=3)
    answers = [await scene.door.submit(SHOE, by=by) for _ in range(4)]
    assert [answer.status for answer in answers] == [202, 202, 202, 402]
    assert b'"credits":{"held":1,"captured":0,"released":0}' in answers[0].body
    assert (await scene.door.request("GET", "/v1/balance", by=by)).body == b'{"available":0,"held":3}'


async def test_D16_a_failing_task_shows_at_every_moment_that_nothing_was_charged(scene: Scene) -> None:
    async def owned() -> tuple[int, int]:
        found = (await scene.get("/v1/balance")).json
        return found["available"] + found["held"], found["held"]

    await scene.world.knobs(moderate=1)
    assert await owned() == (1_000, 0)
    task_id, record = await scene.drawn()
    assert await owned() == (1_000, 1), "what is held is still the customer's"
    assert (await scene.view(task_id))["credits"] == {"held": 1, "captured": 0, "released": 0}
    await scene.called_back(task_id, signed(record))
    assert await owned() == (1_000, 0)
    view = await scene.view(task_id)
    assert view["credits"] == {"held": 0, "captured": 0, "released": 1}
    assert (
        "charged" not in view["failure"]["message"] or "No credits were charged" in view["failure"]["message"]
    )


async def test_D18_tasks_of_a_customer_whose_key_was_taken_away_still_end(
    scene: Scene, logs: list[Line]
) -> None:
    good, record = await scene.drawn()
    await scene.world.knobs(moderate=1)
    bad, blocked = await scene.drawn()
    async with scene.world.database.transaction() as connection:
        key_id = scene.door.caller.key.removeprefix("sl_live_")
        for key in await accounts.list_keys(connection, scene.world.account_id):
            assert key_id.startswith(key.id)
            await accounts.revoke_key(connection, key.id)
    assert await scene.called_back(good, signed(record)) == 202
    assert await scene.called_back(bad, signed(blocked)) == 202
    await scene.world.archive_all()
    assert await scene.ending(good) == ("succeeded", 1, 0)
    assert await scene.ending(bad) == ("blocked", 0, 1)
    assert_calm(logs)
