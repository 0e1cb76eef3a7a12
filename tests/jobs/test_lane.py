"""A lane works off its jobs, outlives its connection, and drains when it stops."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from safelight.db.queue import queue_queries
from safelight.jobs.lane import Lane
from tests.world import World

_BUSY = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
"""


async def enqueue(world: World, *payloads: str) -> None:
    async with world.database.transaction() as connection:
        await queue_queries(connection).enqueue(
            ["probe"] * len(payloads), [payload.encode() for payload in payloads], [0] * len(payloads)
        )


async def until(is_met: Callable[[], bool], timeout_s: float = 60.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not is_met():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(lane: Lane) -> AsyncIterator[None]:
    supervisor = asyncio.create_task(lane.run())
    try:
        yield
    finally:
        await lane.stop(1.0)
        supervisor.cancel()
        await asyncio.gather(supervisor, return_exceptions=True)


async def test_a_lane_does_each_job_once(world: World) -> None:
    done: list[str] = []

    async def handle(payload: str) -> None:
        done.append(payload)

    wanted = [f"job {number}" for number in range(30)]
    async with running(Lane("probe", world.database, {"probe": handle}, budget=8)):
        await enqueue(world, *wanted)
        await until(lambda: len(done) >= 30)
    assert sorted(done) == sorted(wanted)
    assert await world.value("SELECT count(*) FROM pgqueuer.pgqueuer") == 0


async def test_a_failing_job_stops_no_other(world: World) -> None:
    done: list[str] = []

    async def handle(payload: str) -> None:
        if payload == "bad":
            raise ZeroDivisionError
        done.append(payload)

    async with running(Lane("probe", world.database, {"probe": handle}, budget=4)):
        await enqueue(world, "a", "bad", "b")
        await until(lambda: len(done) == 2)
        await enqueue(world, "c")
        await until(lambda: len(done) == 3)


async def test_a_lane_survives_the_loss_of_its_connection(world: World) -> None:
    done: list[str] = []

    async def handle(payload: str) -> None:
        done.append(payload)

    backends = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    before = {row["pid"] for row in await world.rows(backends)}
    async with running(Lane("probe", world.database, {"probe": handle}, budget=4)):
        await enqueue(world, "first")
        await until(lambda: done == ["first"])
        own = {row["pid"] for row in await world.rows(backends)} - before
        assert own
        for pid in own:
            await world.value("SELECT pg_terminate_backend($1)", pid)
        await enqueue(world, "second")
        await until(lambda: "second" in done)
        await enqueue(world, "third")
        await until(lambda: "third" in done)


async def test_a_stopping_lane_lets_running_jobs_finish_and_takes_no_new_ones(world: World) -> None:
    done: list[str] = []
    is_started, may_end = asyncio.Event(), asyncio.Event()

    async def handle(payload: str) -> None:
        is_started.set()
        await may_end.wait()
        done.append(payload)

    lane = Lane("probe", world.database, {"probe": handle}, budget=2)
    supervisor = asyncio.create_task(lane.run())
    await enqueue(world, "running")
    await asyncio.wait_for(is_started.wait(), timeout=60)
    stopping = asyncio.create_task(lane.stop(60.0))
    # A look at the queue that was on its way already may still take what it finds; then there is no other.
    await asyncio.sleep(0.2)
    while await world.value(_BUSY):  # noqa: ASYNC110 - what is waited for happens in another process
        await asyncio.sleep(0.02)
    await enqueue(world, "late")
    may_end.set()
    await asyncio.wait_for(stopping, timeout=60)
    supervisor.cancel()
    await asyncio.gather(supervisor, return_exceptions=True)
    assert done == ["running"]
    assert (
        await world.value(
            "SELECT count(*) FROM pgqueuer.pgqueuer WHERE convert_from(payload, 'UTF8') = 'late'"
        )
        == 1
    )


async def test_a_job_that_outlasts_the_drain_is_cut(world: World) -> None:
    is_started = asyncio.Event()

    async def handle(_: str) -> None:
        is_started.set()
        await asyncio.Future()

    lane = Lane("probe", world.database, {"probe": handle}, budget=2)
    supervisor = asyncio.create_task(lane.run())
    await enqueue(world, "endless")
    await asyncio.wait_for(is_started.wait(), timeout=60)
    await asyncio.wait_for(lane.stop(0.1), timeout=60)
    supervisor.cancel()
    await asyncio.gather(supervisor, return_exceptions=True)
