"""Counts of callbacks of which nothing else is kept, written once a second at most: a flood costs no more."""

from __future__ import annotations

import asyncio
from collections import Counter

import asyncpg
import structlog

from safelight.db import notices
from safelight.db.database import Database

log = structlog.get_logger()

WRITE_GAP_S = 1.0


class CallbackCounts:
    """Counts by provider and kind. What was counted in the last second is lost with a process that is killed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pending: Counter[tuple[str, str]] = Counter()
        self._writer: asyncio.Task[None] | None = None

    def add(self, provider_name: str, kind: str) -> None:
        """One more; it returns at once."""
        self._pending[(provider_name, kind)] += 1
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_soon())

    async def write(self) -> None:
        """Write what was counted; what cannot be written now is kept for the next time."""
        pending, self._pending = self._pending, Counter()
        if not pending:
            return
        try:
            async with self._database.connection() as connection:
                await notices.count_callbacks(connection, pending)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._pending.update(pending)
            log.warning("callback_counts_wait", callbacks=sum(pending.values()))

    async def aclose(self) -> None:
        """Write the rest."""
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
        await self.write()

    async def _write_soon(self) -> None:
        await asyncio.sleep(WRITE_GAP_S)
        await self.write()
