"""Breakers, limits and looks for each provider key; and what an attempt remembers of its upstream."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from safelight.db import views
from safelight.db.tasks import run_times
from safelight.domain.provider import AttemptRef, Capabilities, ProviderUpdate, Submission
from safelight.domain.task import State
from safelight.errors import ProviderError, ProviderRefused, ProviderUnavailable, SubmissionUncertain
from tests.lifecycle.crossroads import ALPHA, CALLS_BACK, Crossroads, running_crossroads
from tests.lifecycle.invariants import assert_books
from tests.lifecycle.upstreams import GENUINE, accepted, always, call_back, done, in_turn, token_of
from tests.world import Server


def fault() -> ProviderRefused:
    return ProviderRefused("no", failure_class="upstream_fault", failure_code="generation_failed")


@pytest.fixture
async def roads(server: Server) -> AsyncIterator[Crossroads]:
    async with running_crossroads(server, public_url="http://127.0.0.1:9") as made:
        yield made
        await assert_books(made.world)


async def failures_of(roads: Crossroads, name: str) -> tuple[str, int, int]:
    (row,) = await roads.world.rows("SELECT reason, failures, faults FROM gates WHERE name = $1", name)
    return row["reason"], row["failures"], row["faults"]


@pytest.mark.parametrize("error", [fault(), SubmissionUncertain("timeout")], ids=["faults", "time-outs"])
async def test_five_failed_calls_in_a_row_open_the_breaker_and_a_good_probe_closes_it(
    roads: Crossroads, error: ProviderError
) -> None:
    roads.alpha.submit_does = always(error)
    for place in range(5):
        await roads.shut("alpha-2", "funds")
        await roads.submit()
        await roads.world.dispatch("alpha", room=1)
        assert (await failures_of(roads, "alpha"))[2] == place + 1
    assert (await failures_of(roads, "alpha"))[:2] == ("faults", 1)
    assert (await roads.world.graph.dispatch.claim("alpha", 1)).items == []
    roads.alpha.submit_does = None
    await roads.world.pass_time(seconds=200)
    assert len((await roads.world.graph.dispatch.claim("alpha", 8)).items) <= 1, "one probe at a time"
    await roads.world.pass_time(seconds=200)
    await roads.world.look("alpha")
    await roads.submit()
    await roads.world.dispatch("alpha")
    assert await failures_of(roads, "alpha") == ("", 0, 0)


async def test_a_success_between_faults_starts_the_count_anew(roads: Crossroads) -> None:
    calls = 0

    async def submit(submission: Submission) -> ProviderUpdate:
        nonlocal calls
        calls += 1
        if calls % 5:
            raise fault()
        return accepted(submission.reference)

    roads.answer(submit)
    await roads.shut("alpha-2", "funds")
    for _ in range(14):
        await roads.submit()
        await roads.world.dispatch("alpha", room=1)
    assert await roads.world.value("SELECT failures FROM gates WHERE name = 'alpha'") == 0


async def test_the_log_says_that_a_gate_opened_only_where_one_was_closed(roads: Crossroads) -> None:
    async def submit(fails: bool) -> None:
        roads.alpha.submit_does = always(fault()) if fails else None
        await roads.shut("alpha-2", "funds")
        await roads.submit()
        await roads.world.dispatch("alpha", room=1)

    with capture_logs() as logs:
        for fails in (True, False):
            await submit(fails)
        assert [line["event"] for line in logs if line["event"].startswith("gate_")] == []
        for _ in range(5):
            await submit(True)
        await roads.world.pass_time(seconds=400)
        await submit(False)
    events = [(line["event"], line["provider"]) for line in logs if line["event"].startswith("gate_")]
    assert events == [("gate_closed", "alpha"), ("gate_opened", "alpha")]


async def test_a_failed_run_does_not_stop_the_others(roads: Crossroads) -> None:
    for _ in range(6):
        task_id = await roads.submit()
        await roads.world.dispatch(name := await roads.provider(task_id))
        notice = (GENUINE, b'{"status": "failed"}')
        await call_back(roads.world, token_of(roads.world, task_id), notice, name)
    assert await roads.world.value("SELECT coalesce(sum(failures + faults), 0) FROM gates") == 0


async def test_calls_that_fail_together_count_as_one_closing(roads: Crossroads) -> None:
    roads.alpha.submit_does = always(ProviderUnavailable("no", reason="credentials"))
    await roads.shut("alpha-2", "funds")
    for _ in range(10):
        await roads.submit()
    await roads.world.dispatch("alpha")
    assert len(roads.alpha.submissions) == 10
    assert (await failures_of(roads, "alpha"))[:2] == ("credentials", 1)


async def test_the_health_of_each_key_can_be_read(roads: Crossroads) -> None:
    for _ in range(3):
        await roads.submit(n=2)
    (item,) = (await roads.world.graph.dispatch.claim("alpha", 1)).items
    await roads.world.graph.dispatch.send(item)
    await roads.shut("alpha-2", "funds")
    async with roads.world.database.connection() as connection:
        one, two, other = await views.provider_health(connection, [*ALPHA, "beta"])
    assert (one.name, one.is_closed, one.calls, one.tasks, one.images, one.waiting) == (
        "alpha",
        False,
        0,
        1,
        2,
        1,
    )
    assert (two.is_closed, two.reason, two.failures, two.waiting) == (True, "funds", 1, 1)
    assert two.closed_until is not None
    assert (other.name, other.tasks, other.waiting, other.closed_until) == ("beta", 0, 0, None)


# ------------------------------------------------------------------------- capacity, looks, links


async def test_no_more_tasks_are_active_upstream_than_the_provider_allows(roads: Crossroads) -> None:
    roads.alpha.capabilities = replace(CALLS_BACK, max_active_tasks=2)
    await roads.shut("alpha-2", "funds")
    made = [await roads.submit() for _ in range(4)]
    await roads.world.dispatch("alpha")
    states = Counter([await roads.world.state(task_id) for task_id in made])
    assert states == {State.RUNNING: 2, State.QUEUED: 2}


async def test_a_quota_of_looks_is_shared_by_all_workers(roads: Crossroads) -> None:
    roads.alpha.capabilities = Capabilities(polls_per_s=2.0)
    await roads.shut("alpha-2", "funds")
    for _ in range(9):
        await roads.submit()
    await roads.world.dispatch("alpha")
    await roads.world.pass_time(seconds=100)
    check = roads.world.graph.check
    taken = await asyncio.gather(*(check.claim("alpha", 100) for _ in range(3)))
    assert sum(map(len, taken)) == 2
    await roads.world.pass_time(seconds=1)
    assert len(await check.claim("alpha", 100)) == 2
    await roads.world.pass_time(seconds=60)
    assert len(await check.claim("alpha", 100)) == 2, "an hour of rest allows no flood"


async def test_a_slow_quota_still_lets_one_look_through(roads: Crossroads) -> None:
    roads.alpha.capabilities = Capabilities(polls_per_s=0.1)
    await roads.shut("alpha-2", "funds")
    for _ in range(3):
        await roads.submit()
    await roads.world.dispatch("alpha")
    await roads.world.pass_time(seconds=100)
    check = roads.world.graph.check
    assert [len(await check.claim("alpha", 100)) for _ in range(2)] == [1, 0]
    await roads.world.pass_time(seconds=11)
    assert len(await check.claim("alpha", 100)) == 1


async def test_links_of_an_attempt_are_kept_and_none_is_lost(roads: Crossroads) -> None:
    first = accepted("x", links={"poll": "https://up.example/1", "cancel": "https://up.example/1/cancel"})
    roads.alpha.submit_does = in_turn(first)
    seen: list[dict[str, str]] = []

    async def poll(attempt: AttemptRef) -> ProviderUpdate:
        seen.append(dict(attempt.links))
        return replace(
            done(), links={"result": "https://up.example/1/result", "poll": "https://up.example/2"}
        )

    roads.alpha.poll_does = poll
    task_id = await roads.submit()
    await roads.world.dispatch("alpha")
    await roads.world.pass_time(seconds=100)
    await roads.world.look("alpha")
    assert seen == [{"poll": "https://up.example/1", "cancel": "https://up.example/1/cancel"}]
    assert (await roads.world.attempt(task_id)).links == {
        "poll": "https://up.example/2",
        "cancel": "https://up.example/1/cancel",
        "result": "https://up.example/1/result",
    }


async def test_run_times_of_all_keys_of_a_provider_count_together(roads: Crossroads) -> None:
    for provider in (roads.alpha, roads.alpha_2):
        provider.poll_does = in_turn(done(run_s=7.0))
    for _ in range(20):
        await roads.submit()
    for name in ALPHA:
        await roads.world.dispatch(name)
    await roads.world.pass_time(seconds=100)
    for name in ALPHA:
        await roads.world.look(name)
    async with roads.world.database.connection() as connection:
        assert (await run_times(connection, ["alpha"], "poster-a")).samples == 10
        assert (await run_times(connection, ALPHA, "poster-a")).samples == 20
        paces = roads.world.graph.context.paces
        paces._kept.clear()
        one, two = [await paces.pace(connection, name, "poster-a") for name in ALPHA]
    assert one == two
    assert one.median_s == 7.0
