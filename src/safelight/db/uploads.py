"""Uploads: rows of pictures that customers handed in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from safelight.db.statements import Connection, statements

_sql = statements("uploads")

SLACK_S = 300.0
"""A use within this time of the last one is not written down: a logo may be in a thousand submits a second."""


@dataclass(frozen=True, slots=True)
class UploadRow:
    """What an upload is, and where its bytes lie."""

    id: UUID
    account_id: UUID
    store_key: str
    content_type: str
    width: int
    height: int
    size_bytes: int
    sha256: bytes
    created_at: datetime
    expires_at: datetime


_COLUMNS = tuple(UploadRow.__slots__)


async def use(
    connection: Connection, account_id: UUID, ids: Collection[UUID], *, keep_s: float
) -> dict[UUID, UploadRow]:
    """Those of an account's uploads that are there, kept from now on for at least `keep_s` less a little slack."""
    wanted = sorted(ids)
    rows = await _sql.find_uploads.rows(
        connection, account_id=account_id, ids=wanted, keep_s=keep_s, slack_s=SLACK_S
    )
    found = {row["id"]: row_of(row) for row in rows if not row["is_stale"]}
    stale = sorted(row["id"] for row in rows if row["is_stale"])
    if stale:
        renewed = await _sql.renew_uploads.rows(connection, account_id=account_id, ids=stale, keep_s=keep_s)
        found.update((row["id"], row_of(row)) for row in renewed)
    return found


async def read(connection: Connection, account_id: UUID, ids: Collection[UUID]) -> dict[UUID, UploadRow]:
    """Those of an account's uploads that are there, for a task that was accepted with them."""
    rows = await _sql.read_uploads.rows(connection, account_id=account_id, ids=sorted(ids))
    return {row["id"]: row_of(row) for row in rows}


async def space_taken(connection: Connection, account_id: UUID) -> int:
    """Bytes of an account's uploads."""
    return int(await _sql.space_taken.value(connection, account_id=account_id))


@dataclass(frozen=True, slots=True)
class Standing:
    """An upload under its lock."""

    store_key: str
    is_doomed: bool


async def lock(connection: Connection, account_id: UUID, upload_id: UUID) -> Standing | None:
    """How an upload stands; the account is locked already, so that nobody writes it beside us."""
    row = await _sql.lock_upload.row(connection, account_id=account_id, id=upload_id)
    return Standing(row["store_key"], row["is_doomed"]) if row else None


async def write(connection: Connection, values: Mapping[str, Any], *, keep_s: float) -> UploadRow:
    """Write a new upload, or one that was doomed; its times are the database's."""
    (row,) = await _sql.write_upload.rows(connection, **values, keep_s=keep_s)
    return row_of(row)


@dataclass(frozen=True, slots=True)
class Expired:
    """An upload whose time is over; it is doomed unless an unfinished task needs it."""

    id: UUID
    store_key: str
    is_doomed: bool


async def claim_expired(connection: Connection, *, room: int, keep_s: float, lease_s: float) -> list[Expired]:
    """Doom expired uploads, oldest first; what is not forgotten by the end of the lease comes up again."""
    rows = await _sql.claim_expired.rows(connection, room=room, keep_s=keep_s, lease_s=lease_s)
    return [Expired(**row) for row in rows]


async def forget(connection: Connection, upload_id: UUID, store_key: str) -> None:
    """Delete the row of a doomed upload whose bytes are gone."""
    await _sql.forget_upload.run(connection, id=upload_id, store_key=store_key)


def row_of(row: asyncpg.Record) -> UploadRow:
    """The columns of an upload."""
    return UploadRow(**{name: row[name] for name in _COLUMNS})
