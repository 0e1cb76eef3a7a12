"""The doctor's questions: read-only, and bounded in memory however many rows there are."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from safelight.db.database import Database
from safelight.db.statements import Connection, statements

_sql = statements("audit")
_BATCH = 500
_PATIENCE_MS = 600_000
"""An audit reads whole tables; the 30 s of ordinary statements are too short for a million tasks."""


@dataclass(frozen=True, slots=True)
class AssetRow:
    """What our books say about one picture; `sha256` are the 32 raw bytes."""

    id: UUID
    task_id: UUID
    store_key: str
    content_type: str
    width: int
    height: int
    bytes: int
    sha256: builtins.bytes


async def ask(
    database: Database, question: str, values: Mapping[str, Any]
) -> AsyncGenerator[tuple[str, str], None]:
    """The (subject, detail) rows of one statement of `audit.sql`; it takes of `values` what it needs."""
    statement = getattr(_sql, question)
    given = [values[name] for name in statement.names]
    async with database.connection() as connection, connection.transaction(readonly=True):
        await connection.execute(f"SET LOCAL statement_timeout = {_PATIENCE_MS}")
        async for row in connection.cursor(statement.sql, *given, prefetch=_BATCH):
            yield row["subject"], row["detail"]


async def asset_batches(database: Database, *, room: int = 200) -> AsyncIterator[list[AssetRow]]:
    """All pictures by id, `room` at a time; no connection is held between two batches."""
    after = UUID(int=0)
    while True:
        async with database.connection() as connection:
            rows = await _sql.asset_batch.rows(connection, after=after, room=room)
        if not rows:
            return
        yield [AssetRow(**dict(row)) for row in rows]
        after = rows[-1]["id"]


async def ownerless_keys(database: Database, keys: Sequence[str]) -> list[str]:
    """Those of the keys that belong to no asset and to no open task."""
    async with database.connection() as connection:
        rows = await _sql.ownerless_keys.rows(connection, keys=list(keys))
    return [row["key"] for row in rows]


async def attempts_of(connection: Connection, task_id: UUID) -> list[dict[str, Any]]:
    """Every attempt of one task, oldest first, in our inner words: for operators."""
    return [dict(row) for row in await _sql.attempts_of.rows(connection, task_id=task_id)]
