"""What may go after a while: leases, cursors and the deletions themselves, a batch a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from safelight.db.statements import Connection, statements

_sql = statements("retention")


@dataclass(frozen=True, slots=True)
class DoomedAsset:
    """A picture whose bytes are to be deleted."""

    id: UUID
    store_key: str


async def lease(connection: Connection, kind: str, *, lease_s: float) -> bool:
    """Take the lease of a policy; False if another worker holds it."""
    return await _sql.lease.value(connection, kind=kind, lease_s=lease_s) is not None


async def free(connection: Connection, kind: str) -> None:
    """Give the lease back."""
    await _sql.free.run(connection, kind=kind)


async def take_due(connection: Connection, kind: str, *, keep_days: int, room: int) -> list[UUID]:
    """The next tasks that ended more than `keep_days` ago; done with when the transaction commits."""
    rows = await _sql.take_due.rows(connection, kind=kind, keep_days=keep_days, room=room)
    return [row["id"] for row in rows]


async def drop_histories(connection: Connection, ids: Sequence[UUID]) -> int:
    """Delete the moves of these tasks; nothing else that is append-only can be deleted."""
    await _sql.let_histories_go.run(connection)
    return int(await _sql.drop_histories.value(connection, ids=list(ids)))


async def drop_callbacks(connection: Connection, ids: Sequence[UUID]) -> int:
    """Delete what providers told us about these tasks."""
    return int(await _sql.drop_callbacks.value(connection, ids=list(ids)))


async def doom_assets(connection: Connection, ids: Sequence[UUID]) -> int:
    """From this commit on nobody gets the pictures of these tasks."""
    return int(await _sql.doom_assets.value(connection, ids=list(ids)))


async def erase_tasks(connection: Connection, ids: Sequence[UUID]) -> int:
    """Erase what finished tasks said, and let their inputs expire; how many were not erased before."""
    return int(await _sql.erase_tasks.value(connection, ids=list(ids)))


async def doomed_assets(
    connection: Connection, *, room: int, task_id: UUID | None = None
) -> list[DoomedAsset]:
    """Pictures whose bytes may still be there: of one task, or of all."""
    ids = None if task_id is None else [task_id]
    return [DoomedAsset(**row) for row in await _sql.doomed_assets.rows(connection, ids=ids, room=room)]


async def note_deleted(connection: Connection, ids: Sequence[UUID]) -> None:
    """Their bytes are gone."""
    await _sql.note_deleted.run(connection, ids=list(ids))


async def drop_receipts(connection: Connection, *, keep_days: int, room: int) -> int:
    """Delete receipts whose keys have expired, oldest first, at most `room`."""
    return int(await _sql.drop_receipts.value(connection, keep_days=keep_days, room=room))


async def mark_restored(connection: Connection, *, attempts: int, room: int) -> int:
    """Let the next attempts of unfinished tasks be looked for before they are sent; how many tasks these are."""
    return int(await _sql.restored_tasks.value(connection, attempts=attempts, room=room))
