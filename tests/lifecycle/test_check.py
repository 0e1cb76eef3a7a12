"""The fallback poll: as often as planned, never a verdict by itself, and everything comes to an end."""

from __future__ import annotations

from uuid import UUID

import pytest

from safelight.db.tasks import run_times
from safelight.domain.news import Verdict
from safelight.domain.provider import AttemptRef, Capabilities, ProviderUpdate
from safelight.domain.task import State
from safelight.errors import ProviderError
from safelight.lifecycle.advance import News
from tests.lifecycle.invariants import history
from tests.lifecycle.upstreams import (
    Poll,
    Scripted,
    accepted,
    done,
    failed,
    in_turn,
    install,
    pass_until_due,
    ref_of,
    run_task,
    running,
)
from tests.world import World

NAME = "lab-callback"
CALLS_BACK = Capabilities(calls_back=True, can_cancel=True)
POLLED = Capabilities(can_cancel=True)


async def look_when_due(world: World, task_id: UUID, name: str = NAME) -> float:
    passed_s = await pass_until_due(world, task_id)
    await world.look(name)
    return passed_s


async def reviewed(world: World, task_id: UUID) -> tuple[str, str | None]:
    (row,) = await world.rows("SELECT state, review_reason FROM tasks WHERE id = $1", task_id)
    return row["state"], row["review_reason"]


async def test_with_every_callback_lost_all_tasks_end_with_about_one_poll_each(world: World) -> None:
    made = [await world.submit() for _ in range(20)]
    await world.dispatch()
    await world.until_drawn(20)
    assert await world.look() == 0, "nothing is polled before P95"
    await world.pass_time(seconds=8.1)
    assert await world.look() == 20
    assert {await world.state(task_id) for task_id in made} == {State.ARCHIVING}
    await world.archive_all()
    assert await world.balance() == (980, 0)
    assert (await world.lab_ledger())["polls"] == 20


async def test_looks_of_tasks_started_together_are_spread(world: World) -> None:
    for _ in range(30):
        await world.submit()
    await world.dispatch()
    rows = await world.rows("SELECT extract(epoch FROM wake_at - state_since)::float8 AS gap_s FROM tasks")
    gaps = [row["gap_s"] for row in rows]
    assert min(gaps) >= 4.0
    assert max(gaps) <= 8.1
    assert max(gaps) - min(gaps) > 1.0


async def test_five_looks_without_progress_go_to_a_person(world: World) -> None:
    provider = install(world, Scripted(NAME, CALLS_BACK, poll_does=always_running("queued")))
    task_id = await run_task(world)
    gaps = [await look_when_due(world, task_id) for _ in range(5)]
    assert await reviewed(world, task_id) == ("review", "no_progress")
    assert provider.polls == 5
    assert 4 <= gaps[0] <= 8.1
    assert all(4 <= gap <= 6.1 for gap in gaps[1:3]), gaps
    assert 6.3 <= gaps[3] <= 9.7, gaps
    assert await world.balance() == (999, 1)
    assert provider.cancel_calls == 0


async def test_progress_starts_the_count_anew(world: World) -> None:
    looks = [
        running(upstream_status="queued", percent=percent)
        for percent in (None, None, None, 10, 10, 10, 10, 10)
    ]
    install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(*looks)))
    task_id = await run_task(world)
    counts = []
    for _ in range(8):
        await look_when_due(world, task_id)
        counts.append((await world.task(task_id)).looks)
    assert counts[:7] == [1, 2, 3, 0, 1, 2, 3]
    assert await world.state(task_id) is State.RUNNING
    await look_when_due(world, task_id)
    assert await reviewed(world, task_id) == ("review", "no_progress")


async def test_a_changed_upstream_state_and_a_shorter_line_are_progress(world: World) -> None:
    steps = [
        running(upstream_status="queued", position=9),
        running(upstream_status="queued", position=9),
        running(upstream_status="queued", position=3),
        running(upstream_status="drawing"),
    ]
    install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(*steps)))
    task_id = await run_task(world)
    counts = []
    for _ in range(5):
        await look_when_due(world, task_id)
        counts.append((await world.task(task_id)).looks)
    assert counts == [1, 2, 0, 0, 1]


async def test_a_stuck_provider_is_one_alert_and_nobody_is_moved(world: World) -> None:
    install(world, Scripted(NAME, CALLS_BACK, poll_does=always_running("queued")))
    for _ in range(12):
        await world.submit()
    await world.dispatch()
    await world.rows("UPDATE tasks SET looks = 4")
    await world.pass_time(seconds=60)
    assert await world.look() == 12
    assert {row["state"] for row in await world.rows("SELECT state FROM tasks")} == {"running"}


async def test_a_few_stuck_tasks_of_a_busy_provider_are_moved(world: World) -> None:
    install(world, Scripted(NAME, CALLS_BACK, poll_does=always_running("queued")))
    for _ in range(20):
        await world.submit()
    await world.dispatch()
    await world.rows("UPDATE tasks SET looks = 4 WHERE id IN (SELECT id FROM tasks LIMIT 3)")
    await world.pass_time(seconds=60)
    await world.look()
    assert await world.value("SELECT count(*) FROM tasks WHERE state = 'review'") == 3


async def test_poll_errors_are_no_verdict_and_do_not_count(world: World) -> None:
    broken = ProviderError("502 and HTML")
    steps = [broken] * 8 + [done()]
    provider = install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(*steps)))
    task_id = await run_task(world)
    for _ in range(8):
        await look_when_due(world, task_id)
        task = await world.task(task_id)
        assert (task.state, task.looks) == (State.RUNNING, 0)
    await look_when_due(world, task_id)
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert provider.polls == 9


async def test_a_status_that_nobody_knows_keeps_the_task_running(world: World) -> None:
    await world.knobs(unknown_status=1)
    task_id = await run_task(world, "lab-poll")
    await world.until_drawn()
    for _ in range(2):
        await look_when_due(world, task_id, "lab-poll")
        assert await world.state(task_id) is State.RUNNING
    assert (await world.attempt(task_id)).upstream_status == "dreaming"
    await look_when_due(world, task_id, "lab-poll")
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED


async def test_progress_of_a_hundred_percent_decides_nothing(world: World) -> None:
    steps = [running(percent=100), failed(percent=100)]
    install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(*steps)))
    task_id = await run_task(world)
    await look_when_due(world, task_id)
    assert await world.state(task_id) is State.RUNNING
    await look_when_due(world, task_id)
    assert await world.state(task_id) is State.RETRYING


async def test_at_the_deadline_comes_one_last_look_then_a_cancel_then_a_person(world: World) -> None:
    provider = install(world, Scripted(NAME, CALLS_BACK))
    task_id = await run_task(world)
    await world.pass_time(seconds=301)
    assert await world.look() == 1
    assert (provider.polls, provider.cancel_calls) == (1, 1)
    assert await reviewed(world, task_id) == ("review", "deadline")
    assert await world.balance() == (999, 1)
    left_s = await world.value("SELECT extract(epoch FROM decide_by - clock_now())::float8 FROM tasks")
    assert 86_300 < left_s <= 86_400


async def test_a_result_at_the_last_look_counts(world: World) -> None:
    task_id = await run_task(world)
    await world.until_drawn()
    await world.pass_time(seconds=301)
    await world.look()
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED


async def test_a_task_is_polled_slowly_in_review_and_news_takes_it_out(world: World) -> None:
    provider = install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(*[running()] * 4, done())))
    task_id = await run_task(world)
    await world.pass_time(seconds=301)
    await world.look()
    for _ in range(3):
        left_s = await world.value("SELECT extract(epoch FROM wake_at - clock_now())::float8 FROM tasks")
        assert 580 < left_s <= 600
        await look_when_due(world, task_id)
        assert await world.state(task_id) is State.REVIEW
    await look_when_due(world, task_id)
    assert await world.state(task_id) is State.ARCHIVING
    await world.archive_all()
    assert provider.polls == 5
    assert await world.balance() == (999, 0)


async def test_an_undecided_review_fails_and_its_late_success_changes_nothing(world: World) -> None:
    provider = install(world, Scripted(NAME, CALLS_BACK))
    task_id = await run_task(world)
    await world.pass_time(seconds=301)
    await world.look()
    await world.pass_time(hours=24, minutes=1)
    await world.look()
    assert await history(world, task_id) == ["queued", "submitting", "running", "review", "failed"]
    assert await world.balance() == (1_000, 0)
    assert await world.look() == 0, "an ended task is not looked at"
    assert provider.polls == 2, "not even decided by the clock without one more look"


async def test_a_review_that_news_ends_meanwhile_is_left_quietly(world: World) -> None:
    async def poll(_: AttemptRef) -> ProviderUpdate:
        await world.graph.advance.advance(news)
        return running()

    provider = install(world, Scripted(NAME, CALLS_BACK))
    task_id = await run_task(world)
    await world.pass_time(seconds=301)
    await world.look()
    await world.pass_time(hours=25)
    news = News(task_id, 1, update=failed())
    provider.poll_does = poll
    (due,) = await world.graph.check.claim(NAME, 1)
    await world.graph.check.check(*due)
    assert await world.state(task_id) is State.RETRYING
    assert await world.graph.advance.advance(news) is not Verdict.APPLIED


async def test_the_first_look_of_a_polled_provider_comes_near_the_median_and_then_less_often(
    world: World,
) -> None:
    install(world, Scripted("lab-poll", POLLED))
    task_id = await run_task(world, "lab-poll")
    gaps = [await look_when_due(world, task_id, "lab-poll") for _ in range(4)]
    assert 1.6 <= gaps[0] <= 2.5, gaps
    assert gaps[0] < gaps[2] < gaps[3] + 3, gaps


async def test_a_hanging_provider_does_not_keep_others_from_being_looked_at(world: World) -> None:
    await run_task(world)
    await run_task(world, "lab-poll")
    await world.until_drawn(2)
    await world.pass_time(seconds=60)
    (held,) = await world.graph.check.claim(NAME, 10)
    assert held[0].provider == NAME
    assert await world.graph.check.claim(NAME, 10) == [], "the claim is a lease"
    assert await world.look("lab-poll") == 1
    await world.pass_time(seconds=61)
    assert len(await world.graph.check.claim(NAME, 10)) == 1, "and a lost look comes back"


async def test_a_running_task_whose_id_was_never_told_waits_for_its_callback(world: World) -> None:
    """B12 and F17: without an id of our own to ask by, a look says nothing and ends nothing."""
    provider = install(world, Scripted(NAME, CALLS_BACK, in_turn(accepted("x", provider_ref="one-id"))))
    await run_task(world)
    second = await run_task(world)
    assert (await world.attempt(second)).provider_ref is None
    for _ in range(6):
        await look_when_due(world, second)
    assert await world.state(second) is State.RUNNING
    assert provider.cancel_calls == 0


async def test_a_failed_attempt_is_followed_by_another_and_three_end_the_task(world: World) -> None:
    await world.knobs(fail=1)
    task_id = await world.submit()
    for number in (1, 2, 3):
        await world.dispatch()
        await world.until_drawn(number)
        await world.pass_time(seconds=9)
        await world.look()
        await world.pass_time(seconds=10)
    assert await world.state(task_id) is State.FAILED
    assert await world.balance() == (1_000, 0)
    references = {item["reference"] for item in (await world.lab_ledger())["items"]}
    assert references == {f"{task_id.hex}-{number}" for number in (1, 2, 3)}
    (ending,) = await world.rows("SELECT failure_class, failure_code FROM tasks")
    assert tuple(ending) == ("upstream_fault", "generation_failed")


async def test_a_moderated_task_ends_blocked_without_another_attempt(world: World) -> None:
    await world.knobs(moderate=1)
    task_id = await run_task(world, "lab-poll")
    await world.until_drawn()
    await look_when_due(world, task_id, "lab-poll")
    assert await world.state(task_id) is State.BLOCKED
    assert await world.balance() == (1_000, 0)
    assert (await world.lab_ledger())["accepted"] == 1


async def test_the_threshold_is_measured_from_twenty_successes_and_from_nothing_else(world: World) -> None:
    made = [await world.submit(n=1) for _ in range(21)]
    install(
        world,
        Scripted(NAME, CALLS_BACK, poll_does=in_turn(*[done(run_s=2.0)] * 19, done(run_s=30.0), failed())),
    )
    await world.dispatch()
    await world.pass_time(seconds=60)
    await world.look()
    assert {await world.state(task_id) for task_id in made} == {State.ARCHIVING, State.RETRYING}
    async with world.database.connection() as connection:
        times = await run_times(connection, [NAME], "lab-callback")
        world.graph.context.paces._kept.clear()
        pace = await world.graph.context.paces.pace(connection, NAME, "lab-callback")
    assert times.samples == 20
    assert times.median_s == pytest.approx(2.0)
    assert pace.p95_s == pytest.approx(2.0 + 0.05 * 28.0)
    assert not pace.calls_back, "callbacks came first in fewer than half of the last twenty"


async def test_a_success_that_only_a_look_noticed_does_not_push_the_threshold_up(world: World) -> None:
    install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(running(), done())))
    task_id = await run_task(world)
    await look_when_due(world, task_id)
    first_s = await world.value("SELECT extract(epoch FROM looked_at - accepted_at)::float8 FROM attempts")
    await world.pass_time(seconds=100)
    await world.look()
    assert await world.value("SELECT run_s FROM attempts") == pytest.approx(first_s, abs=0.01)
    assert ref_of(f"{task_id.hex}-1") == (await world.attempt(task_id)).provider_ref


async def test_a_waiting_task_past_its_start_fails_and_is_released(world: World) -> None:
    waiting = await world.submit(n=3)
    await world.knobs(rate_limit=1)
    retrying = await run_task(world, "lab-poll")
    started = await run_task(world, "lab-sync", key="third")
    await world.pass_time(seconds=3_599)
    await world.graph.sweep.tidy()
    assert await world.state(waiting) is State.QUEUED
    await world.pass_time(seconds=2)
    await world.graph.sweep.tidy()
    rows = await world.rows("SELECT id, state, failure_class, failure_code FROM tasks")
    ends = {row["id"]: (row["state"], row["failure_class"], row["failure_code"]) for row in rows}
    assert ends[waiting] == ends[retrying] == ("failed", "environment", "not_started")
    assert ends[started][0] == "failed"
    assert await world.balance() == (1_000, 0)


def always_running(word: str) -> Poll:
    """An upstream that says the same thing for ever."""
    return in_turn(running(upstream_status=word))
