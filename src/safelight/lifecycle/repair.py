"""Repairs that are safe by construction: they bring nothing about that would not have come by itself."""

from __future__ import annotations

from dataclasses import dataclass

from safelight.assets.store import AssetStore
from safelight.db import retention, tasks
from safelight.db.auditlog import write_line
from safelight.db.database import Database
from safelight.db.queue import (
    enqueue_copying,
    enqueue_permits,
    providers_with_due_tasks,
    waiting_providers,
)
from safelight.domain.audit import Actor
from safelight.lifecycle.retention import BATCH
from safelight.lifecycle.strays import Strays


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was done, to how many, and a few of them by name."""

    act: str
    count: int
    named: tuple[str, ...] = ()


NAMED = 5


class Repair:
    """Wakes what is due, deletes stray bytes and receipts that have expired. Each act is in the audit log."""

    def __init__(self, database: Database, store: AssetStore, by: Actor, *, keep_receipts_days: int) -> None:
        self._database = database
        self._store = store
        self._by = by
        self._keep_receipts_days = keep_receipts_days

    async def repair(self) -> list[Repaired]:
        """Do all of it; doing it again, or beside a running service, does no harm."""
        done = [await self._wake(), await self._delete_strays(), await self._drop_receipts()]
        return [act for act in done if act.count]

    async def _wake(self) -> Repaired:
        """A job too many does nothing: whoever takes it reads the rows."""
        async with self._database.transaction() as connection:
            waiting = await waiting_providers(connection)
            due = await providers_with_due_tasks(connection, waiting)
            await enqueue_permits(connection, due, is_sweep=True)
            has_copies = await tasks.has_due_copies(connection, overdue_s=0.0)
            if has_copies:
                await enqueue_copying(connection, is_sweep=True)
            woken = (*due, *(("copies",) if has_copies else ()))
            if woken:
                await write_line(connection, self._by, "doctor.wake", detail={"woken": woken})
        return Repaired("woke what is due", len(woken), woken[:NAMED])

    async def _delete_strays(self) -> Repaired:
        count, named = 0, list[str]()
        async for key in Strays(self._database, self._store).find():
            await self._store.delete(key)
            count += 1
            if len(named) < NAMED:
                named.append(key)
        if count:
            await self._write("doctor.delete_strays", objects=count, first=named)
        return Repaired("deleted stray bytes", count, tuple(named))

    async def _drop_receipts(self) -> Repaired:
        count = 0
        while self._keep_receipts_days:
            async with self._database.connection() as connection:
                dropped = await retention.drop_receipts(
                    connection, keep_days=self._keep_receipts_days, room=BATCH
                )
            count += dropped
            if dropped < BATCH:
                break
        if count:
            await self._write("doctor.drop_receipts", receipts=count)
        return Repaired("removed receipts that had expired", count)

    async def _write(self, action: str, **detail: object) -> None:
        async with self._database.transaction() as connection:
            await write_line(connection, self._by, action, detail=detail)
