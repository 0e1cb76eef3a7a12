"""What reconciliation finds, and tells without changing it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from safelight.domain.provider import (
    RecordKey,
    UpdateStatus,
)
from safelight.domain.task import State
from safelight.errors import ProviderError
from safelight.lifecycle.reconcile import MAX_TRIES
from tests.lifecycle.days import (
    LISTS,
    NAME,
    OWN_TABLES,
    day_of,
    findings,
    finish_one,
    go,
    kinds,
    moment,
    record,
    reference_of,
    until_due,
)
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
    token_of,
    uncertain,
)
from tests.world import Server, World, running_world


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
        await until_due(world)
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
