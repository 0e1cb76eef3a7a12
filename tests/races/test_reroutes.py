"""Tasks that two workers would take elsewhere at once, or that one sends while another moves them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from safelight.domain.provider import Submission
from safelight.domain.task import State
from safelight.errors import ProviderUnavailable
from safelight.lifecycle.doctor import examine
from safelight.lifecycle.reroute import Reroute
from tests.lifecycle.crossroads import ALPHA, Crossroads, running_crossroads
from tests.lifecycle.invariants import assert_books
from tests.lifecycle.upstreams import accepted
from tests.races.rivals import Verbs, race
from tests.world import Server


@pytest.fixture
async def roads(server: Server) -> AsyncIterator[Crossroads]:
    async with running_crossroads(server) as made:
        yield made
        await assert_books(made.world)
        store = made.world.graph.context.store
        findings = [
            f"{finding.check}: {finding.subject} {finding.detail}"
            async for finding in examine(made.world.database, store, with_bytes=False)
            if not finding.is_information
        ]
        assert findings == []


async def moves(roads: Crossroads) -> list[int]:
    """How often each task was moved."""
    rows = await roads.world.rows(
        "SELECT count(event.id) AS moved FROM tasks LEFT JOIN task_events AS event"
        " ON event.task_id = tasks.id AND event.cause = 'rerouted' GROUP BY tasks.id"
    )
    return [row["moved"] for row in rows]


async def evacuate(verbs: Verbs) -> int:
    return await verbs.reroute.evacuate()


async def test_two_workers_move_every_task_once(roads: Crossroads) -> None:
    for name in ALPHA:
        await roads.shut(name, "rate_limited", for_s=30.0)
    for _ in range(40):
        await roads.submit()
    for name in ALPHA:
        await roads.shut(name, "funds")
    workers = [Reroute(roads.world.graph.context) for _ in range(4)]
    moved = await asyncio.gather(*(worker.evacuate() for worker in workers))
    assert sum(moved) == 40
    assert await moves(roads) == [1] * 40
    assert await roads.world.value("SELECT count(*) FROM tasks WHERE provider = 'beta'") == 40


async def test_the_second_worker_does_not_wait_for_the_first(roads: Crossroads) -> None:
    await roads.submit()
    await roads.shut("alpha", "funds")
    assert await race(roads.world, evacuate, evacuate, is_waiting=False) == (1, 0)
    assert await moves(roads) == [1]


async def test_a_task_that_is_being_claimed_is_not_moved(roads: Crossroads) -> None:
    task_id = await roads.submit()

    async def claim(verbs: Verbs) -> Any:
        return (await verbs.dispatch.claim("alpha", 8)).items

    async def move(verbs: Verbs) -> int:
        # Past the question whether the key is out: its gate is locked by the claim.
        return await verbs.reroute._evacuate("alpha", ["poster-a"])

    items, moved = await race(roads.world, claim, move, is_waiting=False)
    assert (len(items), moved) == (1, 0)
    assert await roads.world.state(task_id) is State.SUBMITTING
    assert await roads.provider(task_id) == "alpha"


async def test_a_task_that_is_being_moved_is_not_sent_to_its_old_key(roads: Crossroads) -> None:
    task_id = await roads.submit()
    await roads.shut("alpha", "funds")

    async def open_and_claim(verbs: Verbs) -> Any:
        await roads.world.rows("UPDATE gates SET closed_until = NULL, failures = 0 WHERE name = 'alpha'")
        return (await verbs.dispatch.claim("alpha", 8)).items

    moved, items = await race(roads.world, evacuate, open_and_claim, is_waiting=False)
    assert (moved, items) == (1, [])
    (item,) = (await roads.world.graph.dispatch.claim("alpha-2", 8)).items
    assert (item.task.id, item.attempt.provider, item.attempt.number) == (task_id, "alpha-2", 1)


async def test_a_cancel_waits_for_the_move_and_holds(roads: Crossroads) -> None:
    task_id = await roads.submit()
    await roads.shut("alpha", "funds")

    async def cancel(verbs: Verbs) -> str:
        return await verbs.cancel.cancel(roads.world.account_id, task_id)

    assert await race(roads.world, evacuate, cancel) == (1, "canceled")
    assert await roads.world.state(task_id) is State.CANCELED
    assert await roads.world.balance() == (1_000, 0)


async def test_under_claims_moves_and_breaking_keys_at_once_every_task_is_accepted_once(
    roads: Crossroads,
) -> None:
    taken: list[str] = []
    calls = 0

    async def submit(submission: Submission) -> Any:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise ProviderUnavailable("no", reason="credentials")
        taken.append(submission.reference)
        return accepted(submission.reference)

    roads.answer(submit, submit)
    made = [await roads.submit() for _ in range(30)]
    workers = [Reroute(roads.world.graph.context) for _ in range(2)]

    async def move(worker: Reroute) -> None:
        for _ in range(6):
            await worker.evacuate()
            await worker.even_out()

    for _ in range(25):
        await asyncio.gather(
            *(roads.world.dispatch(name) for name in (*ALPHA, "beta")), *(move(worker) for worker in workers)
        )
        if {await roads.world.state(task_id) for task_id in made} == {State.RUNNING}:
            break
        await roads.world.pass_time(seconds=61)
    assert {await roads.world.state(task_id) for task_id in made} == {State.RUNNING}
    assert len(taken) == len({reference.rpartition("-")[0] for reference in taken}) == 30
