"""Two who reconcile one day at the same moment, and news that reconciliation and a callback bring together."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from uuid import UUID

import pytest

from safelight.db.reconciliation import Run
from safelight.domain.news import Verdict
from safelight.domain.provider import Origin
from safelight.domain.task import State
from safelight.lifecycle.reconcile import Reconcile
from tests.races import rivals
from tests.races.rivals import PROVIDER, REPETITIONS, Verb, Verbs, race
from tests.world import World


def beginning(world: World, day: date) -> Verb:
    async def begin(verbs: Verbs) -> Run | None:
        context = replace(world.graph.context, database=verbs.database)
        return await Reconcile(context, verbs.advance, verbs.dispatch).begin(PROVIDER, day)

    return begin


def telling(task: UUID, origin: Origin) -> Verb:
    async def advance(verbs: Verbs) -> Verdict:
        return await verbs.advance.advance(rivals.success(task, origin))

    return advance


async def test_of_two_who_begin_one_day_the_first_has_it(world: World) -> None:
    await world.pass_time(days=1)
    today = await world.value("SELECT (clock_now() AT TIME ZONE 'UTC')::date - 1")
    won, lost = await race(world, beginning(world, today), beginning(world, today))
    assert isinstance(won, Run)
    assert lost is None
    assert await world.value("SELECT count(*) FROM reconciliations") == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [(Origin.CALLBACK, Origin.RECONCILIATION), (Origin.RECONCILIATION, Origin.CALLBACK)],
)
async def test_of_a_callback_and_reconciliation_the_first_moves_the_task(
    world: World, first: Origin, second: Origin
) -> None:
    for _ in range(REPETITIONS):
        task_id = await rivals.running(world)
        won, lost = await race(world, telling(task_id, first), telling(task_id, second))
        assert (won, lost) == (Verdict.APPLIED, Verdict.DUPLICATE)
        assert await world.state(task_id) is State.ARCHIVING
        noticed = await world.value("SELECT noticed_by FROM attempts WHERE task_id = $1", task_id)
        assert noticed == first
