"""After a restore: what may have been sent already is looked for, and only what is proved absent is sent."""

from __future__ import annotations

from safelight.db.auditlog import verify_chain
from safelight.domain.audit import Actor
from safelight.domain.failure import MAX_ATTEMPTS
from safelight.domain.provider import AfterUncertain, AttemptRef, Capabilities, Origin, ProviderUpdate
from safelight.domain.task import ReviewReason, State
from safelight.lifecycle.restore import mark_restored
from tests.lifecycle.crossroads import ALPHA, running_crossroads
from tests.lifecycle.invariants import assert_books, history
from tests.lifecycle.upstreams import Scripted, done, failed, install, ref_of
from tests.world import Server, World

ME = Actor("os:me")


async def accepted(world: World) -> int:
    """How many jobs the lab has accepted."""
    return int((await world.lab_ledger())["accepted"])


async def test_a_task_is_looked_for_as_often_as_it_may_have_been_sent_and_then_sent(world: World) -> None:
    task_id = await world.submit("lab-poll")
    assert await mark_restored(world.database, ME) == 1
    for number in range(1, MAX_ATTEMPTS + 1):
        await world.pass_time(minutes=2)
        await world.dispatch("lab-poll")
        assert await world.state(task_id) is State.UNCERTAIN
        assert (await world.attempt(task_id)).number == number
        for _ in range(2):
            await world.pass_time(minutes=1)
            await world.look("lab-poll")
        assert await world.state(task_id) is State.RETRYING
        assert await accepted(world) == 0
    await world.pass_time(minutes=2)
    await world.dispatch("lab-poll")
    assert await world.state(task_id) is State.RUNNING
    assert await accepted(world) == 1
    # What was only looked for has used up no try.
    tries = await world.rows("SELECT number, sends - throttled AS sends FROM attempts ORDER BY number")
    assert [tuple(row) for row in tries] == [(1, 0), (2, 0), (3, 0), (4, 1)]


async def test_attempts_that_are_found_count_as_what_they_were(world: World) -> None:
    """The forgotten safelight gave up after its last attempt: this one does not begin another."""

    async def all_have_failed(attempt: AttemptRef) -> ProviderUpdate:
        return failed(Origin.LOOK_UP, provider_ref=ref_of(attempt.reference))

    capabilities = Capabilities(after_uncertain=AfterUncertain.LOOK_UP)
    provider = install(world, Scripted("lab-poll", capabilities, look_up_does=all_have_failed))
    task_id = await world.submit("lab-poll")
    await mark_restored(world.database, ME)
    for _ in range(MAX_ATTEMPTS + 1):
        await world.pass_time(minutes=2)
        await world.dispatch("lab-poll")
        await world.pass_time(minutes=1)
        await world.look("lab-poll")
    assert (await world.state(task_id), provider.submissions) == (State.FAILED, [])
    assert (await world.attempt(task_id)).number == MAX_ATTEMPTS
    await assert_books(world)


async def test_where_it_may_have_gone_elsewhere_only_finding_it_proves_anything(server: Server) -> None:
    """Two keys and a second route: that the first key does not know it says nothing of the others."""
    async with running_crossroads(server) as roads:
        roads.alpha.capabilities = Capabilities(after_uncertain=AfterUncertain.LOOK_UP)
        roads.alpha_2.capabilities = Capabilities(after_uncertain=AfterUncertain.SAME_KEY)
        unknown, repeatable, found = [await roads.submit() for _ in range(3)]
        places = {task: await roads.provider(task) for task in (unknown, repeatable, found)}
        assert [places[task] for task in (unknown, repeatable, found)] == [*ALPHA, ALPHA[0]]

        async def knows_one(attempt: AttemptRef) -> ProviderUpdate | None:
            is_known = attempt.reference.startswith(found.hex)
            return done(origin=Origin.LOOK_UP, provider_ref=ref_of(attempt.reference)) if is_known else None

        roads.alpha.look_up_does = knows_one
        await mark_restored(roads.world.database, ME)
        for name in ALPHA:
            await roads.world.dispatch(name)
        await roads.world.pass_time(minutes=1)
        for name in ALPHA:
            await roads.world.look(name)
        states = [await roads.world.state(task) for task in (unknown, repeatable, found)]
        assert states == [State.REVIEW, State.REVIEW, State.ARCHIVING]
        assert [one.submissions for one in (roads.alpha, roads.alpha_2, roads.beta)] == [[], [], []]
        await assert_books(roads.world)


async def test_with_a_key_the_same_call_is_made_again(world: World) -> None:
    task_id = await world.submit("lab-sync")
    await mark_restored(world.database, ME)
    await world.dispatch("lab-sync")
    assert await world.state(task_id) is State.UNCERTAIN
    await world.pass_time(minutes=1)
    await world.look("lab-sync")
    assert await world.state(task_id) is State.ARCHIVING
    assert (await accepted(world), (await world.attempt(task_id)).number) == (1, 1)


async def test_where_nothing_can_be_asked_a_person_decides(world: World) -> None:
    task_id = await world.submit("lab-callback")
    await mark_restored(world.database, ME)
    await world.dispatch("lab-callback")
    assert await world.state(task_id) is State.UNCERTAIN
    await world.pass_time(hours=2)
    await world.look("lab-callback")
    row = await world.rows("SELECT state, review_reason FROM tasks WHERE id = $1", task_id)
    assert tuple(row[0]) == ("review", ReviewReason.SUBMIT_UNCERTAIN)
    assert await accepted(world) == 0


async def test_what_has_ended_and_what_comes_later_is_not_touched(world: World) -> None:
    ended = await world.submit("lab-poll")
    await world.cancel.cancel(world.account_id, ended)
    assert await mark_restored(world.database, ME) == 0
    later = await world.submit("lab-poll")
    await world.dispatch("lab-poll")
    assert await world.state(later) is State.RUNNING
    assert await history(world, ended) == ["queued", "canceled"]


async def test_marking_twice_is_marking_once_and_both_are_in_the_audit_log(world: World) -> None:
    await world.submit("lab-poll")
    assert [await mark_restored(world.database, ME) for _ in range(2)] == [1, 0]
    lines = await world.rows("SELECT actor, action, detail FROM audit_lines ORDER BY id")
    assert [tuple(line) for line in lines] == [
        ("os:me", "restore", '{"tasks": 1}'),
        ("os:me", "restore", '{"tasks": 0}'),
    ]
    async with world.database.connection() as connection:
        assert (await verify_chain(connection)).broken_id is None
