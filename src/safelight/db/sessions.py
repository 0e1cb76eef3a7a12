"""Sessions of people in a browser, and the tickets that open them: known by keyed hashes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from safelight.db.statements import Connection, statements

_sql = statements("sessions")


@dataclass(frozen=True, slots=True)
class Holder:
    """On whose key a session stands: a customer's, or an operator's."""

    key_id: str
    is_operator: bool


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session that goes on; `account_id` is None for an operator, `is_stale` when nobody was there for a minute."""

    key_id: str
    account_id: UUID | None
    name: str
    expires_at: datetime
    is_stale: bool


async def create_session(connection: Connection, digest: bytes, holder: Holder, *, life_s: float) -> datetime:
    """Begin a session; until when it lasts."""
    ends_at: datetime = await _sql.insert_session.value(
        connection, digest=digest, life_s=life_s, **_columns(holder)
    )
    return ends_at


async def read_session(connection: Connection, digest: bytes, *, idle_s: float) -> SessionRow | None:
    """Whose session this is; None for whatever is wrong with it."""
    row = await _sql.read_session.row(connection, digest=digest, idle_s=idle_s)
    return SessionRow(**row) if row else None


async def touch_session(connection: Connection, digest: bytes) -> None:
    """Note that somebody is there."""
    await _sql.touch_session.run(connection, digest=digest)


async def end_session(connection: Connection, digest: bytes) -> None:
    """End a session; once more does no harm."""
    await _sql.end_session.run(connection, digest=digest)


async def ended_sessions(connection: Connection, digests: Sequence[bytes]) -> set[bytes]:
    """Those of the sessions that were signed out, or have had their time."""
    rows = await _sql.ended_sessions.rows(connection, digests=list(digests))
    return {row["digest"] for row in rows}


async def create_ticket(connection: Connection, digest: bytes, holder: Holder, *, life_s: float) -> datetime:
    """Make a ticket; until when it can be used."""
    ends_at: datetime = await _sql.insert_ticket.value(
        connection, digest=digest, life_s=life_s, **_columns(holder)
    )
    return ends_at


async def take_ticket(connection: Connection, digest: bytes) -> Holder | None:
    """Use a ticket up; None if it opens nothing (any more)."""
    row = await _sql.take_ticket.row(connection, digest=digest)
    if row is None:
        return None
    return Holder(row["key_id"] or row["admin_key_id"], is_operator=row["key_id"] is None)


async def drop_expired(connection: Connection) -> None:
    """Delete what is over."""
    await _sql.drop_expired.run(connection)


def _columns(holder: Holder) -> dict[str, str | None]:
    if holder.is_operator:
        return {"key_id": None, "admin_key_id": holder.key_id}
    return {"key_id": holder.key_id, "admin_key_id": None}
