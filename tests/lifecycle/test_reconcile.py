"""Theirs against ours, day by day: what was missed is applied, and the same again changes nothing."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from safelight.domain.provider import (
    Capabilities,
    ProviderUpdate,
)
from safelight.domain.task import State
from safelight.errors import ConfigurationError, ProviderError, StaleAttempt
from safelight.lifecycle import reconcile
from safelight.lifecycle.reconcile import LEASE_S, MAX_TRIES, Reconcile
from tests.lifecycle.days import (
    LISTS,
    NAME,
    OWN_TABLES,
    Killed,
    about,
    day_of,
    dying_at,
    findings,
    finish_one,
    go,
    kinds,
    moment,
    record,
    reference_of,
    stored,
    until_due,
)
from tests.lifecycle.invariants import fingerprint
from tests.lifecycle.upstreams import (
    Scripted,
    done,
    in_turn,
    install,
    pages,
    ref_of,
    run_task,
    running,
)
from tests.world import Server, World, running_world


async def test_after_a_day_without_callbacks_and_polls_one_pass_empties_the_difference(world: World) -> None:
    made = [await run_task(world, NAME) for _ in range(6)]
    made += [await run_task(world, "lab-callback") for _ in range(6)]
    await world.until_drawn(12)
    assert {await world.state(task_id) for task_id in made} == {State.RUNNING}
    await until_due(world)
    await world.graph.reconcile.step()
    assert {await world.state(task_id) for task_id in made} == {State.ARCHIVING}
    await world.archive_all()
    assert {await world.state(task_id) for task_id in made} == {State.SUCCEEDED}
    assert await world.balance() == (988, 0)
    noticed = await world.rows("SELECT DISTINCT noticed_by FROM attempts")
    assert [row["noticed_by"] for row in noticed] == ["reconciliation"]
    rows = await world.rows("SELECT counts FROM reconciliations WHERE counts <> '{}' ORDER BY provider")
    assert len(rows) >= 2

    await world.graph.reconcile.step()
    before = await fingerprint(world, without=OWN_TABLES)
    day = await day_of(world)
    for provider in (NAME, "lab-callback"):
        first = (await stored(world, provider, day))[-1]
        again = await go(world, day, provider)
        assert (again.counts, again.is_complete) == (first.counts, True)
        assert about(again) == about(first)
    assert await fingerprint(world, without=OWN_TABLES) == before
    assert (await world.lab_ledger())["accepted"] == 12


async def test_a_preview_finds_the_same_and_changes_nothing_at_all(world: World) -> None:
    task_id = await run_task(world, NAME)
    await world.until_drawn()
    await until_due(world)
    before = await fingerprint(world)
    preview = await world.graph.reconcile.preview(NAME, await day_of(world))
    assert await fingerprint(world) == before
    assert (kinds(preview), preview.counts["records"]) == (["missed"], 1)
    assert kinds(await go(world)) == ["missed"]
    assert await world.state(task_id) is State.ARCHIVING


@pytest.mark.parametrize("point", ["before_reconcile_commit", "after_reconcile_commit"])
async def test_a_run_that_is_killed_between_pages_goes_on_where_it_stood(world: World, point: str) -> None:
    provider = install(world, Scripted(NAME, LISTS))
    made = [await run_task(world, NAME) for _ in range(3)]
    at = await moment(world)
    listed = [[record(ref_of(await reference_of(world, task_id)), at)] for task_id in made]
    provider.list_does = pages(*listed, [record("a-stranger", at, reference=f"{'a' * 32}-1")])
    await until_due(world)
    with dying_at(point, time=2), pytest.raises(Killed):
        await world.graph.reconcile.step()
    assert provider.lists == [None, "1"]
    await world.graph.reconcile.step()
    assert provider.lists == [None, "1"], "its lease keeps the others away"
    await world.pass_time(seconds=LEASE_S + 1)
    await world.graph.reconcile.step()
    assert provider.lists[2:] == (["1", "2", "3"] if point.startswith("before") else ["2", "3"])
    assert {await world.state(task_id) for task_id in made} == {State.ARCHIVING}
    assert await findings(world) == [("orphan", "a-stranger")]
    (found,) = [run for run in await stored(world, NAME, await day_of(world)) if run.counts]
    assert (found.counts["records"], found.counts["attempts"], found.is_complete) == (4, 3, True)
    assert await world.value("SELECT count(*) FROM reconciliation_records") == 0


async def test_two_workers_share_the_days_and_read_no_page_twice(world: World) -> None:
    provider = install(world, Scripted(NAME, LISTS))
    task_id = await run_task(world, NAME)
    at = await moment(world)
    provider.list_does = pages([record(ref_of(await reference_of(world, task_id)), at)], [])
    await world.pass_time(days=3, hours=5)
    graph = world.graph
    other = Reconcile(graph.context, graph.advance, graph.dispatch)
    await asyncio.gather(graph.reconcile.step(), other.step())
    rows = await world.rows(
        "SELECT day, finished_at FROM reconciliations WHERE provider = $1 ORDER BY started_at, id", NAME
    )
    days = [row["day"] for row in rows]
    assert days == sorted(set(days))
    assert len(days) >= 3, "missed days are made up for, the oldest first"
    assert all(row["finished_at"] for row in rows)
    assert sorted(map(str, provider.lists)) == sorted(["None", "1"] * len(days))
    assert await world.state(task_id) is State.ARCHIVING


async def test_who_has_lost_his_run_to_another_keeps_nothing_of_it(world: World) -> None:
    provider = install(world, Scripted(NAME, LISTS))
    await run_task(world, NAME)
    at = await moment(world)
    provider.list_does = pages([record("a-stranger", at, reference=f"{'a' * 32}-1")])
    await until_due(world)
    day = await day_of(world)
    slow = await world.graph.reconcile.begin(NAME, day)
    assert slow is not None
    assert await world.graph.reconcile.begin(NAME, day) is None, "another is at it"
    await world.pass_time(seconds=LEASE_S + 1)
    quick = await world.graph.reconcile.begin(NAME, day)
    assert quick is not None
    finished = await world.graph.reconcile.carry_out(quick)
    with pytest.raises(StaleAttempt):
        await world.graph.reconcile.carry_out(slow)
    (kept,) = await stored(world, NAME, day)
    assert kept.counts == finished.counts
    assert await findings(world) == [("orphan", "a-stranger")]


async def test_a_day_that_is_not_over_is_compared_so_far_and_once_more_when_it_is(world: World) -> None:
    install(world, Scripted(NAME, LISTS, list_does=pages([])))
    await world.rows(
        "UPDATE clock SET shift = shift + date_trunc('day', clock_now()) + interval '36 hours' - clock_now()"
    )
    await run_task(world, NAME)
    day = await day_of(world)
    await world.pass_time(seconds=120)
    partial = await go(world, day)
    assert (partial.until_at.date(), partial.counts["attempts"]) == (day, 1)
    with pytest.raises(ConfigurationError, match="has not begun"):
        await world.graph.reconcile.begin(NAME, day + timedelta(days=2))
    await until_due(world)
    await world.graph.reconcile.step()
    whole, before = await stored(world, NAME, day)
    assert (whole.until_at - before.until_at) > timedelta()
    assert whole.until_at.date() == day + timedelta(days=1)


async def test_a_provider_that_cannot_be_asked_is_asked_again_later_and_in_the_end_given_up(
    world: World,
) -> None:
    provider = install(world, Scripted(NAME, LISTS, list_does=pages([], ProviderError("502"))))
    await run_task(world, NAME)
    await until_due(world)
    await world.graph.reconcile.step()
    (run,) = await world.rows("SELECT * FROM reconciliations WHERE finished_at IS NULL")
    assert (run["tries"], run["cursor"], run["note"]) == (1, "1", "provider: ")
    assert provider.lists == [None, "1"]
    await world.graph.reconcile.step()
    assert provider.lists == [None, "1"], "not at once"
    cursors = []
    while run["finished_at"] is None:
        await world.pass_time(hours=2)
        await world.graph.reconcile.step()
        (run,) = await world.rows("SELECT * FROM reconciliations WHERE id = $1", run["id"])
        cursors.append(run["cursor"])
    assert cursors[:4] == ["1", None, "1", "1"], "every third try begins at the first page"
    assert (run["tries"], run["is_complete"]) == (MAX_TRIES - 1, False)
    assert json.loads(run["counts"])["attempts"] == 1


async def test_without_a_list_what_did_not_end_well_is_asked_for_by_its_id(world: World) -> None:
    provider = install(world, Scripted(NAME, Capabilities(can_poll=True)))
    settled = await finish_one(world, provider)
    provider.poll_does = in_turn(running())
    waiting = await run_task(world, NAME)
    silent = await run_task(world, NAME)
    polls = provider.polls
    await until_due(world)
    provider.poll_does = by_reference(
        {await reference_of(world, waiting): done(), await reference_of(world, silent): ProviderError("404")}
    )
    run = await go(world)
    assert (run.mode, run.counts["attempts"], run.counts["asked"], run.counts["unreadable"]) == (
        "id",
        3,
        2,
        1,
    )
    assert provider.polls == polls + 2
    assert [await world.state(one) for one in (settled, waiting, silent)] == [
        State.SUCCEEDED,
        State.ARCHIVING,
        State.RUNNING,
    ]
    assert kinds(run) == kinds(await go(world)) == ["missed"]
    await world.archive_all()


def by_reference(answers: dict[str, Any]) -> Any:
    async def poll(attempt: Any) -> ProviderUpdate:
        answer = answers[attempt.reference]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]  # an update

    return poll


async def test_only_so_many_are_asked_for_by_id_and_within_the_quota(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = install(world, Scripted(NAME, Capabilities(can_poll=True, polls_per_s=20.0)))
    for _ in range(4):
        await run_task(world, NAME)
    monkeypatch.setattr(reconcile, "MAX_ASKED", 2)
    monkeypatch.setattr(reconcile, "OUR_ROOM", 1)
    await until_due(world)
    run = await go(world)
    assert (provider.polls, run.counts["asked"], run.is_complete) == (2, 2, False)


async def test_a_provider_that_keeps_nothing_has_only_our_side_to_count(world: World) -> None:
    await run_task(world, "lab-sync")
    await until_due(world)
    run = await go(world, provider="lab-sync")
    assert (run.mode, run.counts["attempts"], run.is_complete) == ("none", 1, True)
    await world.archive_all()


async def test_each_provider_has_its_hour_in_its_time_zone(server: Server) -> None:
    zones = {NAME: {"reconcile_hour": 4, "reconcile_zone": "Asia/Shanghai"}}
    async with running_world(server, providers=zones, reconcile_hour=1) as world:
        install(world, Scripted(NAME, LISTS, list_does=pages([])))
        await run_task(world, NAME)
        await run_task(world, "lab-sync")
        day = await day_of(world)
        await world.rows(
            "UPDATE clock SET shift = shift + ($1::date + 1 + time '02:00') AT TIME ZONE 'UTC' - clock_now()",
            day,
        )
        await world.graph.reconcile.plan()
        planned = await world.rows("SELECT provider, day FROM reconciliations")
        assert [tuple(row) for row in planned] == [("lab-sync", day)], "in Shanghai it is 10 o'clock"
        await world.pass_time(hours=18)
        await world.graph.reconcile.plan()
        await world.graph.reconcile.plan()
        planned = await world.rows("SELECT provider, day FROM reconciliations ORDER BY provider")
        assert [tuple(row) for row in planned] == [(NAME, day), ("lab-sync", day)]
