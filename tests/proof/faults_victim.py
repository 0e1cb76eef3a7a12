"""A process that a fault befalls: a thread with its own loop, graph and sessions, which can be frozen and killed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from safelight.db.database import Database
from safelight.db.statements import Connection
from safelight.telemetry import set_fault_hook
from tests.world import World, beside

Scene = Callable[[World], Coroutine[Any, Any, None]]
"""What a process does; it may be cut off anywhere."""


class Kind(StrEnum):
    """What befalls a process at a fault point."""

    RAISE = "raise"
    """The call fails there, and the process lives on."""
    CANCEL = "cancel"
    """The task is canceled there, as at a shutdown that takes too long."""
    DIE = "die"
    """Nothing runs any more from there on, and the sessions end: a SIGKILL."""
    STALL = "stall"
    """The process stands still while the others do all its work, then goes on as if nothing had been."""


class Broken(Exception):
    """Something failed at a fault point."""


class Killed(BaseException):
    """The process is gone; nothing may catch this."""


@dataclass(slots=True)
class Fault:
    """What happens where; the first time that the point is reached."""

    point: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.kind} at {self.point}"


class Mortal(Database):
    """Knows the sessions that end with its process."""

    def __init__(self, url: str) -> None:
        super().__init__(url, pool_size=4)
        self.backends: set[int] = set()

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with super().connection() as connection:
            self.backends.add(connection.get_server_pid())
            yield connection


@dataclass
class Victim:
    """Plays a scene in a thread. `reached` are the points it came to, in order, each once."""

    world: World
    fault: Fault | None = None
    reached: dict[str, None] = field(default_factory=dict)
    has_met: bool = False
    error: BaseException | None = None
    """What the scene ended with."""
    _frozen: asyncio.Event = field(default_factory=asyncio.Event)
    _thawed: threading.Event = field(default_factory=threading.Event)
    _database: Mortal = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _thread: int = 0
    _playing: asyncio.Future[None] = field(init=False)

    async def play(self, scene: Scene) -> None:
        """Play until the end, or until the process stands still (`thaw` lets it go on)."""
        self._loop = asyncio.get_running_loop()
        self._database = Mortal(self.world.database.url)
        set_fault_hook(self._hook)
        self._playing = asyncio.ensure_future(asyncio.to_thread(asyncio.run, self._live(scene)))
        frozen = asyncio.create_task(self._frozen.wait())
        await asyncio.wait([self._playing, frozen], return_when=asyncio.FIRST_COMPLETED)
        frozen.cancel()

    @property
    def is_frozen(self) -> bool:
        return self._frozen.is_set() and not self._thawed.is_set()

    async def thaw(self) -> None:
        """Let a process that stands still go on, or end if it was killed; then wait for its end."""
        self._thawed.set()
        await asyncio.wait([self._playing])
        set_fault_hook(None)

    async def end_sessions(self, *, idle_only: bool) -> None:
        """What the server does with the sessions of a dead process, or with one that sits in a transaction too long."""
        await self.world.rows(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE pid = ANY($1::int[]) AND (NOT $2 OR state LIKE 'idle in transaction%')",
            list(self._database.backends),
            idle_only,
        )

    async def _live(self, scene: Scene) -> None:
        self._thread = threading.get_ident()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)  # a dying process leaves tasks that nobody asks any more
        async with beside(self.world, self._database) as world:
            playing = asyncio.ensure_future(scene(world))
            await asyncio.wait([playing])
            self.error = asyncio.CancelledError() if playing.cancelled() else playing.exception()

    def _hook(self, name: str) -> None:
        if threading.get_ident() != self._thread:
            return
        self.reached[name] = None
        if self.fault is None or self.fault.point != name or self.has_met:
            return
        self.has_met = True
        self._befall(self.fault)

    def _befall(self, fault: Fault) -> None:
        match fault.kind:
            case Kind.RAISE:
                raise Broken(fault.point)
            case Kind.CANCEL:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            case Kind.STALL | Kind.DIE:
                self._loop.call_soon_threadsafe(self._frozen.set)
                self._thawed.wait()  # the whole loop stands still, as in a process that does
                if fault.kind is Kind.DIE:
                    raise Killed(fault.point)
