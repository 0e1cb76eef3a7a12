"""Workers from the field: queues, leases, polls and connections, and what a customer sees of all that."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from safelight.domain.catalog import Model
from safelight.domain.provider import AttemptRef, Capabilities, Output, ProviderUpdate, Submission
from safelight.domain.task import State
from safelight.errors import ProviderRefused
from safelight.jobs.loops import Poller
from safelight.lifecycle.accept import Wish
from safelight.lifecycle.archive import COPY_LEASE_S
from safelight.providers.documents import Unreadable, read_time
from tests.field.scene import CALLS_BACK, NAME, Line, Scene, running_scene, said
from tests.lifecycle.upstreams import (
    Scripted,
    accepted,
    always,
    done,
    install,
    not_sent,
    pass_until_due,
    run_task,
    running,
    uncertain,
)
from tests.world import Server

POLLED = "lab-poll"


async def test_I05_due_looks_are_taken_side_by_side(scene: Scene) -> None:
    together = most = 0

    async def poll(_: AttemptRef) -> ProviderUpdate:
        nonlocal together, most
        together += 1
        most = max(most, together)
        await asyncio.sleep(0.02)
        together -= 1
        return running()

    provider = install(scene.world, Scripted(POLLED, poll_does=poll))
    for _ in range(60):
        await scene.world.submit(POLLED)
    await scene.world.dispatch(POLLED)
    await scene.world.pass_time(seconds=30)
    poller = Poller(scene.world.graph.check, POLLED, budget=16)
    await poller.step()
    await poller.drain(30)
    assert provider.polls == 60, "every one that was due, in one round"
    assert 8 < most <= 16


async def test_I08_what_never_ends_upstream_ends_here_after_a_bounded_number_of_looks(
    server: Server, logs: list[Line]
) -> None:
    """One task that always looks the same, and one that always shows something new."""
    async with running_scene(server, decide_by_s=3_600.0) as scene:
        still, busy = install(scene.world, Scripted(NAME, CALLS_BACK)), install(scene.world, Scripted(POLLED))

        async def poll(_: AttemptRef) -> ProviderUpdate:
            return running(upstream_status=f"step {busy.polls}")

        busy.poll_does = poll
        tasks = [await run_task(scene.world, name) for name in (NAME, POLLED)]
        for _ in range(30):
            await pass_until_due(scene.world, tasks[0])
            await scene.world.pass_time(seconds=20)
            await scene.world.look(NAME)
            await scene.world.look(POLLED)
        await scene.world.pass_time(days=3)
        for name in (NAME, POLLED):
            await scene.world.look(name)
        for task_id in tasks:
            assert await scene.ending(task_id) == ("failed", 0, 1)
            assert await scene.settled(task_id) == 1
            assert (await scene.view(task_id))["failure"]["code"] == "no_result"
        assert {line["reason"] for line in said(logs, "review_needed")} == {"no_progress", "deadline"}
        assert max(still.polls, busy.polls) <= 31


async def test_I12_no_connection_is_held_while_an_upstream_is_asked(scene: Scene) -> None:
    released, inside = asyncio.Event(), 0
    pool = scene.world.database._pool
    assert pool is not None

    async def submit(submission: Submission) -> ProviderUpdate:
        nonlocal inside
        inside += 1
        await released.wait()
        return accepted(submission.reference)

    async def poll(_: AttemptRef) -> ProviderUpdate:
        assert pool.get_size() == pool.get_idle_size()
        return done()

    install(scene.world, Scripted(POLLED, submit_does=submit, poll_does=poll))
    tasks = [await scene.world.submit(POLLED) for _ in range(20)]
    sending = asyncio.create_task(scene.world.dispatch(POLLED))
    async with asyncio.timeout(60):
        while inside < 20:  # noqa: ASYNC110 - counted where no event reaches
            await asyncio.sleep(0.01)
    assert pool.get_size() == pool.get_idle_size(), "twenty calls in flight, and not one connection"
    async with asyncio.timeout(60):
        assert (await scene.view(tasks[0]))["status"] == "processing"
    released.set()
    await sending
    await scene.world.pass_time(seconds=60)
    assert await scene.world.look(POLLED) == 20
    await scene.world.archive_all()
    assert {await scene.ending(task_id) for task_id in tasks} == {("succeeded", 1, 0)}


async def test_I13_a_task_is_found_by_a_worker_only_once_it_is_committed(scene: Scene) -> None:
    provider = install(scene.world, Scripted(POLLED))
    async with scene.world.database.transaction() as connection:
        await connection.execute("LOCK TABLE entries IN SHARE MODE")  # the submit's own commit is held up
        submitting = asyncio.create_task(scene.world.submit(POLLED))
        await asyncio.sleep(0.3)
        assert not submitting.done()
        await scene.world.dispatch(POLLED)
        assert await scene.world.value("SELECT count(*) FROM pgqueuer.pgqueuer") == 0
        assert provider.submissions == []
    task_id = await submitting
    assert await scene.world.value("SELECT count(*) FROM pgqueuer.pgqueuer") == 1
    await scene.world.dispatch(POLLED)
    assert await scene.world.state(task_id) is State.RUNNING


async def submit_as(scene: Scene, model: Model) -> UUID:
    """Accept one task of a model that is not in the catalog as it is."""
    scene.world.keys += 1
    wish = Wish(
        account_id=scene.world.account_id,
        key=f"key-{scene.world.keys}",
        fingerprint=bytes(32),
        model=model,
        operation="generate",
        prompt="a red shoe on white",
        size="64x64",
    )
    return (await scene.world.accept.accept(wish)).task_id


async def test_J07_age_alone_ends_nothing_that_lives(scene: Scene) -> None:
    """Forty minutes of running within its deadline, and a copy whose lease is kept alive."""
    provider = install(scene.world, Scripted(POLLED))

    async def poll(_: AttemptRef) -> ProviderUpdate:
        return running(upstream_status=f"step {provider.polls}")

    provider.poll_does = poll
    found = scene.world.graph.context.catalog.find(POLLED)
    assert found is not None
    task_id = await submit_as(scene, replace(found, deadline_s=7_200.0))
    await scene.world.dispatch(POLLED)
    for _ in range(4):
        await scene.world.pass_time(minutes=10)
        await scene.world.graph.sweep.wake()
        await scene.world.graph.sweep.tidy()
        await scene.world.look(POLLED)
    assert await scene.world.state(task_id) is State.RUNNING
    provider.poll_does = None
    install(scene.world, Scripted(POLLED, poll_does=_pictured))
    await pass_until_due(scene.world, task_id)
    await scene.world.look(POLLED)
    assert len(await scene.world.graph.archive.claim(8)) == 1
    for _ in range(3):
        await scene.world.pass_time(seconds=COPY_LEASE_S * 0.8)
        await scene.world.graph.archive.renew([task_id])
        assert await scene.world.graph.archive.claim(8) == [], "its owner lives"
    await scene.world.pass_time(seconds=COPY_LEASE_S * 1.2)
    ((task, attempt),) = await scene.world.graph.archive.claim(8)
    await scene.world.graph.archive.copy(task, attempt)
    assert await scene.ending(task_id) == ("succeeded", 1, 0)


async def _pictured(_: AttemptRef) -> ProviderUpdate:
    return done()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59+00:00"),
        ("2016-12-31T23:59:60.5+00:00", "2016-12-31T23:59:59.500000+00:00"),
        ("2026-12-31T23:59:59.123456789Z", "2026-12-31T23:59:59.123456+00:00"),
        ("2027-01-01T05:45:00+05:45", "2027-01-01T00:00:00+00:00"),
        ("2027-01-01T00:00:00", "2027-01-01T00:00:00+00:00"),
    ],
)
def test_J08_odd_times_of_an_upstream_are_read(text: str, expected: str) -> None:
    assert read_time(text, "iso").isoformat() == expected


def test_J08_a_time_that_cannot_be_is_none() -> None:
    for text in ("2016-12-31T23:60:00Z", "2016-12-31T23:59:61Z", "24:00", 7):
        with pytest.raises(Unreadable):
            read_time(text, "iso")


async def test_K14_a_customer_sees_three_words_and_nothing_of_any_upstream(scene: Scene) -> None:
    """Every state that a task can be in, through every public address that tells of it."""
    secret = "https://inner.upstream.example/x?sig=canary"
    excerpt = "node-7 of acct_9 said no"
    tasks: dict[State, UUID] = {}

    def at(provider: Scripted) -> Scripted:
        return install(scene.world, provider)

    at(Scripted(NAME, CALLS_BACK))
    tasks[State.RUNNING] = await run_task(scene.world)
    for state, kind in ((State.FAILED, "invalid_request"), (State.BLOCKED, "content_blocked")):
        refusal = ProviderRefused(secret, failure_class=kind, failure_code=kind, excerpt=excerpt)
        at(Scripted(NAME, CALLS_BACK, always(refusal)))
        tasks[state] = await run_task(scene.world)
    at(Scripted(NAME, CALLS_BACK, always(uncertain())))
    tasks[State.UNCERTAIN] = await run_task(scene.world)
    at(Scripted(NAME, CALLS_BACK, always(not_sent())))
    tasks[State.RETRYING] = await run_task(scene.world)
    at(Scripted(POLLED, poll_does=_secret_done(secret)))
    tasks[State.ARCHIVING] = await run_task(scene.world, POLLED)
    await pass_until_due(scene.world, tasks[State.ARCHIVING])
    await scene.world.look(POLLED)
    tasks[State.SUCCEEDED] = await run_task(scene.world, "lab-sync")
    await scene.world.graph.archive.archive(tasks[State.SUCCEEDED])
    tasks[State.SUBMITTING] = await scene.world.submit("lab-sync")
    assert len((await scene.world.graph.dispatch.claim("lab-sync", 1)).items) == 1
    tasks[State.CANCELED] = await scene.world.submit("lab-sync")
    await scene.world.cancel.cancel(scene.world.account_id, tasks[State.CANCELED])
    tasks[State.QUEUED] = await scene.world.submit("lab-sync")
    await to_review(scene, tasks)
    assert {state: await scene.world.state(task_id) for state, task_id in tasks.items()} == {
        state: state for state in State
    }

    words = {
        State.SUCCEEDED: "ready",
        State.FAILED: "failed",
        State.BLOCKED: "failed",
        State.CANCELED: "failed",
    }
    refs = [
        row["provider_ref"] or "-" * 9 for row in await scene.world.rows("SELECT provider_ref FROM attempts")
    ]
    inner = [
        "uncertain",
        "archiving",
        "submitting",
        "retrying",
        "review",
        "queued",
        "node-7",
        "acct_9",
        "canary",
    ]
    for state, task_id in tasks.items():
        body = (await scene.get(f"/v1/tasks/{task_id}")).body.decode()
        assert (await scene.view(task_id))["status"] == words.get(state, "processing")
        for word in (*inner, *refs, "upstream.example", "up."):
            assert word not in body.replace(scene.door.url, ""), (state, word)
    listed = (await scene.get("/v1/tasks")).body.decode().replace(scene.door.url, "")
    assert [word for word in (*inner, *refs) if word in listed] == []


def _secret_done(url: str) -> Any:
    async def poll(_: AttemptRef) -> ProviderUpdate:
        return done(Output(url=url), excerpt="node-7 of acct_9 said yes", upstream_status="inner word")

    return poll


async def to_review(scene: Scene, tasks: dict[State, UUID]) -> None:
    """A synchronous upstream without a key that gave no answer: nobody will ever hear of it."""
    silent = Capabilities(is_synchronous=True, can_poll=False)
    install(scene.world, Scripted("lab-sync", silent, always(uncertain())))
    task_id = tasks[State.QUEUED]
    for claim in (await scene.world.graph.dispatch.claim("lab-sync", 1)).items:
        await scene.world.graph.dispatch.send(claim)
    await pass_until_due(scene.world, task_id)
    for task, attempt in await scene.world.graph.check.claim("lab-sync", 8):
        if task.id == task_id:
            await scene.world.graph.check.check(task, attempt)
    tasks[State.REVIEW] = task_id
    tasks[State.QUEUED] = await scene.world.submit("lab-sync")
