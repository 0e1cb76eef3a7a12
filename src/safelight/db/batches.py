"""Batches: their rows, what they let go to work, and what became of their items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from safelight.db.statements import Connection, statements

_sql = statements("batches")


@dataclass(frozen=True, slots=True)
class BatchView:
    """A batch with what became of its items; `price` is the sum of all holds, `held` what is held still."""

    id: UUID
    name: str
    items: int
    at_once: int
    state: str
    created_at: datetime
    canceled_at: datetime | None
    finished_at: datetime | None
    refused: int
    processing: int
    at_work: int
    ready: int
    failed: int
    price: int
    held: int
    captured: int
    released: int


@dataclass(frozen=True, slots=True)
class KnownBatch:
    """A batch that was handed in before under this key."""

    id: UUID
    fingerprint: bytes
    state: str
    canceled_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch as it is made; `start_in_s` is what an item has to start once it is let go."""

    id: UUID
    account_id: UUID
    name: str
    key: str
    fingerprint: bytes
    items: int
    at_once: int
    start_in_s: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """An item that became no task; `code` is that of the problem document."""

    position: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One item: its task, or why there is none."""

    position: int
    task_id: UUID | None
    code: str | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class Untended:
    """A batch that may have something left to do."""

    id: UUID
    account_id: UUID
    is_abandoned: bool
    is_canceled: bool


async def find_batch(connection: Connection, account_id: UUID, key: str) -> KnownBatch | None:
    """The account's batch of that idempotency key."""
    row = await _sql.find_batch.row(connection, account_id=account_id, key=key)
    return KnownBatch(**row) if row else None


async def insert_batch(connection: Connection, batch: NewBatch) -> None:
    """A batch whose items are still to be accepted; its account is locked."""
    await _sql.insert_batch.value(connection, **asdict(batch))


async def insert_refusals(connection: Connection, batch_id: UUID, refusals: Sequence[Refusal]) -> None:
    """Keep why items became no task; the first reason counts."""
    await _sql.insert_refusals.run(
        connection,
        batch_id=batch_id,
        positions=[refusal.position for refusal in refusals],
        codes=[refusal.code for refusal in refusals],
        details=[refusal.detail for refusal in refusals],
    )


async def refused_positions(connection: Connection, batch_id: UUID) -> set[int]:
    """Which items became no task."""
    return {row["position"] for row in await _sql.refused_positions.rows(connection, batch_id=batch_id)}


async def lock_batch(connection: Connection, account_id: UUID, batch_id: UUID) -> bool:
    """Lock a batch of the account, which is locked already; False if there is none."""
    return await _sql.lock_batch.row(connection, id=batch_id, account_id=account_id) is not None


async def accepting(connection: Connection, batch_ids: Sequence[UUID]) -> set[UUID]:
    """Those of the batches that take items still; under the locks of their accounts nobody closes one meanwhile."""
    return {row["id"] for row in await _sql.accepting.rows(connection, ids=list(batch_ids))}


async def open_batch(connection: Connection, batch_id: UUID) -> None:
    """All of it is accepted."""
    await _sql.open_batch.run(connection, id=batch_id)


async def cancel_batch(connection: Connection, batch_id: UUID, *, is_key_free: bool = False) -> None:
    """No further item goes to work."""
    await _sql.cancel_batch.run(connection, id=batch_id, is_key_free=is_key_free)


async def release(connection: Connection, batch_ids: Sequence[UUID]) -> list[str]:
    """Let parked items take the room that others have left; the providers that have something to do then.

    The accounts are locked. Batches of which every item has ended are finished.
    """
    rows = await _sql.release_next.rows(connection, ids=list(batch_ids))
    await _sql.finish_batches.run(connection, ids=list(batch_ids))
    return [row["provider"] for row in rows]


async def waiting_items(connection: Connection, batch_id: UUID, *, room: int) -> list[UUID]:
    """Tasks of the batch that can be canceled at once."""
    return [row["id"] for row in await _sql.waiting_items.rows(connection, id=batch_id, room=room)]


async def request_cancels(connection: Connection, batch_id: UUID) -> None:
    """Ask for those back that are upstream."""
    await _sql.request_cancels.run(connection, id=batch_id)


async def to_tend(connection: Connection, *, after: UUID, abandoned_s: float, room: int) -> list[Untended]:
    """Unfinished batches by id; those that are still handed in only once that takes too long."""
    rows = await _sql.batches_to_tend.rows(connection, after=after, abandoned_s=abandoned_s, room=room)
    return [Untended(**row) for row in rows]


async def read_batch(connection: Connection, account_id: UUID, batch_id: UUID) -> BatchView | None:
    """One batch of the account."""
    row = await _sql.read_batch.row(connection, account_id=account_id, id=batch_id)
    return BatchView(**row) if row else None


async def list_batches(
    connection: Connection, account_id: UUID, *, before: UUID | None, limit: int
) -> list[BatchView]:
    """At most `limit` batches of the account, newest first, older than `before`."""
    rows = await _sql.list_batches.rows(connection, account_id=account_id, before=before, room=limit)
    found = [await read_batch(connection, account_id, row["id"]) for row in rows]
    return [batch for batch in found if batch is not None]


async def list_items(
    connection: Connection, account_id: UUID, batch_id: UUID, *, after: int, room: int
) -> list[BatchItem]:
    """At most `room` items of the account's batch in order, after a position."""
    rows = await _sql.list_items.rows(connection, account_id=account_id, id=batch_id, after=after, room=room)
    return [BatchItem(**row) for row in rows]


async def forget_batches(connection: Connection, *, keep_days: int) -> None:
    """Let keys of batches that ended long ago become new."""
    await _sql.forget_batches.run(connection, keep_days=keep_days)


async def drop_refusals(connection: Connection, *, keep_days: int) -> None:
    """Forget why items of old batches were refused."""
    await _sql.drop_refusals.run(connection, keep_days=keep_days)
