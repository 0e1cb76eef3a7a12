"""Two verbs at one row: the first stands before its commit while the second waits for its lock."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from safelight.db.database import Database
from safelight.db.statements import Connection
from safelight.domain.failure import Failure, FailureClass
from safelight.domain.ids import new_id
from safelight.domain.provider import Origin, Output, ProviderUpdate, UpdateStatus
from safelight.domain.task import State
from safelight.lifecycle.accept import Accept, Cancel
from safelight.lifecycle.advance import Advance, Callback, News
from safelight.lifecycle.changes import AssetItem
from safelight.lifecycle.dispatch import Dispatch
from safelight.lifecycle.reroute import Reroute
from safelight.lifecycle.settle import Ending, Settle
from tests.world import World

PROVIDER = "lab-callback"
PATIENCE_S = 60.0
REPETITIONS = 5

Verb = Callable[["Verbs"], Awaitable[Any]]


class Held(Database):
    """Stops in front of its commit, with every lock in hand, until it is told to go on."""

    def __init__(self, url: str) -> None:
        super().__init__(url, pool_size=4)
        self.has_done_its_work = asyncio.Event()
        self.may_commit = asyncio.Event()
        self.backend = 0

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with super().transaction() as connection:
            yield connection
            self.backend = connection.get_server_pid()
            self.has_done_its_work.set()
            await self.may_commit.wait()


class Verbs:
    """The verbs of one process, over its own connections."""

    def __init__(self, world: World, database: Database) -> None:
        context = replace(world.graph.context, database=database)
        self.database = database
        self.accept = Accept(database, context.settings, context.routing)
        self.cancel = Cancel(database)
        self.settle = Settle(database)
        self.advance = Advance(context)
        self.dispatch = Dispatch(context, self.advance)
        self.reroute = Reroute(context)


async def race(world: World, first: Verb, second: Verb, *, is_waiting: bool = True) -> tuple[Any, Any]:
    """Both results (or errors): the first has done its work and holds its locks when the second begins.

    With `is_waiting` the second must come to wait for the first; without, it must end beside it.
    """
    held = Held(world.database.url)
    await held.open()
    try:
        async with asyncio.timeout(PATIENCE_S):
            one = asyncio.create_task(_outcome(first, Verbs(world, held)))
            await held.has_done_its_work.wait()
            two = asyncio.create_task(_outcome(second, Verbs(world, world.database)))
            if is_waiting:
                await _until_waiting(world, held.backend, two)
            else:
                await asyncio.wait([two])
            held.may_commit.set()
            return await one, await two
    finally:
        held.may_commit.set()
        await held.close()


async def _outcome(verb: Verb, verbs: Verbs) -> Any:
    try:
        return await verb(verbs)
    except Exception as error:  # noqa: BLE001 - whatever comes of it is what the test looks at
        return error


async def _until_waiting(world: World, blocker: int, second: asyncio.Task[Any]) -> None:
    """Look until a session stands at a lock of the first one's."""
    while not await world.value(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND $1 = ANY(pg_blocking_pids(pid))",
        blocker,
    ):
        assert not second.done(), f"it did not wait: {second.result()!r}"
        await asyncio.sleep(0.002)


async def claimed(world: World, *, count: int = 1, **wish: Any) -> list[UUID]:
    """New tasks whose call is in flight."""
    ids = [await world.submit(PROVIDER, **wish) for _ in range(count)]
    claims = await world.graph.dispatch.claim(PROVIDER, 64)
    assert {claim.task.id for claim in claims.items} == set(ids)
    return ids


async def running(world: World, **wish: Any) -> UUID:
    """A new task that its provider has accepted."""
    (task_id,) = await claimed(world, **wish)
    await world.graph.advance.advance(accepted_news(task_id))
    assert await world.state(task_id) is State.RUNNING
    return task_id


async def archiving(world: World, **wish: Any) -> UUID:
    """A new task whose results are being copied."""
    task_id = await running(world, **wish)
    await world.graph.advance.advance(success(task_id, Origin.POLL))
    assert await world.state(task_id) is State.ARCHIVING
    return task_id


def accepted_news(task_id: UUID) -> News:
    """The provider's answer to the submit."""
    return News(task_id, 1, update=_update(task_id, UpdateStatus.RUNNING, Origin.ANSWER))


def success(task_id: UUID, origin: Origin) -> News:
    """The picture is ready upstream; a callback is kept with its body."""
    output = (Output(url=f"https://results.example/{task_id}.png"),)
    update = replace(_update(task_id, UpdateStatus.SUCCEEDED, origin), outputs=output)
    return News(task_id, 1, update=update, callback=_callback(origin))


def failure(task_id: UUID, origin: Origin) -> News:
    """The provider refuses the input, for good."""
    refused = Failure(FailureClass.INVALID_REQUEST, "prompt_refused")
    update = replace(_update(task_id, UpdateStatus.FAILED, origin), failure=refused)
    return News(task_id, 1, update=update, callback=_callback(origin))


def _callback(origin: Origin) -> Callback | None:
    return Callback(PROVIDER, b'{"status": "done"}') if origin is Origin.CALLBACK else None


def _update(task_id: UUID, status: UpdateStatus, origin: Origin) -> ProviderUpdate:
    return ProviderUpdate(status, origin, provider_ref=f"ref-{task_id.hex}", upstream_status=status.value)


def ending(task_id: UUID, *, attempt: int, source: State, pictures: int = 0) -> Ending:
    """How a task ends from one state: with pictures it has succeeded, else it has failed."""
    return Ending(
        task_id,
        attempt,
        frozenset({source}),
        State.SUCCEEDED if pictures else State.FAILED,
        cause="test",
        failure=None if pictures else Failure(FailureClass.UPSTREAM_FAULT, "result_lost"),
        assets=tuple(_picture(position) for position in range(pictures)),
    )


def _picture(position: int) -> AssetItem:
    key = new_id()
    return AssetItem(key, position, f"assets/{key}.png", "image/png", 8, 8, 100, "ab" * 32)
