"""Figures for the operator: where tasks stand, what became of them, how long they took."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from safelight.db.statements import Connection, statements
from safelight.domain.ids import first_id

_sql = statements("figures")

Row = dict[str, Any]
Step = Literal["hour", "day"]


async def since(connection: Connection, hours: int) -> datetime:
    """The moment some hours ago, by the database's clock."""
    moment: datetime = await _sql.since.value(connection, hours=hours)
    return moment


async def states(connection: Connection, since_at: datetime) -> dict[str, int]:
    """How many of the tasks that were accepted since then stand where; states without any are left out."""
    rows = await _sql.states.rows(connection, since_id=first_id(since_at))
    return {row["state"]: row["tasks"] for row in rows}


async def endings(connection: Connection, since_at: datetime, step: Step) -> list[Row]:
    """What became of them, counted by the time when they were accepted, model, provider and reason."""
    rows = await _sql.endings.rows(connection, since_id=first_id(since_at), step=step)
    return [dict(row) for row in rows]


async def waits(connection: Connection, since_at: datetime) -> list[Row]:
    """How long customers waited for what became ready, by model: quantiles in seconds."""
    return [_with_quantiles(row) for row in await _sql.waits.rows(connection, since_id=first_id(since_at))]


async def runs(connection: Connection, since_at: datetime) -> list[Row]:
    """How long attempts that succeeded ran upstream, by model and provider key: quantiles in seconds."""
    return [_with_quantiles(row) for row in await _sql.runs.rows(connection, since_id=first_id(since_at))]


def _with_quantiles(row: Any) -> Row:
    found = dict(row)
    found["p50_s"], found["p95_s"], found["p99_s"] = found.pop("quantiles")
    return found
