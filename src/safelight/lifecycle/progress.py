"""Notes how far a picture has come while its submit is still in flight."""

from __future__ import annotations

import asyncio
import time

import structlog

from safelight.db import tasks
from safelight.db.database import Database
from safelight.db.tasks import TaskRow
from safelight.domain.provider import ProviderUpdate

log = structlog.get_logger()

NOTE_EVERY_S = 1.0


class ProgressNotes:
    """The notes of one submit: at most one a second, one at a time, and none that could harm the submit."""

    def __init__(self, database: Database, task: TaskRow) -> None:
        self._database = database
        self._task = task
        self._noted_at: float | None = None
        self._writing: asyncio.Task[None] | None = None

    def report(self, update: ProviderUpdate) -> None:
        """Take news; what comes too soon after the last note is dropped, since the next will say more."""
        now = time.monotonic()
        is_soon = self._noted_at is not None and now - self._noted_at < NOTE_EVERY_S
        is_busy = self._writing is not None and not self._writing.done()
        if update.percent is None or is_soon or is_busy:
            return
        self._noted_at = now
        self._writing = asyncio.get_running_loop().create_task(self._write(update.percent))

    async def close(self) -> None:
        """Wait for the last note; one that failed is only logged, it was a hint for a progress bar."""
        if self._writing is None:
            return
        await asyncio.wait([self._writing])
        if not self._writing.cancelled() and (error := self._writing.exception()) is not None:
            log.warning("progress_not_noted", task_id=str(self._task.id), error=type(error).__name__)

    async def _write(self, percent: int) -> None:
        # The version is that of the claim: once the submit is recorded, a late note changes nothing.
        note = {"id": self._task.id, "version": self._task.version, "percent": percent}
        async with self._database.connection() as connection:
            await tasks.note_progress(connection, [note])
