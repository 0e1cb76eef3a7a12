"""Observed callbacks: verified, kept and judged, while polling alone carries the state; and what they are worth."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from safelight.db import notices
from safelight.domain.provider import Capabilities, Trust
from safelight.domain.task import State
from safelight.errors import CallbackRejected
from safelight.lifecycle.notices import GRACE_S, RECENT, Report, report
from tests.lifecycle.conftest import NOBODY_LISTENS
from tests.lifecycle.invariants import assert_books, fingerprint
from tests.lifecycle.upstreams import (
    GENUINE,
    Scripted,
    accepted,
    always,
    call_back,
    done,
    in_turn,
    install,
    lab_job,
    pass_until_due,
    record_of,
    run_task,
    running,
    signed,
    token_of,
    uncertain,
    verdicts,
)
from tests.world import Server, World, running_world

NAME = "lab-callback"
CALLS_BACK = Capabilities(calls_back=True, trust=Trust.BODY)
OBSERVED: dict[str, Any] = {
    "knobs": {"callback_loss": 1},
    "public_url": NOBODY_LISTENS,
    "providers": {NAME: {"mode": "observe"}},
}
DONE = (GENUINE, b'{"status": "succeeded", "pictures": 1}')
RUNNING = (GENUINE, b'{"status": "running"}')
FAILED = (GENUINE, b'{"status": "failed"}')


@pytest.fixture
async def observed(server: Server) -> AsyncIterator[World]:
    """The lab that calls back, under observation."""
    async with running_world(server, **OBSERVED) as made:
        yield made
        await assert_books(made)


async def reported(world: World, *, days: int = 7) -> Report:
    await world.graph.receive.aclose()
    async with world.database.connection() as connection:
        mode = world.graph.context.table(NAME).mode
        return await report(connection, [NAME], mode=mode, days=days)


async def test_an_observed_callback_is_judged_and_changes_nothing(observed: World) -> None:
    task_id = await run_task(observed)
    await observed.until_drawn()
    record = await record_of(observed, await lab_job(observed, (await observed.attempt(task_id)).reference))
    before = await fingerprint(observed, without=["callbacks"])
    for _ in range(2):
        await call_back(observed, token_of(observed, task_id), signed(record))
    assert await fingerprint(observed, without=["callbacks"]) == before
    assert await verdicts(observed) == ["would_apply", "duplicate"]
    assert await observed.value("SELECT would_be FROM callbacks ORDER BY id LIMIT 1") == "archiving"
    await pass_until_due(observed, task_id)
    await observed.look()
    assert await observed.state(task_id) is State.ARCHIVING, "polling carries the state"
    await call_back(observed, token_of(observed, task_id), signed(record))
    await observed.archive_all()
    assert await observed.state(task_id) is State.SUCCEEDED
    assert await verdicts(observed) == ["would_apply", "duplicate", "duplicate"]
    assert await observed.value("SELECT noticed_by FROM attempts") == "poll"


async def test_observed_callbacks_are_judged_as_if_those_before_had_been_applied(observed: World) -> None:
    install(observed, Scripted(NAME, CALLS_BACK))
    task_id = await run_task(observed)
    for callback in (RUNNING, DONE, RUNNING, FAILED, DONE):
        await call_back(observed, token_of(observed, task_id), callback)
    expected = ["progress", "would_apply", "out_of_order", "out_of_order", "duplicate"]
    assert await verdicts(observed) == expected
    assert await observed.state(task_id) is State.RUNNING
    assert await observed.value("SELECT count(*) FROM findings") == 0


async def test_an_observed_failure_would_end_or_repeat_the_task_and_does_neither(observed: World) -> None:
    install(observed, Scripted(NAME, CALLS_BACK))
    task_id = await run_task(observed)
    await call_back(observed, token_of(observed, task_id), FAILED)
    assert await observed.value("SELECT would_be FROM callbacks") == "retrying"
    assert await observed.state(task_id) is State.RUNNING
    assert await observed.balance() == (999, 1)


async def test_an_observed_provider_is_polled_at_its_own_pace(observed: World, world: World) -> None:
    for one, calls_back in ((observed, False), (world, True)):
        async with one.database.connection() as connection:
            pace = await one.graph.context.paces.pace(connection, NAME, NAME)
        assert pace.calls_back is calls_back


async def test_an_observed_hint_brings_no_look_forward(observed: World) -> None:
    install(observed, Scripted(NAME, replace(CALLS_BACK, trust=Trust.HINT)))
    task_id = await run_task(observed)
    wake_at = await observed.value("SELECT wake_at FROM tasks")
    await call_back(observed, token_of(observed, task_id), DONE)
    assert await verdicts(observed) == ["hint"]
    assert await observed.value("SELECT wake_at FROM tasks") == wake_at


async def test_an_observed_callback_that_came_before_its_id_was_known_is_not_applied_later(
    observed: World,
) -> None:
    install(observed, Scripted(NAME, CALLS_BACK, in_turn(accepted("x", provider_ref="up-1"))))
    await call_back(observed, None, (GENUINE, b'{"status": "succeeded", "id": "up-1", "pictures": 1}'))
    task_id = await run_task(observed)
    assert await observed.state(task_id) is State.RUNNING
    assert await verdicts(observed) == ["unknown"]


async def test_a_lost_answer_of_an_observed_provider_does_not_wait_for_a_callback(observed: World) -> None:
    install(observed, Scripted(NAME, CALLS_BACK, always(uncertain())))
    task_id = await run_task(observed)
    await pass_until_due(observed, task_id)
    await observed.look()
    assert await observed.state(task_id) is State.REVIEW


async def test_the_report_says_what_applying_would_have_changed(observed: World) -> None:
    provider = install(observed, Scripted(NAME, CALLS_BACK, poll_does=in_turn(running(), done())))
    told = await run_task(observed)
    silent = await run_task(observed)
    await call_back(observed, token_of(observed, told), DONE)
    await observed.pass_time(seconds=100)
    await observed.look()
    provider.poll_does = in_turn(done())
    await observed.pass_time(seconds=100)
    await observed.look()
    assert {await observed.state(one) for one in (told, silent)} == {State.ARCHIVING}
    await observed.pass_time(seconds=GRACE_S + 5)
    found = await reported(observed)
    assert (found.mode, found.verdicts, found.received) == ("observe", {"would_apply": 1}, 1)
    finished = found.finished
    assert (finished.finished, finished.never_came, finished.by_callback) == (2, 1, 0)
    assert (finished.compared, finished.sooner) == (1, 1)
    gain_s = await observed.value(
        "SELECT extract(epoch FROM ended_at - received_at)::float8"
        " FROM attempts JOIN callbacks USING (task_id) WHERE task_id = $1",
        told,
    )
    assert gain_s >= 100
    assert finished.median_gain_s == pytest.approx(gain_s)
    assert finished.median_delay_s == pytest.approx(-gain_s)
    await observed.archive_all()


async def test_the_report_counts_early_stale_unknown_and_forged_ones(world: World) -> None:
    install(world, Scripted(NAME, CALLS_BACK))
    task_id = await world.submit()
    await world.graph.dispatch.claim(NAME, 1)
    await call_back(world, token_of(world, task_id), RUNNING)
    assert await world.state(task_id) is State.RUNNING
    await call_back(world, token_of(world, task_id), DONE)
    await call_back(world, token_of(world, UUID(int=5)), DONE)
    await call_back(world, None, (GENUINE, b'{"status": "succeeded", "id": "up-9"}'))
    before = await fingerprint(world)
    for _ in range(3):
        with pytest.raises(CallbackRejected):
            await call_back(world, token_of(world, task_id), ([], b"{}"))
    found = await reported(world)
    assert await fingerprint(world) == before, "of a forged one nothing is kept but a count"
    assert found.verdicts == {"applied": 2}
    assert (found.early, found.unknown, found.forged) == (1, 2, 3)
    assert found.rejected == {"wrong_signature": 3}
    assert found.received == 7
    await world.pass_time(days=8)
    old = await reported(world)
    assert (old.received, old.finished.finished) == (0, 0)
    await world.archive_all()


async def test_a_callback_after_the_look_is_late_by_so_much(world: World) -> None:
    install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(done())))
    task_id = await run_task(world)
    await pass_until_due(world, task_id)
    await world.look()
    await world.pass_time(seconds=40)
    await call_back(world, token_of(world, task_id), DONE)
    await world.pass_time(seconds=GRACE_S + 5)
    finished = (await reported(world)).finished
    assert (finished.compared, finished.sooner, finished.never_came) == (1, 0, 0)
    assert finished.median_delay_s is not None
    assert 40 <= finished.median_delay_s < 60
    await world.archive_all()


async def finish(world: World, count: int, *, with_callbacks: bool) -> None:
    """Some tasks that end, noticed by callback or by look."""
    made = [await world.submit() for _ in range(count)]
    await world.dispatch()
    if with_callbacks:
        for task_id in made:
            await call_back(world, token_of(world, task_id), DONE)
    else:
        await world.pass_time(seconds=60)
        await world.look()
    assert {await world.state(task_id) for task_id in made} == {State.ARCHIVING}
    await world.pass_time(seconds=GRACE_S + 1)
    await world.graph.watch.step()


async def alarms(world: World) -> list[str]:
    async with world.database.connection() as connection:
        return list(await notices.alarms(connection))


async def test_callbacks_that_stop_raise_one_alarm_until_they_come_again(world: World) -> None:
    install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(done())))
    await finish(world, RECENT, with_callbacks=True)
    assert await alarms(world) == []
    await finish(world, RECENT // 2, with_callbacks=False)
    assert await alarms(world) == [], "half of the usual is not yet an alarm"
    with capture_logs() as said:
        await finish(world, RECENT // 2, with_callbacks=False)
    assert [line["log_level"] for line in said if line["event"] == "callbacks_missing"] == ["error"]
    assert await alarms(world) == [NAME]
    with capture_logs() as said:
        await world.graph.watch.step()
    assert [line for line in said if line["event"] == "callbacks_missing"] == [], "it was said before"
    await finish(world, RECENT // 2, with_callbacks=True)
    assert await alarms(world) == [NAME], "half is not enough to trust them again"
    await finish(world, RECENT // 2, with_callbacks=True)
    assert await alarms(world) == []


async def test_without_an_address_of_ours_no_callback_is_missed(server: Server) -> None:
    async with running_world(server) as world:
        install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(done())))
        await finish(world, RECENT, with_callbacks=False)
        assert await alarms(world) == []
