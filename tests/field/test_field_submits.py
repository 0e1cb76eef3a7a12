"""Submits from the field: never lost, never bought twice, and never a wait for the upstream."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from safelight.db import ledger
from safelight.domain.provider import Capabilities, Submission
from safelight.domain.task import State
from safelight.errors import ProviderError
from safelight.providers import DeclaredProvider, packaged_declaration
from safelight.telemetry import set_fault_hook
from tests.field.scene import CALLS_BACK, NAME, Line, Scene, running_scene, said
from tests.lifecycle.upstreams import (
    Scripted,
    accepted,
    install,
    record_of,
    run_task,
    signed,
)
from tests.providers.upstream import CREDENTIALS, Upstream, error, provider_of, raw_upstream, record
from tests.world import Server

SHOE = {"model": "lab-poll", "prompt": "a red shoe on white", "size": "64x64"}


class Lost(Exception):
    """What a test lets happen to the process."""


@pytest.mark.usefixtures("no_fault_left")
async def test_C03_an_answer_that_could_not_be_recorded_is_told_in_the_log_and_recovered(
    scene: Scene, logs: list[Line]
) -> None:
    task_id = await scene.world.submit()

    def fail(name: str) -> None:
        if name == "before_advance_commit":
            raise Lost

    (claim,) = (await scene.world.graph.dispatch.claim(NAME, 1)).items
    set_fault_hook(fail)
    with pytest.raises(Lost):
        await scene.world.graph.dispatch.send(claim)
    set_fault_hook(None)
    (job,) = (await scene.world.lab_ledger())["items"]
    (line,) = said(logs, "answer_not_recorded")
    assert (line["task_id"], line["log_level"]) == (str(task_id), "error")
    assert line["provider_ref"].startswith("cal_"), "enough for an operator to repair by hand"
    assert (await scene.view(task_id))["status"] == "processing"

    await scene.world.pass_time(seconds=95)
    await scene.world.look()
    assert await scene.world.state(task_id) is State.UNCERTAIN
    assert await scene.world.balance() == (999, 1)
    await scene.world.dispatch()
    assert job["times_accepted"] == (await scene.world.lab_ledger())["accepted"] == 1, "never sent again"
    await scene.world.until_drawn()
    found = await record_of(scene.world, line["provider_ref"])
    assert await scene.called_back(task_id, signed(found)) == 202
    await scene.world.archive_all()
    assert await scene.ending(task_id) == ("succeeded", 1, 0)


async def test_C04_after_a_restart_nothing_that_was_under_way_is_bought_again(scene: Scene) -> None:
    provider = install(scene.world, Scripted(NAME, CALLS_BACK))
    running_ones = [await run_task(scene.world) for _ in range(5)]
    in_flight = [await scene.world.submit() for _ in range(3)]
    assert len((await scene.world.graph.dispatch.claim(NAME, 3)).items) == 3  # and then the process dies
    async with scene.another_process(provider) as graph:
        await scene.world.pass_time(seconds=100)
        await graph.sweep.wake()
        assert (await graph.dispatch.claim(NAME, 64)).items == []
        for task, attempt in await graph.check.claim(NAME, 64):
            await graph.check.check(task, attempt)
    assert {await scene.world.state(task_id) for task_id in running_ones} == {State.RUNNING}
    assert {await scene.world.state(task_id) for task_id in in_flight} == {State.UNCERTAIN}
    assert (len(provider.submissions), provider.polls) == (5, 5)
    assert await scene.world.balance() == (992, 8)
    assert {(await scene.view(task_id))["status"] for task_id in running_ones + in_flight} == {"processing"}


@pytest.mark.usefixtures("no_fault_left")
async def test_C11_a_key_whose_first_use_died_is_taken_at_the_next_try(scene: Scene) -> None:
    def die(name: str) -> None:
        if name == "before_accept_commit":
            raise Lost

    set_fault_hook(die)
    assert (await scene.door.submit(SHOE, key="one")).status == 500
    set_fault_hook(None)
    assert await scene.world.balance() == (1_000, 0), "nothing of it was left behind"
    again = await scene.door.submit(SHOE, key="one")
    assert (again.status, "Idempotent-Replayed" in again.headers) == (202, False)
    assert (await scene.door.submit(SHOE, key="one")).body == again.body
    assert await scene.world.balance() == (999, 1)


@pytest.mark.usefixtures("no_fault_left")
async def test_C12_a_refusal_is_not_remembered_under_its_key(scene: Scene) -> None:
    poor = await scene.door.new_caller(granted=0)
    assert (await scene.door.submit(SHOE, key="a", by=poor)).status == 402
    async with scene.world.database.transaction() as connection:
        await ledger.grant(connection, poor.account_id, 5)
    assert (await scene.door.submit(SHOE, key="a", by=poor)).status == 202

    def away(name: str) -> None:
        if name == "before_accept_commit":
            raise asyncpg.CannotConnectNowError("shutting down")

    set_fault_hook(away)
    answer = await scene.door.submit(SHOE, key="b")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
    set_fault_hook(None)
    assert (await scene.door.submit(SHOE, key="b")).status == 202
    first, second = [await scene.door.submit({**SHOE, "n": 0}, key="c") for _ in range(2)]
    assert first.json["errors"] == second.json["errors"]
    assert (first.status, second.status) == (422, 422)
    assert await scene.world.balance() == (999, 1)


async def test_C14_a_submit_is_answered_at_once_whatever_the_upstream_does(scene: Scene) -> None:
    """Nothing between a customer and us has a reason to give up, or to send it a second time."""
    hanging = asyncio.Event()

    async def submit(submission: Submission) -> Any:
        await hanging.wait()
        return accepted(submission.reference)

    install(scene.world, Scripted("lab-poll", submit_does=submit))
    async with asyncio.timeout(60):  # the upstream says nothing at all
        answer = await scene.door.submit(SHOE, key="k")
        sending = asyncio.create_task(scene.world.dispatch("lab-poll"))
        repeated = await scene.door.submit(SHOE, key="k")
    assert (answer.status, repeated.body) == (202, answer.body)
    assert await scene.world.balance() == (999, 1)
    hanging.set()
    await sending


def impatient(scene: Scene, base_url: str) -> DeclaredProvider:
    """The provider with looks and cancels of a tenth of a second."""
    declaration = packaged_declaration("lab-poll")
    assert declaration.poll is not None
    assert declaration.cancel is not None
    calls = {
        "poll": declaration.poll.model_copy(update={"timeout_s": 0.1}),
        "cancel": declaration.cancel.model_copy(update={"timeout_s": 0.1}),
    }
    return DeclaredProvider(
        declaration.model_copy(update=calls),
        credentials=CREDENTIALS,
        session=scene.world.session,
        base_url=base_url,
    )


async def test_C15_the_deadline_of_a_task_ends_it_although_every_look_hangs(
    server: Server, upstream: Upstream, logs: list[Line]
) -> None:
    async with running_scene(server, decide_by_s=0.0) as scene:
        install(scene.world, provider_of("lab-poll", scene.world.session, upstream.base_url))
        upstream.answers(202, record(reference=None, status="queued"))
        task_id = await run_task(scene.world, "lab-poll")
        async with raw_upstream(None) as silent:
            install(scene.world, impatient(scene, silent))
            for _ in range(2):
                await scene.world.pass_time(seconds=301)
                assert await scene.world.look("lab-poll") == 1, "each look has a time-out of its own"
        assert await scene.ending(task_id) == ("failed", 0, 1)
        assert (await scene.view(task_id))["failure"]["code"] == "no_result"
        assert [line["reason"] for line in said(logs, "review_needed")] == ["deadline"]


async def test_C16_a_cancel_that_fails_upstream_does_not_keep_a_task_open(
    server: Server, logs: list[Line]
) -> None:
    class Deaf(Scripted):
        async def cancel(self, attempt: Any) -> bool:
            self.cancel_calls += 1
            raise ProviderError("no answer", provider=self.name)

    async with running_scene(server, decide_by_s=0.0) as scene:
        provider = install(scene.world, Deaf("lab-poll", Capabilities(can_cancel=True)))
        task_id = await run_task(scene.world, "lab-poll")
        for _ in range(2):
            await scene.world.pass_time(seconds=301)
            await scene.world.look("lab-poll")
        assert await scene.ending(task_id) == ("failed", 0, 1)
        assert provider.cancel_calls >= 1
        assert said(logs, "cancel_failed") != []
        assert (await scene.world.attempt(task_id)).provider_ref is not None, "kept, to be reconciled"
        failure = (await scene.view(task_id))["failure"]
        assert (failure["class"], failure["code"]) == ("upstream_fault", "no_result")
        assert "free" not in failure["message"]


async def test_C19_the_first_cause_is_kept_and_nothing_below_us_asks_again(
    scene: Scene, upstream: Upstream, logs: list[Line]
) -> None:
    install(scene.world, provider_of("lab-poll", scene.world.session, upstream.base_url))
    upstream.answers(402, error("insufficient_funds", "the balance of this account is used up"))
    upstream.answers(409, error("key_bound", "this key is bound to another call"))
    task_id = await run_task(scene.world, "lab-poll")
    assert len(upstream.asked) == 1
    (line,) = said(logs, "send_failed")
    assert line["excerpt"] == "the balance of this account is used up"
    assert [line["reason"] for line in said(logs, "gate_closed")] == ["funds"]
    await scene.world.dispatch("lab-poll")
    assert len(upstream.asked) == 1, "the gate keeps it from being asked again"
    assert await scene.world.state(task_id) is State.RETRYING
    await scene.world.pass_time(hours=2)
    await scene.world.graph.sweep.tidy()
    assert await scene.ending(task_id) == ("failed", 0, 1)
    assert (await scene.view(task_id))["failure"]["class"] == "environment"


async def test_C20_an_upstream_counts_as_many_submits_as_our_own_rules_make(
    scene: Scene, upstream: Upstream, logs: list[Line]
) -> None:
    install(scene.world, provider_of("lab-poll", scene.world.session, upstream.base_url))
    upstream.answers(500, error("generation_failed", "out of memory"))
    task_id = await scene.world.submit("lab-poll")
    for _ in range(6):
        await scene.world.dispatch("lab-poll")
        await scene.world.pass_time(seconds=80)
    assert await scene.ending(task_id) == ("failed", 0, 1)
    assert len(upstream.asked) == 3
    assert len({asked.body["reference"] for asked in upstream.asked}) == 3
    assert len(said(logs, "send_failed")) == 3


async def test_I16_the_tries_of_an_attempt_are_counted_over_restarts(
    scene: Scene, upstream: Upstream
) -> None:
    """Nobody listens at the provider's address; each process dies after two tries."""
    closed = provider_of("lab-poll", scene.world.session, "http://127.0.0.1:9")
    task_id = await scene.world.submit("lab-poll")
    for _ in range(12):
        async with scene.another_process(closed) as graph:
            for _ in range(2):
                for claim in (await graph.dispatch.claim("lab-poll", 1)).items:
                    await graph.dispatch.send(claim)
                await scene.world.pass_time(seconds=125)
    (row,) = await scene.world.rows("SELECT count(*) AS made, sum(sends) AS sends FROM attempts")
    assert (row["made"], row["sends"]) == (3, 15)
    assert await scene.ending(task_id) == ("failed", 0, 1)
    assert upstream.asked == []
