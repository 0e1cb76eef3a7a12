"""Permits: one permit sends all that fits, and goes on as capacity comes free."""

from __future__ import annotations

import asyncio
from typing import Any

from safelight.domain.provider import Capabilities, ProviderUpdate, Submission
from safelight.domain.task import State
from safelight.jobs.permits import Permits
from safelight.jobs.pump import Budget
from tests.lifecycle.upstreams import Scripted, accepted, install
from tests.world import World

NAME = "lab-callback"


class Counting:
    """Submits that overlap, and how many there were at once."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0

    async def submit(self, submission: Submission) -> ProviderUpdate:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return accepted(submission.reference)


async def states(world: World) -> dict[str, int]:
    rows = await world.rows("SELECT state, count(*) AS tasks FROM tasks GROUP BY state")
    return {row["state"]: row["tasks"] for row in rows}


async def test_one_permit_sends_everything_through_a_narrow_provider(world: World) -> None:
    counting = Counting()
    install(world, Scripted(NAME, Capabilities(max_calls=3), counting.submit))
    for _ in range(12):
        await world.submit()
    await world.dispatch()
    assert await states(world) == {"running": 12}
    assert 1 <= counting.most <= 3


async def test_permits_side_by_side_keep_to_the_budget_of_the_worker(world: World) -> None:
    counting = Counting()
    install(world, Scripted(NAME, submit_does=counting.submit))
    permits = Permits(world.graph.dispatch, budget=4)
    for _ in range(20):
        await world.submit()
    for _ in range(3):
        await asyncio.gather(*(permits.run(NAME) for _ in range(6)))
    assert await states(world) == {"running": 20}
    assert counting.most <= 4


async def test_a_permit_without_work_ends_at_once(world: World) -> None:
    await asyncio.wait_for(Permits(world.graph.dispatch, budget=4).run(NAME), timeout=60)
    await asyncio.wait_for(Permits(world.graph.dispatch, budget=4).run("nobody"), timeout=60)


async def test_a_broken_send_takes_no_other_with_it_and_is_never_repeated_blindly(world: World) -> None:
    async def submit(submission: Submission) -> ProviderUpdate:
        if submission.prompt == "broken":
            raise ZeroDivisionError("a fault in an adapter")
        return accepted(submission.reference)

    provider = install(world, Scripted(NAME, submit_does=submit))
    broken = await world.submit(prompt="broken")
    for _ in range(3):
        await world.submit()
    permits = Permits(world.graph.dispatch, budget=4)
    await permits.run(NAME)
    assert await states(world) == {"submitting": 1, "running": 3}
    await world.pass_time(seconds=61)
    await world.look()
    await permits.run(NAME)
    assert await world.state(broken) is not State.RETRYING
    assert len(provider.submissions) == 4


async def test_a_canceled_permit_gives_its_room_back(world: World) -> None:
    started = asyncio.Event()

    async def submit(_: Submission) -> ProviderUpdate:
        started.set()
        return await asyncio.Future[ProviderUpdate]()

    provider = install(world, Scripted(NAME, submit_does=submit))
    await world.submit()
    permits = Permits(world.graph.dispatch, budget=1)
    permit = asyncio.create_task(permits.run(NAME))
    await asyncio.wait_for(started.wait(), timeout=60)
    permit.cancel()
    await asyncio.gather(permit, return_exceptions=True)
    provider.submit_does = None
    await world.submit()
    await permits.run(NAME)
    assert await states(world) == {"submitting": 1, "running": 1}


async def test_capacity_that_comes_free_issues_a_new_permit(world: World) -> None:
    async def fail_fast(_: Any) -> ProviderUpdate:
        raise AssertionError("not sent here")

    install(world, Scripted(NAME, Capabilities(max_active=1), fail_fast))
    first = await world.submit()
    await world.submit()
    (item,) = (await world.graph.dispatch.claim(NAME, 10)).items
    assert item.task.id == first
    await world.rows("DELETE FROM pgqueuer.pgqueuer")
    provider = install(world, Scripted(NAME, Capabilities(max_active=1, can_cancel=True), cancels=True))
    await world.graph.dispatch.send(item)
    await world.cancel.cancel(world.account_id, first)
    assert await world.value("SELECT count(*) FROM pgqueuer.pgqueuer") == 0
    await world.look()
    assert await world.state(first) is State.CANCELED
    jobs = await world.rows("SELECT entrypoint, payload FROM pgqueuer.pgqueuer")
    assert [(job["entrypoint"], bytes(job["payload"])) for job in jobs] == [("submit", NAME.encode())]
    assert provider.cancel_calls == 1


class Hanging:
    """Submits that end when a test says so; each that begins is one more in `begun`."""

    def __init__(self) -> None:
        self.begun = asyncio.Semaphore(0)
        self.may_end = asyncio.Event()

    async def submit(self, submission: Submission) -> ProviderUpdate:
        self.begun.release()
        await self.may_end.wait()
        return accepted(submission.reference)

    async def until_begun(self, count: int) -> None:
        async with asyncio.timeout(60):
            for _ in range(count):
                await self.begun.acquire()


async def test_a_provider_that_hangs_holds_one_permit_however_many_came_for_it(world: World) -> None:
    hanging = Hanging()
    install(world, Scripted(NAME, submit_does=hanging.submit))
    permits = Permits(world.graph.dispatch, budget=16)
    runs = []
    for _ in range(5):
        await world.submit()
        runs.append(asyncio.create_task(permits.run(NAME)))
        await hanging.until_begun(1)
    _, held = await asyncio.wait(runs, timeout=1)
    assert len(held) == 1
    hanging.may_end.set()
    await asyncio.gather(*held)
    assert await states(world) == {"running": 5}


async def test_providers_that_hang_leave_room_for_one_that_works(world: World) -> None:
    hanging = Hanging()
    for name in (NAME, "lab-poll"):
        install(world, Scripted(name, submit_does=hanging.submit))
        for _ in range(20):
            await world.submit(name)
    good = await world.submit("lab-sync")
    permits = Permits(world.graph.dispatch, budget=16, is_shared=True)
    stuck = [asyncio.create_task(permits.run(name)) for name in (NAME, "lab-poll") * 8]
    await hanging.until_begun(15)
    await asyncio.wait_for(permits.run("lab-sync"), timeout=60)
    assert await world.state(good) is State.ARCHIVING
    hanging.may_end.set()
    await asyncio.gather(*stuck)
    assert (await states(world))["running"] == 40


def test_the_last_place_of_a_shared_budget_is_for_whoever_has_none() -> None:
    shared, own = Budget(4, is_shared=True), Budget(4)
    assert (shared.room(has_work=False), own.room(has_work=True)) == (2, 4)
    shared.in_flight = own.in_flight = 3
    assert (shared.room(has_work=True), shared.room(has_work=False)) == (0, 1)
    assert own.room(has_work=True) == 1
    assert Budget(1, is_shared=True).room(has_work=False) == 1
