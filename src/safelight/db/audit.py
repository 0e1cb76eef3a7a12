"""The doctor's questions: read-only, and bounded in memory however many rows there are."""

from __future__ import annotations

import builtins
import contextlib
import functools
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from safelight.db.database import Database
from safelight.db.migrate import MIGRATIONS
from safelight.db.statements import Connection, Statement, statements

_sql = statements("audit")
_once = statements("audit_once")
_BATCH = 500
RANGES = {"task": 5_000, "account": 200}
"""How many of them a question looks at in one go."""
FIRST, LAST = UUID(int=0), UUID(int=(1 << 128) - 1)
# An audit may read for minutes and must not get in the way: little memory for each sort, one core, and every range is
# planned for itself, since the first one says nothing about the last.
_SESSION = """
SET LOCAL statement_timeout = '10min'; SET LOCAL work_mem = '16MB'; SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL plan_cache_mode = 'force_custom_plan';
"""
RANGE_SESSION = f"{_SESSION} SET LOCAL enable_nestloop = off; SET LOCAL enable_seqscan = off;"
"""Each table of a question is bounded by the range, and how many keys lie between two ids the planner cannot tell.
Where it guesses one, it would go through another table's range again for each of 5,000; where half of all, through
the whole table."""
_MADE = re.compile(
    r"CREATE (?:CONSTRAINT )?TRIGGER (\w+)|CREATE UNIQUE INDEX (\w+)|\bCONSTRAINT (?!TRIGGER\b)(\w+) (?:CHECK|UNIQUE)"
)
_DROPPED = re.compile(r"DROP (?:CONSTRAINT|TRIGGER|INDEX) (?:IF EXISTS )?(\w+)")


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


@dataclass(frozen=True, slots=True)
class Answer:
    """A part of what a question found: rows that were looked at, and (subject, detail, whether it is no fault)."""

    rows: int
    found: Sequence[tuple[str, str, bool]]


async def ask_ranges(
    database: Database, question: str, values: Mapping[str, Any], *, of: str
) -> AsyncGenerator[Answer, None]:
    """Ask a question of one range of tasks or accounts (`of`) after the other, each at a moment of its own."""
    statement: Statement = getattr(_sql, question)
    span: Statement = getattr(_sql, f"{of}_range")
    after = FIRST
    while after < LAST:
        async with _reading(database, RANGE_SESSION) as connection:
            bounds = await span.row(connection, after=after, room=RANGES[of])
            rows = bounds["rows"] if bounds else 0
            upto = bounds["upto"] if bounds and rows == RANGES[of] else LAST
            async for answer in _answers(connection, statement, {**values, "after": after, "upto": upto}):
                yield answer
        yield Answer(rows, ())
        after = upto


async def ask_once(
    database: Database, question: str, values: Mapping[str, Any]
) -> AsyncGenerator[Answer, None]:
    """Ask a question that is not about tasks one by one, and say how many rows it looked at."""
    async with _reading(database) as connection:
        async for answer in _answers(connection, getattr(_once, question), values):
            yield answer
        count: Statement = getattr(_once, f"count_{question}")
        yield Answer(int(await count.value(connection, **{name: values[name] for name in count.names})), ())


async def _answers(
    connection: Connection, statement: Statement, values: Mapping[str, Any]
) -> AsyncGenerator[Answer, None]:
    """What it finds, batch by batch: never more of it in memory."""
    found: list[tuple[str, str, bool]] = []
    given = [values[name] for name in statement.names]
    async for row in connection.cursor(statement.sql, *given, prefetch=_BATCH):
        found.append((row["subject"], row["detail"], bool(row.get("is_information", False))))
        if len(found) == _BATCH:
            yield Answer(0, found)
            found = []
    yield Answer(0, found)


@contextlib.asynccontextmanager
async def _reading(database: Database, settings: str = _SESSION) -> AsyncIterator[Connection]:
    """A read-only transaction with the session's settings for an audit."""
    async with database.connection() as connection, connection.transaction(readonly=True):
        await connection.execute(settings)
        yield connection


@functools.cache
def guards() -> tuple[str, ...]:
    """Names of every trigger, unique index and check that the migrations leave in force."""
    standing: set[str] = set()
    for path in sorted((MIGRATIONS / "versions").glob("*.sql")):
        script = path.read_text(encoding="utf-8")
        made = {name for names in _MADE.findall(script) for name in names if name}
        standing = (standing - set(_DROPPED.findall(script))) | made
    return tuple(sorted(standing))


async def asset_batches(database: Database, *, room: int = 200) -> AsyncIterator[list[AssetRow]]:
    """All pictures by id, `room` at a time; no connection is held between two batches."""
    after = FIRST
    while True:
        async with database.connection() as connection:
            rows = await _sql.asset_batch.rows(connection, after=after, room=room)
        if not rows:
            return
        yield [AssetRow(**dict(row)) for row in rows]
        after = rows[-1]["id"]


async def kept_assets(database: Database, ids: Sequence[UUID]) -> set[UUID]:
    """Those of the pictures that are not to be deleted."""
    async with database.connection() as connection:
        return {row["id"] for row in await _sql.kept_assets.rows(connection, ids=list(ids))}


async def ownerless_keys(database: Database, keys: Sequence[str]) -> list[str]:
    """Those of the keys that belong to no picture, no upload and no open task."""
    async with database.connection() as connection:
        rows = await _sql.ownerless_keys.rows(connection, keys=list(keys))
    return [row["key"] for row in rows]


async def attempts_of(connection: Connection, task_id: UUID) -> list[dict[str, Any]]:
    """Every attempt of one task, oldest first, in our inner words: for operators."""
    return [dict(row) for row in await _sql.attempts_of.rows(connection, task_id=task_id)]
