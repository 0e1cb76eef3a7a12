"""The worker brings tasks home by itself, whatever happens to the queue."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from safelight.domain.provider import ProviderUpdate, Submission
from safelight.domain.task import State
from tests.lifecycle.upstreams import Scripted, accepted, install, picture
from tests.world import World

NAME = "lab-callback"


@contextlib.asynccontextmanager
async def working(world: World) -> AsyncIterator[None]:
    worker = world.graph.worker()
    await worker.start()
    try:
        yield
    finally:
        await worker.stop()


async def until_ended(world: World, timeout_s: float = 60.0) -> None:
    async with asyncio.timeout(timeout_s):
        while await world.value("SELECT count(*) FROM tasks WHERE finished_at IS NULL"):  # noqa: ASYNC110 - rows send no event
            await asyncio.sleep(0.05)


async def test_a_worker_brings_tasks_of_all_three_shapes_to_ready(world: World) -> None:
    made = [await world.submit(shape) for shape in ("lab-sync", "lab-poll", "lab-callback") for _ in range(3)]
    async with working(world):
        await world.until_drawn(9)
        await world.pass_time(seconds=10)
        await until_ended(world)
    assert {await world.state(task_id) for task_id in made} == {State.SUCCEEDED}
    assert await world.balance() == (991, 0)
    assert (await world.lab_ledger())["accepted"] == 9


async def test_a_worker_deletes_expired_uploads(world: World) -> None:
    await world.graph.uploads.keep(world.account_id, picture())
    await world.pass_time(days=2)
    async with working(world), asyncio.timeout(60):
        while await world.value("SELECT count(*) FROM uploads"):  # noqa: ASYNC110 - rows send no event
            await asyncio.sleep(0.05)
    assert [key async for key, _, _ in world.graph.context.store.keys("uploads/")] == []


async def test_a_wiped_queue_costs_only_the_time_of_a_sweep(world: World) -> None:
    """Rows are the truth: queued, retrying and archiving ones are found again without any job."""
    archiving = await world.submit("lab-sync")
    await world.dispatch("lab-sync")
    assert await world.state(archiving) is State.ARCHIVING
    await world.knobs(rate_limit=1)
    retrying = await world.submit("lab-poll")
    await world.dispatch("lab-poll")
    assert await world.state(retrying) is State.RETRYING
    await world.knobs(rate_limit=0)
    queued = await world.submit("lab-sync")
    await world.rows("DELETE FROM pgqueuer.pgqueuer")
    await world.pass_time(seconds=160)
    await world.graph.sweep.wake()
    jobs = await world.rows(
        "SELECT entrypoint, convert_from(payload, 'UTF8') AS payload FROM pgqueuer.pgqueuer ORDER BY 1, 2"
    )
    assert [tuple(job) for job in jobs] == [
        ("archive", ""),
        ("submit", "lab-poll"),
        ("submit", "lab-sync"),
    ]
    await world.rows("DELETE FROM pgqueuer.pgqueuer")
    await world.pass_time(seconds=160)
    async with working(world):
        await world.until_drawn(3)
        await world.pass_time(seconds=10)
        await until_ended(world)
    assert {await world.state(task_id) for task_id in (archiving, retrying, queued)} == {State.SUCCEEDED}


async def test_a_sweep_wakes_nothing_that_is_not_overdue(world: World) -> None:
    await world.submit("lab-sync")
    await world.dispatch("lab-sync")
    await world.rows("DELETE FROM pgqueuer.pgqueuer")
    await world.pass_time(seconds=-1)
    await world.graph.sweep.wake()
    assert await world.value("SELECT count(*) FROM pgqueuer.pgqueuer") == 0


async def test_repeated_sweeps_do_not_pile_up_copies_of_one_job(world: World) -> None:
    await world.submit("lab-sync")
    await world.dispatch("lab-sync")
    await world.pass_time(seconds=160)
    for _ in range(5):
        await world.graph.sweep.wake()
    jobs = await world.rows(
        "SELECT dedupe_key FROM pgqueuer.pgqueuer WHERE entrypoint = 'archive' ORDER BY id"
    )
    assert [job["dedupe_key"] for job in jobs] == [None, "sweep:archive"]


async def test_a_stopping_worker_records_the_answers_of_calls_in_flight(world: World) -> None:
    is_started, may_end = asyncio.Event(), asyncio.Event()

    async def submit(submission: Submission) -> ProviderUpdate:
        is_started.set()
        await may_end.wait()
        return accepted(submission.reference)

    install(world, Scripted(NAME, submit_does=submit))
    task_id = await world.submit()
    worker = world.graph.worker()
    await worker.start()
    await asyncio.wait_for(is_started.wait(), timeout=60)
    stopping = asyncio.create_task(worker.stop())
    await asyncio.sleep(0.05)
    assert not stopping.done()
    may_end.set()
    await asyncio.wait_for(stopping, timeout=60)
    assert await world.state(task_id) is State.RUNNING


async def test_a_worker_fails_what_did_not_start_in_time_and_releases_it(world: World) -> None:
    task_id = await world.submit(n=2)
    await world.pass_time(seconds=3_601)
    async with working(world):
        await until_ended(world)
    assert await world.state(task_id) is State.FAILED
    (ending,) = await world.rows("SELECT failure_class, failure_code FROM tasks")
    assert tuple(ending) == ("environment", "not_started")
    assert await world.balance() == (1_000, 0)
    assert (await world.lab_ledger())["accepted"] == 0


async def test_two_workers_share_the_work_and_send_nothing_twice(world: World) -> None:
    for _ in range(40):
        await world.submit("lab-sync")
    async with working(world), working(world):
        await until_ended(world)
    ledger = await world.lab_ledger()
    assert (ledger["accepted"], ledger["billed"]) == (40, 40)
    assert await world.balance() == (960, 0)
