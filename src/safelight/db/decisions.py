"""Decisions of people: rows that say who decided what about which version of a task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from safelight.db.statements import Connection, statements
from safelight.db.tasks import outputs_of
from safelight.domain.provider import Output

_sql = statements("decisions")


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """The record of a decision."""

    id: int
    created_at: datetime


async def insert_decision(
    connection: Connection, task_id: UUID, decision: str, *, reason_code: str, note: str, decided_by: str
) -> DecisionRow:
    """Record what was decided about a locked task in review."""
    row = await _sql.insert_decision.row(
        connection,
        task_id=task_id,
        decision=decision,
        reason_code=reason_code,
        note=note,
        decided_by=decided_by,
    )
    if row is None:
        raise AssertionError(f"task {task_id} is not in review")
    return DecisionRow(**row)


async def decision_about(connection: Connection, task_id: UUID, version: int) -> tuple[str, str] | None:
    """(decision, who) about this version of the task."""
    row = await _sql.decision_about.row(connection, task_id=task_id, version=version)
    return (row["decision"], row["decided_by"]) if row else None


async def look_now(connection: Connection, task_id: UUID) -> None:
    """Bring the next look of a task in review forward to now, and its deadline as far away as at its start."""
    await _sql.look_now.run(connection, task_id=task_id)


async def is_check_asked(connection: Connection, task_id: UUID, version: int) -> bool:
    """Whether a person decided to look again at this version of the task."""
    return bool(await _sql.is_check_asked.value(connection, task_id=task_id, version=version))


async def renew_start(connection: Connection, task_id: UUID, *, start_in_s: float) -> None:
    """Give a task `start_in_s` seconds to start."""
    await _sql.renew_start.run(connection, task_id=task_id, start_in_s=start_in_s)


async def renew_copies(connection: Connection, task_id: UUID) -> None:
    """Forget how often results were copied and decoded."""
    await _sql.renew_copies.run(connection, task_id=task_id)


async def orphan_outputs(connection: Connection, task_id: UUID) -> list[Output]:
    """Pictures that earlier attempts delivered too late, those of the latest first."""
    rows = await _sql.orphan_outputs.rows(connection, task_id=task_id)
    return [output for row in rows for output in outputs_of(row["outputs"] or "[]")]


async def providers_to_look_at(connection: Connection) -> list[str]:
    """Every provider key that has a task to look at, configured or not."""
    return [row["provider"] for row in await _sql.providers_to_look_at.rows(connection)]
