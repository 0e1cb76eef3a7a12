"""Deliveries at work: a worker's places, so that the dead never delay the living."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from safelight.db import accounts
from safelight.db.database import SESSION
from safelight.jobs import deliveries
from safelight.jobs.deliveries import Deliveries
from tests.receiver import Mailroom, Reply, running_receiver
from tests.world import Server, running_world

DEAD = 1_000


async def until(condition: Callable[[], Any], timeout_s: float = 60.0) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - what is looked at sends no event
            await asyncio.sleep(0.02)


async def many_dead(mail: Mailroom, *, failures: int) -> None:
    """A thousand endpoints of fifty accounts that never answer, each with something due for an hour."""
    secret = await mail.register("/dead")
    await mail.world.graph.endpoints.test(mail.world.account_id, secret.endpoint_id)
    async with mail.world.database.transaction() as connection:
        owners = [await accounts.create_account(connection, f"owner {number}") for number in range(50)]
        await connection.execute(
            "INSERT INTO webhook_endpoints (id, account_id, url, created_at, failures, wake_at)"
            " SELECT gen_random_uuid(), ($1::uuid[])[1 + i % 50], $2, clock_now(), $3, clock_now() - interval '1 hour'"
            " FROM generate_series(1, $4::integer) AS i",
            owners,
            mail.receiver.url("/dead"),
            failures,
            DEAD,
        )
        await connection.execute(
            "INSERT INTO deliveries (event_id, endpoint_id, account_id, status, due_at, created_at)"
            " SELECT event.id, endpoint.id, endpoint.account_id, 'pending', endpoint.wake_at, endpoint.wake_at"
            " FROM webhook_endpoints AS endpoint CROSS JOIN (SELECT id FROM webhook_events LIMIT 1) AS event"
            " WHERE endpoint.account_id <> $1",
            mail.world.account_id,
        )
        # What was sealed for one row opens in no other: without a secret of its own each is a dead one, too.
    await mail.world.graph.endpoints.remove(mail.world.account_id, secret.endpoint_id)


async def test_a_thousand_endpoints_that_failed_last_leave_a_live_one_its_turn(mail: Mailroom) -> None:
    await many_dead(mail, failures=10)
    live = await mail.register("/live")
    await mail.cancel_task()
    letters, is_more = await mail.world.graph.notify.claim(1, is_failing=False)
    assert [letter.delivery.endpoint_id for letter in letters] == [live.endpoint_id]
    assert not is_more, "the dead ones are not even looked at"
    probes, is_more = await mail.world.graph.notify.claim(64, is_failing=True)
    assert len(probes) == 64
    assert len({probe.delivery.endpoint_id for probe in probes}) == 64
    assert is_more


async def test_a_thousand_that_hang_give_their_places_to_a_live_one(
    mail: Mailroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "PATIENCE_S", 0.05)
    hung = 0

    async def hang(told: Any) -> None:
        nonlocal hung
        if told.path != "/live":
            hung += 1
            await mail.receiver.closing.wait()

    mail.receiver.on_call = hang
    for number in range(20):
        await mail.register(f"/dead/{number}")
    for _ in range(3):
        await mail.cancel_task()
    async with mail.world.database.transaction() as connection:
        other = await accounts.create_account(connection, "other")
    live = await mail.register("/live", account_id=other)
    at_work = Deliveries(mail.world.graph.notify, places=8)
    await at_work.run()
    await mail.world.graph.endpoints.test(other, live.endpoint_id)
    try:
        await until(lambda: mail.receiver.on("/live"))
        assert hung >= 8, "every place was taken by one that hangs"
    finally:
        mail.receiver.closing.set()
        await at_work.drain(10.0)


async def test_work_in_flight_is_bounded_even_when_everything_hangs(
    mail: Mailroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "PATIENCE_S", 0.02)
    mail.receiver.usual = Reply(-1)
    for number in range(10):
        await mail.register(f"/dead/{number}")
    for _ in range(6):
        await mail.cancel_task()
    at_work = Deliveries(mail.world.graph.notify, places=1)
    try:
        await at_work.run()
        await until(lambda: len(mail.receiver.told) == deliveries.SLOW_TIMES)
        await asyncio.sleep(0.2)
        await at_work.run()
        assert len(mail.receiver.told) == deliveries.SLOW_TIMES
    finally:
        mail.receiver.closing.set()
        await at_work.drain(10.0)


async def test_endpoints_that_hang_with_much_due_leave_room_for_a_live_one(
    mail: Mailroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "PATIENCE_S", 0.02)

    async def hang(told: Any) -> None:
        if told.path != "/live":
            await mail.receiver.closing.wait()

    mail.receiver.on_call = hang
    for number in range(5):
        await mail.register(f"/dead/{number}")
    for _ in range(9):
        await mail.cancel_task()
    async with mail.world.database.transaction() as connection:
        other = await accounts.create_account(connection, "other")
    live = await mail.register("/live", account_id=other)
    at_work = Deliveries(mail.world.graph.notify, places=4)
    half = 4 * deliveries.SLOW_TIMES // 2
    try:
        await at_work.run()
        await until(lambda: len(mail.receiver.told) >= half)
        await mail.world.graph.endpoints.test(other, live.endpoint_id)
        await at_work.run()
        await until(lambda: mail.receiver.on("/live"))
        assert len(mail.receiver.told) <= half + 4 + 1
    finally:
        mail.receiver.closing.set()
        await at_work.drain(10.0)


async def test_a_worker_that_stops_lets_its_tries_end_and_begins_no_more(mail: Mailroom) -> None:
    await mail.register()
    await mail.cancel_task()
    at_work = Deliveries(mail.world.graph.notify, places=4)
    await at_work.run()
    await at_work.drain(30.0)
    assert await mail.deliveries() == [("delivered", "", 1)]
    await mail.cancel_task()
    await at_work.run()
    assert len(mail.receiver.told) == 1


async def test_a_worker_cut_off_in_the_middle_leaves_the_delivery_to_its_lease(mail: Mailroom) -> None:
    await mail.register()
    mail.receiver.replies["/hooks"] = [Reply(-1)]
    await mail.cancel_task()
    at_work = Deliveries(mail.world.graph.notify, places=4)
    await at_work.run()
    await until(lambda: mail.receiver.told)
    await at_work.drain(0.0)
    assert await mail.deliveries() == [("pending", "", 0)]
    await mail.world.pass_time(seconds=61)
    await mail.deliver()
    first, second = mail.receiver.told
    assert first.id == second.id
    assert await mail.deliveries() == [("delivered", "", 1)]


async def test_the_worker_s_third_lane_delivers_what_a_settlement_tells(server: Server) -> None:
    async with (
        running_receiver() as receiver,
        running_world(server, allowed_origins=(receiver.origin,), poll_interval_s=0.1) as world,
    ):
        mail = Mailroom(world, receiver)
        secret = await mail.register()
        worker = world.graph.worker()
        await worker.start()
        try:
            task_id = await world.submit("lab-sync")
            await until(lambda: receiver.told)
        finally:
            await worker.stop()
        assert receiver.told[0].verified(secret.text)["data"]["task_id"] == str(task_id)


async def test_failures_that_wait_to_be_recorded_leave_connections_to_the_living(mail: Mailroom) -> None:
    notify = mail.world.graph.notify
    for number in range(12):
        await mail.register(f"/dead/{number}")
        mail.receiver.replies[f"/dead/{number}"] = [Reply(500)]
    async with mail.world.database.transaction() as connection:
        other = await accounts.create_account(connection, "other")
    await mail.cancel_task()
    letters, _ = await notify.claim(100, is_failing=False)
    holding = await asyncpg.connect(mail.world.database.url, server_settings=SESSION)
    try:
        async with holding.transaction():
            await holding.execute("SELECT FROM webhook_endpoints FOR UPDATE")
            failing = [asyncio.create_task(notify.deliver(letter)) for letter in letters]
            await until(lambda: len(mail.receiver.told) == len(letters) == 12)
            live = await mail.register("/live", account_id=other)
            await mail.world.graph.endpoints.test(other, live.endpoint_id)
            (letter,), _ = await notify.claim(100, is_failing=False)
            outcome = await notify.deliver(letter)
            assert outcome.status == 200
            assert not any(one.done() for one in failing)
    finally:
        await holding.close()
    assert {outcome.status for outcome in await asyncio.gather(*failing)} == {500}
