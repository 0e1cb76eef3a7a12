"""The inbox: callbacks as they came, in order, each with its verdict."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from safelight.db.statements import Connection, statements
from safelight.db.tasks import as_json
from safelight.domain.news import Verdict
from safelight.domain.task import State

MAX_BODIES_PER_ATTEMPT = 50
"""Bodies kept per attempt beside the applied ones; a provider that repeats itself fills no disk."""
MAX_UNMATCHED = 10_000
"""Callbacks for ids that we do not know, kept for a day."""

_sql = statements("inbox")


@dataclass(frozen=True, slots=True)
class CallbackRow:
    """One verified callback with what became of it.

    `is_early` says that it came before its submit's answer; `would_be` is where it would have taken the task.
    """

    provider: str
    task_id: UUID | None
    attempt: int | None
    provider_ref: str | None
    upstream_status: str
    verdict: Verdict
    body: bytes
    is_early: bool = False
    would_be: State | None = None


async def applied_before(
    connection: Connection, notices: Sequence[tuple[UUID, int, str]]
) -> set[tuple[UUID, int, str]]:
    """Which (task, attempt, upstream status) a callback applied already."""
    rows = await _sql.applied_before.rows(
        connection,
        task_ids=[task_id for task_id, _, _ in notices],
        attempts=[attempt for _, attempt, _ in notices],
        upstream_statuses=[status for _, _, status in notices],
    )
    return {(row["task_id"], row["attempt"], row["upstream_status"]) for row in rows}


async def observed_before(
    connection: Connection, notices: Sequence[tuple[UUID, int]]
) -> list[tuple[UUID, int, str, State]]:
    """(task, attempt, upstream status, state that it would have led to) of observed callbacks, in order."""
    rows = await _sql.observed_before.rows(
        connection,
        task_ids=[task_id for task_id, _ in notices],
        attempts=[attempt for _, attempt in notices],
    )
    return [(row["task_id"], row["attempt"], row["upstream_status"], State(row["would_be"])) for row in rows]


async def insert_callbacks(connection: Connection, rows: Sequence[CallbackRow]) -> None:
    """Keep callbacks, in the transaction of their effect."""
    items = [
        {
            "provider": row.provider,
            "task_id": row.task_id,
            "attempt": row.attempt,
            "provider_ref": row.provider_ref,
            "upstream_status": row.upstream_status[:200],
            "verdict": row.verdict.value,
            "body": base64.b64encode(row.body).decode(),
            "is_early": row.is_early,
            "would_be": row.would_be,
        }
        for row in rows
    ]
    await _sql.insert_callbacks.run(connection, items=as_json(items), cap=MAX_BODIES_PER_ATTEMPT)


async def unmatched(connection: Connection, wanted: Sequence[tuple[str, str]]) -> list[list[bytes]]:
    """Per (provider, id): the bodies of callbacks that came before that id was known."""
    rows = await _sql.unmatched.rows(
        connection, providers=[provider for provider, _ in wanted], refs=[ref for _, ref in wanted]
    )
    found: list[list[bytes]] = [[] for _ in wanted]
    for row in rows:
        found[row["place"] - 1].append(row["body"])
    return found


async def has_room_for_unmatched(connection: Connection) -> bool:
    """Whether another unknown callback may be kept."""
    return int(await _sql.count_unmatched.value(connection)) < MAX_UNMATCHED


async def drop_unmatched(connection: Connection) -> None:
    """Forget unknown callbacks after a day."""
    await _sql.drop_unmatched.run(connection)
