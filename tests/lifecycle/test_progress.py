"""What a submit in flight says of its progress, and that it never stands in the submit's way."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from safelight.db import tasks
from safelight.db.database import Database
from safelight.domain.provider import Capabilities, Origin, ProviderUpdate, Submission, UpdateStatus
from safelight.domain.task import State
from safelight.lifecycle.progress import ProgressNotes
from tests.lifecycle.upstreams import Scripted, accepted, install, run_task
from tests.world import World

NAME = "lab-callback"


def at(percent: int | None) -> ProviderUpdate:
    """News of a picture that has come so far."""
    return ProviderUpdate(UpdateStatus.RUNNING, Origin.ANSWER, percent=percent)


async def noted(world: World, percent: int) -> bool:
    """Whether the row says so within a few seconds."""
    for _ in range(300):
        if await world.value("SELECT percent FROM tasks") == percent:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_progress_is_seen_while_the_submit_is_in_flight(world: World) -> None:
    seen: list[bool] = []

    async def submit(submission: Submission) -> ProviderUpdate:
        assert submission.report is not None
        submission.report(at(33))
        seen.append(await noted(world, 33))
        return accepted(submission.reference)

    install(world, Scripted(NAME, Capabilities(), submit))
    task_id = await run_task(world)
    assert seen == [True]
    assert await world.state(task_id) is State.RUNNING


async def test_a_note_is_taken_once_a_second_and_only_of_what_counts(world: World) -> None:
    async def submit(submission: Submission) -> ProviderUpdate:
        assert submission.report is not None
        for percent in (None, 10, 20, 30):
            submission.report(at(percent))
        return accepted(submission.reference)

    install(world, Scripted(NAME, Capabilities(), submit))
    await run_task(world)
    assert await world.value("SELECT percent FROM tasks") == 10


async def test_a_note_that_fails_is_only_logged(world: World) -> None:
    task_id = await world.submit()
    async with world.database.connection() as connection:
        found = await tasks.read_task(connection, task_id)
    assert found is not None
    notes = ProgressNotes(Database("postgresql://127.0.0.1:9/closed"), found[0])
    with capture_logs() as logs:
        notes.report(at(50))
        await notes.close()
    assert [line["event"] for line in logs] == ["progress_not_noted"]
    assert await world.value("SELECT percent FROM tasks") is None
