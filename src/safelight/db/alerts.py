"""What the operator has not been told yet: rows that the database writes with each review and finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from safelight.db.statements import Connection, statements

_sql = statements("alerts")


@dataclass(frozen=True, slots=True)
class AlertRow:
    """A task that came to review, or a finding; `told_at` is the moment at which it is told."""

    id: int
    kind: str
    reason: str
    provider: str
    task_id: UUID | None
    created_at: datetime
    told_at: datetime


async def claim_alerts(connection: Connection, *, gap_s: float, room: int) -> list[AlertRow]:
    """Untold alerts, oldest first; none within `gap_s` seconds of the last time, whichever process that was."""
    return [AlertRow(**row) for row in await _sql.claim_alerts.rows(connection, gap_s=gap_s, room=room)]


async def drop_told(connection: Connection, ids: Sequence[int]) -> None:
    """Forget alerts that have arrived."""
    await _sql.drop_told.run(connection, ids=list(ids))


async def drop_alerts(connection: Connection, *, keep_s: float) -> None:
    """Forget alerts older than `keep_s` seconds, told or not."""
    await _sql.drop_alerts.run(connection, keep_s=keep_s)
