"""After a restore: what may have been sent already is looked for, and only what is proved absent is sent."""

from __future__ import annotations

from safelight.db.auditlog import verify_chain
from safelight.domain.audit import Actor
from safelight.domain.failure import MAX_ATTEMPTS
from safelight.domain.task import ReviewReason, State
from safelight.lifecycle.restore import mark_restored
from tests.lifecycle.invariants import history
from tests.world import World

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
