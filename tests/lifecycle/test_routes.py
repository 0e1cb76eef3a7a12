"""Routes and keys: to the next one only where the one before certainly has not, and never twice at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date, timedelta

import pytest

from safelight.db import tasks
from safelight.domain.task import State
from safelight.errors import (
    CallbackRejected,
    ProviderRefused,
    ProviderUnavailable,
    RequestError,
    SubmissionUncertain,
)
from tests.lifecycle.crossroads import ALPHA, CALLS_BACK, POSTER, SECOND, Crossroads, running_crossroads
from tests.lifecycle.invariants import assert_books, history
from tests.lifecycle.upstreams import (
    GENUINE,
    accepted,
    always,
    call_back,
    done,
    in_turn,
    not_sent,
    token_of,
    verdicts,
)
from tests.world import Server

NOBODY_LISTENS = "http://127.0.0.1:9"


def fault() -> ProviderRefused:
    return ProviderRefused("no", failure_class="upstream_fault", failure_code="generation_failed")


def turned_away(reason: str, retry_after_s: float | None = None) -> ProviderUnavailable:
    return ProviderUnavailable("no", reason=reason, retry_after_s=retry_after_s)


@pytest.fixture
async def roads(server: Server) -> AsyncIterator[Crossroads]:
    async with running_crossroads(server, public_url=NOBODY_LISTENS) as made:
        yield made
        await assert_books(made.world)


# ------------------------------------------------------------------------------------------- keys


async def test_new_tasks_go_to_the_least_loaded_key_of_the_first_route(roads: Crossroads) -> None:
    first = [await roads.submit() for _ in range(3)]
    rest = await asyncio.gather(*(roads.world.submit("poster") for _ in range(7)))
    spread = Counter([await roads.provider(task_id) for task_id in (*first, *rest)])
    assert spread == {"alpha": 5, "alpha-2": 5}


async def test_each_key_has_a_callback_address_a_gate_and_limits_of_its_own(roads: Crossroads) -> None:
    roads.alpha.capabilities = roads.alpha_2.capabilities = replace(CALLS_BACK, max_calls=1)
    for _ in range(4):
        await roads.submit()
    one = await roads.world.graph.dispatch.claim("alpha", 64)
    two = await roads.world.graph.dispatch.claim("alpha-2", 64)
    assert (len(one.items), len(two.items)) == (1, 1)
    await roads.world.graph.dispatch.send(two.items[0])
    url = roads.alpha_2.submissions[0].callback_url
    assert url is not None
    assert url.startswith(f"{NOBODY_LISTENS}/callbacks/alpha-2/")
    await roads.shut("alpha-2", "funds")
    await roads.world.graph.dispatch.send(one.items[0])
    assert len((await roads.world.graph.dispatch.claim("alpha", 64)).items) == 1, "the other key works on"


async def test_what_waits_for_a_broken_key_moves_to_the_healthy_one_and_leaves_its_trace(
    roads: Crossroads,
) -> None:
    made = [await roads.submit() for _ in range(6)]
    await roads.shut("alpha", "credentials")
    assert await roads.reroute.evacuate() == 3
    assert {await roads.provider(task_id) for task_id in made} == {"alpha-2"}
    (moved,) = {tuple(await roads.reroutes(task_id)) for task_id in made} - {()}
    assert moved == ("alpha → alpha-2: credentials",)
    await roads.world.dispatch("alpha-2")
    assert {await roads.world.state(task_id) for task_id in made} == {State.RUNNING}
    assert roads.alpha.submissions == []
    assert await roads.provider(await roads.submit()) == "alpha-2", "a new one does not even try"


async def test_a_permit_for_the_new_key_is_there_in_the_same_commit(roads: Crossroads) -> None:
    await roads.submit()
    await roads.world.rows("DELETE FROM pgqueuer.pgqueuer")
    await roads.shut("alpha", "funds")
    await roads.reroute.evacuate()
    (job,) = await roads.world.rows("SELECT payload FROM pgqueuer.pgqueuer")
    assert bytes(job["payload"]) == b"alpha-2"


async def test_an_attempt_that_was_turned_away_for_its_key_is_over_when_its_task_moves(
    roads: Crossroads,
) -> None:
    roads.alpha.submit_does = always(turned_away("funds"))
    task_id = await roads.submit()
    await roads.world.dispatch("alpha")
    assert await roads.world.state(task_id) is State.RETRYING
    await roads.reroute.evacuate()
    await roads.world.dispatch("alpha-2")
    assert await roads.attempts(task_id) == [
        ("alpha", "poster-a", "refused"),
        ("alpha-2", "poster-a", None),
    ]
    references = [roads.alpha.submissions[0].reference, roads.alpha_2.submissions[0].reference]
    assert references == [f"{task_id.hex}-1", f"{task_id.hex}-2"]


async def test_a_key_that_is_only_paused_gives_what_it_cannot_send_to_an_idle_one(roads: Crossroads) -> None:
    roads.alpha_2.capabilities = replace(CALLS_BACK, max_calls=2)
    await roads.shut("alpha-2", "credentials")
    made = [await roads.submit() for _ in range(5)]
    await roads.world.rows("UPDATE gates SET closed_until = NULL, failures = 0")
    await roads.shut("alpha", "rate_limited", for_s=20.0)
    assert await roads.reroute.evacuate() == 0, "a limit that ends soon moves nobody to another route"
    assert await roads.reroute.even_out() == 0, "not before they have waited a moment"
    await roads.world.pass_time(seconds=2)
    assert await roads.reroute.even_out() == 2, "no more than the idle key can send"
    assert await roads.reroute.even_out() == 0, "it has enough to do now"
    where = Counter([await roads.provider(task_id) for task_id in made])
    assert where == {"alpha": 3, "alpha-2": 2}


async def test_keys_that_are_both_full_do_not_pass_tasks_to_and_fro(roads: Crossroads) -> None:
    roads.alpha.capabilities = roads.alpha_2.capabilities = replace(CALLS_BACK, max_active_tasks=1)
    for _ in range(3):
        await roads.submit()
    for name in ALPHA:
        await roads.world.dispatch(name)
    await roads.world.pass_time(seconds=5)
    assert await roads.reroute.even_out() == 0
    assert await roads.world.value("SELECT count(*) FROM task_events WHERE cause = 'rerouted'") == 0


# ----------------------------------------------------------------------------------------- routes


async def test_after_three_faults_the_next_route_makes_the_picture_at_the_price_that_was_agreed(
    roads: Crossroads,
) -> None:
    roads.answer(always(fault()))
    roads.beta.poll_does = in_turn(done())
    task_id = await roads.submit()
    await roads.run(passes=3)
    assert await roads.provider(task_id) == "beta"
    assert (await roads.reroutes(task_id))[-1].endswith("→ beta: generation_failed")
    await roads.run()
    await roads.world.look("beta")
    await roads.world.archive_all()
    assert await roads.world.state(task_id) is State.SUCCEEDED
    made = await roads.attempts(task_id)
    assert [model for _, model, _ in made] == ["poster-a"] * 3 + ["poster-b"]
    assert [outcome for *_, outcome in made] == ["refused"] * 3 + ["succeeded"]
    assert await roads.world.balance() == (995, 0)


async def test_the_next_route_is_gone_to_at_once_and_with_its_own_deadline(roads: Crossroads) -> None:
    roads.answer(always(fault()))
    task_id = await roads.submit()
    await roads.run(passes=2)
    await roads.reroute.evacuate()
    for name in ALPHA:
        await roads.world.dispatch(name)
    assert await roads.provider(task_id) == "beta"
    await roads.world.dispatch("beta")
    task = await roads.world.task(task_id)
    assert task.state is State.RUNNING, "no back-off before an upstream that has not failed"
    assert task.deadline_at is not None
    assert timedelta(0) < task.deadline_at - task.now <= timedelta(seconds=SECOND.deadline_s)


async def test_six_attempts_are_the_most_and_then_the_credits_go_back(roads: Crossroads) -> None:
    roads.answer(always(fault()), always(fault()))
    task_id = await roads.submit()
    await roads.run(passes=12)
    assert await roads.world.state(task_id) is State.FAILED
    providers = [provider.removesuffix("-2") for provider, *_ in await roads.attempts(task_id)]
    assert providers == ["alpha"] * 3 + ["beta"] * 3
    assert await roads.world.balance() == (1_000, 0)


@pytest.mark.parametrize(
    ("failure_class", "state"), [("content_blocked", State.BLOCKED), ("invalid_request", State.FAILED)]
)
async def test_a_no_to_the_input_is_a_no_everywhere(
    roads: Crossroads, failure_class: str, state: State
) -> None:
    roads.answer(always(ProviderRefused("no", failure_class=failure_class, failure_code="no")))
    task_id = await roads.submit()
    await roads.run(passes=2)
    assert await roads.world.state(task_id) is state
    assert roads.beta.submissions == []


async def test_what_may_have_been_accepted_is_never_sent_elsewhere(roads: Crossroads) -> None:
    roads.answer(always(SubmissionUncertain("reset")))
    task_id = await roads.submit()
    await roads.world.dispatch("alpha")
    assert await roads.world.state(task_id) is State.UNCERTAIN
    for name in ALPHA:
        await roads.shut(name, "funds")
    for _ in range(4):
        await roads.world.pass_time(seconds=90)
        await roads.reroute.evacuate()
        await roads.world.look("alpha")
        await roads.world.dispatch("beta")
    assert await roads.world.state(task_id) is State.REVIEW
    assert await roads.provider(task_id) == "alpha"
    assert roads.beta.submissions == []


async def test_a_task_that_runs_is_left_where_it_is_when_its_key_breaks(roads: Crossroads) -> None:
    task_id = await roads.submit()
    await roads.world.dispatch("alpha")
    await roads.shut("alpha", "credentials")
    assert await roads.reroute.evacuate() == 0
    assert await roads.provider(task_id) == "alpha"
    await call_back(
        roads.world,
        token_of(roads.world, task_id),
        (GENUINE, b'{"status": "succeeded", "pictures": 1}'),
        "alpha",
    )
    await roads.world.archive_all()
    assert await roads.world.state(task_id) is State.SUCCEEDED


async def test_with_every_key_of_the_first_route_out_the_second_carries_until_one_is_back(
    roads: Crossroads,
) -> None:
    waiting = await roads.submit()
    for name in ALPHA:
        await roads.shut(name, "funds")
    new = await roads.submit()
    assert await roads.provider(new) == "beta"
    await roads.reroute.evacuate()
    assert await roads.provider(waiting) == "beta"
    assert await roads.reroutes(waiting) == ["alpha → beta: funds"]
    await roads.world.pass_time(seconds=901)
    assert await roads.provider(await roads.submit()) == "alpha", "one task finds out whether it works again"
    assert await roads.provider(await roads.submit()) == "alpha-2", "and one for the other key"
    assert await roads.provider(await roads.submit()) == "beta", "the rest need not"
    await roads.world.dispatch("alpha")
    assert await roads.provider(await roads.submit()) == "alpha"


async def test_a_probe_that_is_turned_away_goes_to_the_route_that_works(roads: Crossroads) -> None:
    roads.answer(always(turned_away("funds")))
    for name in ALPHA:
        await roads.shut(name, "funds", for_s=10.0)
    await roads.world.pass_time(seconds=11)
    probe = await roads.submit()
    assert await roads.provider(probe) == "alpha"
    await roads.world.dispatch("alpha")
    await roads.shut("alpha-2", "funds")
    assert await roads.world.value("SELECT failures FROM gates WHERE name = 'alpha'") == 2
    await roads.reroute.evacuate()
    await roads.world.dispatch("beta")
    assert await roads.world.state(probe) is State.RUNNING
    assert await roads.attempts(probe) == [("alpha", "poster-a", "refused"), ("beta", "poster-b", None)]


@pytest.mark.parametrize(("for_s", "where"), [(50.0, "alpha"), (300.0, "beta")])
async def test_only_a_long_rate_limit_sends_a_task_to_another_route(
    roads: Crossroads, for_s: float, where: str
) -> None:
    task_id = await roads.submit()
    for name in ALPHA:
        await roads.shut(name, "rate_limited", for_s=for_s)
    await roads.reroute.evacuate()
    assert await roads.provider(task_id) == where
    assert await roads.provider(await roads.submit()) == where


async def test_a_route_whose_bounds_the_task_does_not_fit_is_left_out(roads: Crossroads) -> None:
    roads.answer(always(fault()))
    large = await roads.submit(size="512x512")
    many = await roads.submit(n=3)
    await roads.run(passes=4)
    for task_id in (large, many):
        assert await roads.world.state(task_id) is State.FAILED
        assert len(await roads.attempts(task_id)) == 3
    assert roads.beta.submissions == []


async def test_tasks_that_fit_nowhere_else_do_not_hide_those_behind_them(
    roads: Crossroads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safelight.lifecycle.reroute.ROOM", 2)
    stuck = [await roads.submit(size="512x512") for _ in range(5)]
    small = await roads.submit()
    for name in ALPHA:
        await roads.shut(name, "funds")
    for _ in range(4):
        await roads.reroute.evacuate()
    assert await roads.provider(small) == "beta"
    assert "beta" not in {await roads.provider(task_id) for task_id in stuck}


async def test_what_could_not_be_sent_in_five_tries_goes_to_the_next_route(roads: Crossroads) -> None:
    roads.answer(always(not_sent()))
    task_id = await roads.submit()
    await roads.run(passes=12)
    assert await roads.world.state(task_id) is State.RUNNING
    assert (await roads.attempts(task_id))[-1][0] == "beta"
    assert len(await roads.attempts(task_id)) <= 4


async def test_a_canceled_task_goes_nowhere(roads: Crossroads) -> None:
    task_id = await roads.submit()
    (item,) = (await roads.world.graph.dispatch.claim("alpha", 1)).items
    await roads.world.cancel.cancel(roads.world.account_id, task_id)
    roads.answer(always(fault()))
    await roads.world.graph.dispatch.send(item)
    assert await roads.world.state(task_id) is State.CANCELED
    assert await roads.reroutes(task_id) == []


async def test_late_news_of_an_attempt_is_judged_by_the_provider_of_that_attempt(roads: Crossroads) -> None:
    roads.answer(in_turn(accepted("x", provider_ref="a-1"), fault()))
    roads.alpha_2.submit_does = always(fault())
    task_id = await roads.submit()
    await roads.world.dispatch("alpha")
    failed_notice = (GENUINE, b'{"status": "failed", "id": "a-1"}')
    await call_back(roads.world, token_of(roads.world, task_id), failed_notice, "alpha")
    await roads.run(passes=6)
    assert await roads.provider(task_id) == "beta"
    late = (GENUINE, b'{"status": "succeeded", "id": "a-1", "pictures": 1}')
    with pytest.raises(CallbackRejected):
        await call_back(roads.world, token_of(roads.world, task_id), late, "gamma")
    await call_back(roads.world, token_of(roads.world, task_id), late, "beta")
    await call_back(roads.world, token_of(roads.world, task_id), late, "alpha")
    findings = await roads.world.rows("SELECT kind, provider, attempt FROM findings")
    assert [tuple(row) for row in findings] == [("orphan_result", "alpha", 1)]
    assert (await verdicts(roads.world))[0] == "applied"
    assert await roads.provider(task_id) == "beta"


# ------------------------------------------------------------------------------------- retirement


async def test_a_route_that_retires_gets_no_new_task_and_no_new_attempt(server: Server) -> None:
    async with running_crossroads(server, replace(POSTER, retires_on=date(2000, 1, 1))) as roads:
        assert await roads.provider(await roads.submit()) == "beta"
    today = date.today() + timedelta(days=1)  # noqa: DTZ011 - a day that has not come, whatever the zone
    async with running_crossroads(server, replace(POSTER, retires_on=today + timedelta(days=1))) as roads:
        waiting = await roads.submit()
        assert await roads.provider(waiting) == "alpha"
        await roads.world.pass_time(days=3)
        await roads.world.rows("UPDATE tasks SET start_by = clock_now() + interval '1 hour'")
        assert (await roads.world.graph.dispatch.claim("alpha", 8)).items == []
        await roads.reroute.evacuate()
        assert await roads.reroutes(waiting) == ["alpha → beta: retired"]
        await assert_books(roads.world)


async def test_a_model_without_a_living_route_is_refused(server: Server) -> None:
    gone = replace(POSTER, retires_on=date(2000, 1, 1), others=())
    async with running_crossroads(server, gone) as roads:
        with pytest.raises(RequestError) as refused:
            await roads.submit()
        assert (refused.value.status, refused.value.problem_code) == (404, "model-retired")
        assert await roads.world.balance() == (1_000, 0)


async def test_a_task_moves_only_while_it_waits(roads: Crossroads) -> None:
    task_id = await roads.submit()
    await roads.world.dispatch("alpha")
    assert await history(roads.world, task_id) == ["queued", "submitting", "running"]
    async with roads.world.database.transaction() as connection:
        row = (await tasks.lock_tasks(connection, [task_id]))[task_id]
        item = {
            "id": task_id, "version": row.version, "source": "running", "target": "running", "cause": "test",
            "detail": "", "wake_in_s": 1.0, "provider": "beta", "upstream_model": "poster-b",
        }  # fmt: skip
        with pytest.raises(Exception, match="only while it waits"):
            await tasks.move(connection, [item])
