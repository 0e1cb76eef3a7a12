"""Live events: numbered when they are first read, in an order that no reader can skip; and tickets for browsers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from safelight.db.statements import Connection, statements
from safelight.domain.task import PublicStatus

CHANNEL = "safelight_live"
"""Where a commit tells whose tasks have changed; the payload is the account's id."""
KEEP_S = 86_400.0
"""For so long a reader can resume."""
ROOM = 1_000

_sql = statements("live")


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """A change that a customer can see; `stage` is a place in STAGES, `number` counts within the account."""

    account_id: UUID
    number: int
    task_id: UUID
    version: int
    status: PublicStatus
    stage: int
    percent: int | None
    position: int | None
    failure_class: str | None
    failure_code: str | None
    created_at: datetime

    @property
    def is_last(self) -> bool:
        """Whether the task has ended with it."""
        return self.status is not PublicStatus.PROCESSING


@dataclass(frozen=True, slots=True)
class Position:
    """How far an account's numbers have come; whoever has seen less than `dropped` has lost something."""

    last: int = 0
    dropped: int = 0

    def can_resume(self, after: int) -> bool:
        """Whether everything after this number is still there."""
        return self.dropped <= after <= self.last


@dataclass(frozen=True, slots=True)
class TicketRow:
    """Whose ticket it was; `key_id` is the key by which it was asked for."""

    account_id: UUID
    key_id: str | None
    is_live: bool


async def number_events(connection: Connection, account_ids: Sequence[UUID]) -> None:
    """Number everything that these accounts have committed; must not run inside a transaction."""
    while await _sql.number_events.value(connection, account_ids=list(account_ids), room=ROOM) == ROOM:
        pass


async def read_events(
    connection: Connection, after: Mapping[UUID, int], *, room: int = ROOM
) -> list[LiveEvent]:
    """At most `room` events of each account, after the number that it has seen."""
    rows = await _sql.read_events.rows(
        connection, account_ids=list(after), after=list(after.values()), room=room
    )
    return [_event_of(row) for row in rows]


async def read_events_of_task(
    connection: Connection, account_id: UUID, task_id: UUID, *, after: int, room: int = ROOM
) -> list[LiveEvent]:
    """At most `room` events of one task of the account, after a number."""
    rows = await _sql.read_events_of_task.rows(
        connection, account_id=account_id, task_id=task_id, after=after, room=room
    )
    return [_event_of(row) for row in rows]


async def last_event_of_task(connection: Connection, account_id: UUID, task_id: UUID) -> LiveEvent | None:
    """How a task of the account was last told of; None if that is too long ago."""
    row = await _sql.last_event_of_task.row(connection, account_id=account_id, task_id=task_id)
    return _event_of(row) if row else None


async def read_position(connection: Connection, account_id: UUID) -> Position:
    """How far the account's numbers have come."""
    row = await _sql.read_position.row(connection, account_id=account_id)
    return Position(row["last"], row["dropped"]) if row else Position()


async def drop_events(connection: Connection, *, keep_s: float = KEEP_S, room: int = ROOM) -> int:
    """Drop the oldest events that nobody can resume from any more; needs a transaction of its own."""
    found = await _sql.accounts_with_old_events.rows(connection, keep_s=keep_s, room=room)
    ids = [row["account_id"] for row in found]
    if not ids:
        return 0
    await _sql.ensure_counters.run(connection, account_ids=ids)
    await _sql.lock_counters.rows(connection, account_ids=ids)
    return int(await _sql.drop_events.value(connection, account_ids=ids, keep_s=keep_s, room=room))


async def leap(connection: Connection, *, by: int) -> None:
    """Leave so many numbers of every account out; its readers are told to begin anew."""
    await _sql.leap.run(connection, by=by)


async def insert_ticket(
    connection: Connection, account_id: UUID, key_id: str | None, *, digest: bytes, life_s: float
) -> datetime:
    """Keep a ticket by its hash; when it ends."""
    expires_at: datetime = await _sql.insert_ticket.value(
        connection, account_id=account_id, key_id=key_id, digest=digest, life_s=life_s
    )
    return expires_at


async def take_ticket(connection: Connection, digest: bytes) -> TicketRow | None:
    """Use up a ticket."""
    row = await _sql.take_ticket.row(connection, digest=digest)
    return TicketRow(**row) if row else None


async def drop_tickets(connection: Connection) -> None:
    """Drop what nobody used in time."""
    await _sql.drop_tickets.run(connection)


def _event_of(row: asyncpg.Record) -> LiveEvent:
    values = dict(row)
    values["status"] = PublicStatus(values["status"])
    return LiveEvent(**values)
