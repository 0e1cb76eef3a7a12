"""What may go after a while: what tasks said, their pictures, histories, callbacks, receipts, stray bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from uuid import UUID

import structlog

from safelight.assets.store import AssetStore, thumbnail_key
from safelight.db import admin, batches, live, outbox, retention, sessions, tasks
from safelight.db.database import Database
from safelight.db.queue import prune_queue
from safelight.db.retention import DoomedAsset
from safelight.db.statements import Connection
from safelight.domain.task import is_terminal
from safelight.errors import AssetError, RequestError
from safelight.lifecycle.strays import delete_strays
from safelight.settings import Settings
from safelight.telemetry import point

log = structlog.get_logger()

BATCH = 500
"""Rows that one transaction deletes at most, or about: it stays short, and nobody waits for it."""
EVENTS_A_TASK = 5
LEASE_S = 120.0
BATCHES_A_PASS = 100
"""A pass ends well within its lease; what is left is for the next one."""
STRAYS_EVERY_S = 86_400.0

Act = Callable[[Connection, Sequence[UUID]], Awaitable[int]]


class Retention:
    """Policies, each under a lease, so that one worker does what all would do."""

    def __init__(self, database: Database, store: AssetStore, settings: Settings) -> None:
        self._database = database
        self._store = store
        self._settings = settings

    async def step(self) -> None:
        """One pass of every policy that is set."""
        settings = self._settings
        await self._apply("events", settings.keep_events_days, self._drop_histories, BATCH // EVENTS_A_TASK)
        await self._apply("callbacks", settings.keep_callbacks_days, retention.drop_callbacks, BATCH // 2)
        await self._apply("tasks", settings.keep_tasks_days, _erase, BATCH // 2)
        await self._apply("assets", settings.keep_assets_days, retention.doom_assets, BATCH // 2)
        await self._delete_doomed()
        await self._drop_receipts()
        await self._drop_live()
        await self._forget_batches()
        await self._drop_deliveries()

    async def prune(self) -> None:
        """Once a day: what the queue wrote for itself, answers to operators, old sessions, and bytes of nobody."""
        async with self._database.connection() as connection:
            await prune_queue(connection, keep_days=self._settings.keep_jobs_days)
            await admin.drop_admin_receipts(connection)
            await sessions.drop_expired(connection)
            # Kept until it ends by itself: one listing of the store a day, however many workers there are.
            is_ours = await retention.lease(connection, "strays", lease_s=STRAYS_EVERY_S * 0.75)
        if is_ours:
            deleted = await delete_strays(self._database, self._store)
            if deleted:
                log.warning("strays_deleted", objects=deleted)

    async def _apply(self, kind: str, keep_days: int, act: Act, room: int) -> None:
        if not keep_days or not await self._lease(kind):
            return
        done = 0
        try:
            for _ in range(BATCHES_A_PASS):
                async with self._database.transaction() as connection:
                    ids = await retention.take_due(connection, kind, keep_days=keep_days, room=room)
                    done += await act(connection, ids) if ids else 0
                point("after_retention_batch")
                if len(ids) < room:
                    break
        finally:
            await self._free(kind)
        if done:
            log.info("retention", kind=kind, rows=done, keep_days=keep_days)

    async def _drop_histories(self, connection: Connection, ids: Sequence[UUID]) -> int:
        return await retention.drop_histories(connection, ids)

    async def _delete_doomed(self) -> None:
        """Bytes of pictures that were doomed by policy, or by an erasure that did not come to its end."""
        for _ in range(BATCHES_A_PASS):
            async with self._database.connection() as connection:
                doomed = await retention.doomed_assets(connection, room=BATCH)
            deleted = await delete_bytes(self._database, self._store, doomed)
            if deleted < BATCH:
                return

    async def _drop_receipts(self) -> None:
        keep_days = self._settings.keep_receipts_days
        if not keep_days:
            return
        for _ in range(BATCHES_A_PASS):
            async with self._database.connection() as connection:
                if await retention.drop_receipts(connection, keep_days=keep_days, room=BATCH) < BATCH:
                    return

    async def _drop_live(self) -> None:
        for _ in range(BATCHES_A_PASS):
            async with self._database.transaction() as connection:
                dropped = await live.drop_events(connection)
            if dropped < live.ROOM:
                break
        async with self._database.connection() as connection:
            await live.drop_tickets(connection)

    async def _forget_batches(self) -> None:
        settings = self._settings
        async with self._database.connection() as connection:
            if settings.keep_receipts_days:
                await batches.forget_batches(connection, keep_days=settings.keep_receipts_days)
            if settings.keep_tasks_days:
                await batches.drop_refusals(connection, keep_days=settings.keep_tasks_days)

    async def _drop_deliveries(self) -> None:
        """Webhook events go by their own age, with their deliveries and tries; none that is still on its way."""
        if not await self._lease("deliveries"):
            return
        keep_days = self._settings.keep_deliveries_days
        try:
            for _ in range(BATCHES_A_PASS):
                async with self._database.transaction() as connection:
                    if await outbox.drop_events(connection, keep_days=keep_days, room=BATCH) < BATCH:
                        return
        finally:
            await self._free("deliveries")

    async def _lease(self, kind: str) -> bool:
        async with self._database.connection() as connection:
            return await retention.lease(connection, kind, lease_s=LEASE_S)

    async def _free(self, kind: str) -> None:
        async with self._database.connection() as connection:
            await retention.free(connection, kind)


class Erase:
    """A customer wants what a task said and drew to be gone; what it cost stays in the books."""

    def __init__(self, database: Database, store: AssetStore) -> None:
        self._database = database
        self._store = store

    async def erase(self, account_id: UUID, task_id: UUID) -> None:
        """Erase a finished task; once more does no harm. The pictures are out of reach when this returns.

        Bytes that cannot be deleted now are deleted by a worker later.

        Raises:
            RequestError: 404 no such task of this account, 409 it has not ended yet.
        """
        async with self._database.transaction() as connection:
            row = (await tasks.lock_tasks(connection, [task_id])).get(task_id)
            if row is None or row.account_id != account_id:
                raise RequestError(404, "not-found", "There is no such task.")
            if not is_terminal(row.state):
                raise RequestError(409, "not-erasable", "A task can be erased when it has ended.")
            staged = await tasks.staged_outputs(connection, task_id)
            await _erase(connection, [task_id])
        point("after_erase")
        async with self._database.connection() as connection:
            doomed = await retention.doomed_assets(connection, room=BATCH, task_id=task_id)
        await delete_bytes(self._database, self._store, doomed)
        await _delete_each(self._store, [output.staged_key for output in staged if output.staged_key])


async def delete_bytes(database: Database, store: AssetStore, doomed: Sequence[DoomedAsset]) -> int:
    """Delete the bytes of doomed pictures, then say so in their rows; how many this could be done for."""
    gone = [
        asset.id for asset in doomed if await _delete_each(store, [asset.store_key, thumbnail_key(asset.id)])
    ]
    point("after_bytes_deleted")
    if gone:
        async with database.connection() as connection:
            await retention.note_deleted(connection, gone)
    return len(gone)


async def _erase(connection: Connection, ids: Sequence[UUID]) -> int:
    await retention.doom_assets(connection, ids)
    return await retention.erase_tasks(connection, ids)


async def _delete_each(store: AssetStore, keys: Iterable[str]) -> bool:
    try:
        for key in keys:
            await store.delete(key)
    except AssetError as error:
        log.warning("bytes_not_deleted", reason=error.reason)
        return False
    return True
