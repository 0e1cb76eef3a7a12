"""One lane of the queue: its own connection, entry points and budget, kept alive by a supervisor."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

import asyncpg
import structlog
from pgqueuer.core.qm import QueueManager
from pgqueuer.domain.models import Job

from safelight.db.database import Database
from safelight.db.queue import QUEUE_SETTINGS, queue_queries

log = structlog.get_logger()

Handler = Callable[[str], Awaitable[None]]
"""Does one job; its argument is the job's payload as text."""

DEQUEUE_TIMEOUT = timedelta(seconds=5)
"""Longest pause between two looks at the queue when no notification comes."""
HEARTBEAT_TIMEOUT = timedelta(seconds=15)
"""A job of a dead worker is taken over after this."""
RESTART_S = 1.0


class Lane:
    """Runs entry points until it is stopped; replaces its queue manager whenever that one ends."""

    def __init__(
        self, name: str, database: Database, handlers: Mapping[str, Handler], *, budget: int
    ) -> None:
        self._name = name
        self._database = database
        self._handlers = handlers
        self._budget = max(budget, 2)
        self._stopping = asyncio.Event()
        self._instances: set[asyncio.Task[None]] = set()
        self._manager: QueueManager | None = None

    async def run(self) -> None:
        """Keep one instance working; an ended or failing one is replaced while it still drains."""
        while not self._stopping.is_set():
            started = asyncio.Event()
            instance = asyncio.create_task(self._run_instance(started), name=f"lane-{self._name}")
            self._instances.add(instance)
            instance.add_done_callback(self._ended)
            await started.wait()
            await self._wait_for_end(instance)
            if not self._stopping.is_set():
                await asyncio.sleep(RESTART_S)

    async def stop(self, drain_s: float) -> None:
        """Take no more jobs, let the running ones finish for `drain_s` seconds, then cancel them."""
        self._stopping.set()
        if self._manager is not None:
            self._manager.shutdown.set()
        if self._instances:
            _, late = await asyncio.wait(self._instances, timeout=drain_s)
            for instance in late:
                instance.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _run_instance(self, started: asyncio.Event) -> None:
        connection: asyncpg.Connection | None = None
        try:
            connection = await self._database.connect_directly()
            self._manager = manager = QueueManager(queue_queries(connection), QUEUE_SETTINGS.channel)
            if self._stopping.is_set():
                return
            for name, handler in self._handlers.items():
                manager.entrypoint(name)(_entry(handler))
            started.set()
            await manager.run(
                dequeue_timeout=DEQUEUE_TIMEOUT,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                batch_size=max(self._budget // 2, 1),
                max_concurrent_tasks=self._budget,
                shutdown_on_listener_failure=True,
            )
        finally:
            started.set()
            if connection is not None:
                with contextlib.suppress(
                    OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError
                ):
                    await connection.close(timeout=2.0)

    async def _wait_for_end(self, instance: asyncio.Task[None]) -> None:
        """Until the instance ends or shuts itself down (then its replacement starts while it drains)."""
        manager = self._manager
        waits: set[asyncio.Task[object]] = {asyncio.ensure_future(_settled(instance))}
        if manager is not None and not instance.done():
            waits.add(asyncio.create_task(_until_set(manager.shutdown)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _ended(self, instance: asyncio.Task[None]) -> None:
        self._instances.discard(instance)
        if instance.cancelled() or self._stopping.is_set():
            return
        error = instance.exception()
        log.warning("lane_ended", lane=self._name, error=repr(error) if error else None)


async def _settled(instance: asyncio.Task[None]) -> object:
    return await asyncio.wait({instance})


async def _until_set(event: asyncio.Event) -> object:
    return await event.wait()


def _entry(handler: Handler) -> Callable[[Job], Awaitable[None]]:
    async def entry(job: Job) -> None:
        await handler((job.payload or b"").decode())

    return entry
