"""Theirs against ours: what was missed is applied, what differs is told, and the same again changes nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from safelight.db import reconciliation
from safelight.db.reconciliation import Run
from safelight.domain.provider import (
    Capabilities,
    Origin,
    Output,
    ProviderUpdate,
    RecordKey,
    UpdateStatus,
    UpstreamRecord,
)
from safelight.domain.task import State
from safelight.errors import ConfigurationError, ProviderError, StaleAttempt
from safelight.lifecycle import reconcile
from safelight.lifecycle.reconcile import LEASE_S, MAX_TRIES, Reconcile
from safelight.telemetry import set_fault_hook
from tests.lifecycle.invariants import assert_books, fingerprint
from tests.lifecycle.upstreams import (
    Scripted,
    always,
    done,
    failed,
    in_turn,
    install,
    pages,
    pass_until_due,
    ref_of,
    run_task,
    running,
    token_of,
    uncertain,
)
from tests.world import Server, World, running_world

NAME = "lab-poll"
LISTS = Capabilities(can_list=True, can_poll=True, record_retention_s=7 * 86_400.0)
OWN_TABLES = ("reconciliations", "reconciliation_records")
URL = "https://results.example/1.png"


async def day_of(world: World) -> date:
    """The day on which the first attempt was sent."""
    found: date = await world.value("SELECT (min(sent_at) AT TIME ZONE 'UTC')::date FROM attempts")
    return found


async def until_due(world: World) -> None:
    """Move the clock past the hour at which the days of all attempts are due."""
    await world.pass_time(hours=29)


async def go(world: World, day: date | None = None, provider: str = NAME) -> Run:
    """Reconcile one day now."""
    begun = await world.graph.reconcile.begin(provider, day or await day_of(world))
    assert begun is not None
    return await world.graph.reconcile.carry_out(begun)


async def moment(world: World) -> datetime:
    found: datetime = await world.value("SELECT min(sent_at) FROM attempts")
    return found


def update(status: UpdateStatus, **more: Any) -> ProviderUpdate:
    values = {"upstream_status": status.value, **more}
    return ProviderUpdate(status, Origin.RECONCILIATION, **values)


def record(
    ref: str, at: datetime, status: UpdateStatus = UpdateStatus.SUCCEEDED, **more: Any
) -> UpstreamRecord:
    outputs = (Output(url=URL),) if status is UpdateStatus.SUCCEEDED else ()
    told = update(status, provider_ref=ref, outputs=outputs, cost=more.pop("cost", None))
    return UpstreamRecord(ref, **{"reference": None, "created_at": at, "update": told, **more})


async def reference_of(world: World, task_id: UUID) -> str:
    return (await world.attempt(task_id)).reference


async def findings(world: World) -> list[tuple[str, Any]]:
    rows = await world.rows(
        "SELECT kind, coalesce(task_id::text, provider_ref) AS about FROM findings ORDER BY id"
    )
    return [(row["kind"], row["about"]) for row in rows]


def about(run: Run) -> list[tuple[str, ...]]:
    """What a report is about, line by line."""
    return sorted((str(line["kind"]), line["task_id"], line["provider_ref"]) for line in run.findings)


def kinds(run: Run) -> list[str]:
    return sorted(str(line["kind"]) for line in run.findings)


@contextmanager
def dying_at(point: str, *, time: int = 1) -> Iterator[None]:
    """Die when a fault point is reached for the n-th time."""
    left = time

    def hook(name: str) -> None:
        nonlocal left
        left -= name == point
        if name == point and left == 0:
            raise Killed(name)

    set_fault_hook(hook)
    try:
        yield
    finally:
        set_fault_hook(None)


class Killed(Exception):
    """The process is gone."""


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


async def stored(world: World, provider: str, day: date) -> list[Run]:
    async with world.database.connection() as connection:
        return await reconciliation.reports(connection, provider=provider, day=day, room=10)


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
    provider = install(world, Scripted(NAME, LISTS))
    await run_task(world, NAME)
    day = await day_of(world)
    provider.list_does = pages([])
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


async def finish_one(world: World, provider: Scripted, **more: Any) -> UUID:
    """A task that was drawn and settled."""
    provider.poll_does = in_turn(done(**more))
    task_id = await run_task(world, NAME)
    await pass_until_due(world, task_id)
    await world.look(NAME)
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    return task_id


@pytest.mark.parametrize(
    ("keeps_s", "listed", "found"),
    [
        pytest.param(7 * 86_400.0, [[]], ["unknown_upstream"], id="within retention"),
        pytest.param(None, [[]], [], id="unknown retention"),
        pytest.param(3_600.0, [[]], [], id="past retention"),
        pytest.param(7 * 86_400.0, [[], ProviderError("502")], [], id="list broke off"),
    ],
)
async def test_ours_is_unknown_to_them_only_in_a_complete_list_within_its_retention(
    world: World, keeps_s: float | None, listed: list[Any], found: list[str]
) -> None:
    provider = install(world, Scripted(NAME, replace(LISTS, record_retention_s=keeps_s)))
    task_id = await finish_one(world, provider)
    provider.list_does = pages(*listed)
    await until_due(world)
    day = await day_of(world)
    run = await go(world, day)
    for _ in range(MAX_TRIES):
        if run.finished_at is None:
            await world.pass_time(hours=2)
            run = await go(world, day)
    assert run.finished_at is not None
    assert run.is_complete == (len(listed) == 1)
    assert kinds(run) == found
    assert await findings(world) == [(kind, str(task_id)) for kind in found]
    assert await world.state(task_id) is State.SUCCEEDED


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


async def test_records_without_an_attempt_of_ours_are_orphans_only_where_they_must_be_ours(
    server: Server,
) -> None:
    async with running_world(server) as world:
        assert await orphans(world) == ["by-reference", "by-token"]
    async with running_world(server, providers={NAME: {"exclusive_key": True}}) as world:
        assert await orphans(world) == ["bare", "by-reference", "by-token"]
        (row,) = await world.rows("SELECT cost::float8, detail FROM findings WHERE provider_ref = 'bare'")
        assert row["cost"] == 2.5
        await assert_books(world)


async def orphans(world: World) -> list[str]:
    provider = install(world, Scripted(NAME, replace(LISTS, record_keys=frozenset({RecordKey.REFERENCE}))))
    task_id = await run_task(world, NAME)
    at = await moment(world)
    address = f"https://ours.example/callbacks/{NAME}/{token_of(world, UUID(int=7))}"
    provider.list_does = pages(
        [
            record(ref_of(await reference_of(world, task_id)), at, UpdateStatus.RUNNING),
            record("by-reference", at, reference=f"{'b' * 32}-2"),
            record("by-token", at, callback_url=address),
            record("bare", at, cost=2.5),
            record("another-day", at + timedelta(days=1), reference=f"{'c' * 32}-1"),
        ]
    )
    await until_due(world)
    for _ in range(2):
        run = await go(world)
        assert run.counts["records"] == 4 or at.hour in (0, 23)
    return sorted(about for kind, about in await findings(world) if kind == "orphan")


async def test_a_stranger_that_may_be_the_attempt_whose_answer_was_lost_is_no_orphan(server: Server) -> None:
    async with running_world(server, providers={NAME: {"exclusive_key": True}}) as world:
        provider = install(world, Scripted(NAME, LISTS, always(uncertain())))
        task_id = await run_task(world, NAME)
        provider.list_does = pages([record("perhaps", await moment(world))])
        await world.pass_time(hours=29)
        run = await go(world)
        assert (run.counts["unclear"], kinds(run)) == (1, [])
        await world.look(NAME)
        await world.pass_time(hours=25)
        await world.look(NAME)
        assert await world.state(task_id) is State.FAILED
        assert kinds(await go(world)) == ["orphan"], "nobody claims it any more, and it was paid for"


async def test_what_ended_differently_is_told_and_changes_neither_money_nor_state(world: World) -> None:
    provider = install(world, Scripted(NAME, LISTS))
    refs: dict[str, str] = {}
    made: dict[str, UUID] = {}
    for name, end in {
        "done": done(cost=1.0),
        "dear": done(cost=1.0),
        "agreed": done(cost=1.0),
        "failed": failed(cost=0.0),
    }.items():
        provider.poll_does = in_turn(end)
        made[name] = await run_task(world, NAME)
        await pass_until_due(world, made[name])
        await world.look(NAME)
        refs[name] = ref_of(await reference_of(world, made[name]))
    await world.rows("UPDATE tasks SET start_by = clock_now() WHERE state = 'retrying'")
    await world.archive_all()
    await world.graph.sweep.tidy()
    assert await world.state(made["failed"]) is State.FAILED
    at = await moment(world)
    provider.list_does = pages(
        [
            record(refs["failed"], at, cost=1.5),
            record(refs["done"], at, UpdateStatus.FAILED, cost=1.0),
            record(refs["dear"], at, cost=3.0),
            record(refs["agreed"], at, cost=1.0),
        ]
    )
    await until_due(world)
    before = await fingerprint(world, without=(*OWN_TABLES, "findings", "alerts"))
    run = await go(world)
    expected = {
        "orphan_result": made["failed"],
        "contradiction": made["done"],
        "amount_differs": made["dear"],
    }
    told = {str(line["kind"]): UUID(line["task_id"]) for line in run.findings if line["kind"] in expected}
    assert told == expected
    assert await fingerprint(world, without=(*OWN_TABLES, "findings", "alerts")) == before
    assert {kind for kind, _ in await findings(world)} >= set(expected)
    once = await findings(world)
    await go(world)
    assert await findings(world) == once, "each is kept once"


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


async def test_an_attempt_whose_answer_was_lost_is_adopted_by_its_reference(world: World) -> None:
    await world.knobs(lose_answer=1)
    task_id = await run_task(world, "lab-callback")
    assert await world.state(task_id) is State.UNCERTAIN
    await world.until_drawn()
    await until_due(world)
    run = await go(world, provider="lab-callback")
    assert kinds(run) == ["missed"]
    assert await world.state(task_id) is State.ARCHIVING
    assert (await world.attempt(task_id)).provider_ref is not None
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED


async def test_a_second_record_under_one_reference_is_an_orphan_beside_the_first(world: World) -> None:
    provider = install(world, Scripted(NAME, LISTS))
    task_id = await run_task(world, NAME)
    reference, at = await reference_of(world, task_id), await moment(world)
    provider.list_does = pages(
        [
            record(ref_of(reference), at, UpdateStatus.RUNNING, reference=reference),
            record("twin", at, reference=reference, cost=1.0),
        ]
    )
    await until_due(world)
    run = await go(world)
    (line,) = run.findings
    assert (line["kind"], line["provider_ref"], line["beside"]) == ("orphan", "twin", str(task_id))
    assert await world.state(task_id) is State.RUNNING


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
