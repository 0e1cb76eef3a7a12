"""Enqueue jobs inside our own transactions; with `jobs/`, the only place that knows the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast
from uuid import UUID

import asyncpg
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder, QuerySchedulerBuilder
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.domain.settings import DBSettings, Durability
from pgqueuer.domain.types import Channel

from safelight.db.statements import Connection, statements

SUBMIT = "submit"
ARCHIVE = "archive"
UNSTAGE = "unstage"
DELIVER = "deliver"

# Everything is passed, because bare environment names such as CHANNEL would change it otherwise.
QUEUE_SETTINGS = DBSettings(
    prefix="",
    db_schema="pgqueuer",
    channel=Channel("ch_pgqueuer"),
    function="fn_pgqueuer_changed",
    statistics_table="pgqueuer_statistics",
    queue_status_type="pgqueuer_status",
    queue_table="pgqueuer",
    queue_table_log="pgqueuer_log",
    trigger="tg_pgqueuer_changed",
    schedules_table="pgqueuer_schedules",
    durability=Durability.balanced,
    widen_id=True,
)
_ENVIRONMENT = QueryBuilderEnvironment(QUEUE_SETTINGS)
_QUEUE = QueryQueueBuilder(QUEUE_SETTINGS)
_SCHEDULER = QuerySchedulerBuilder(QUEUE_SETTINGS)
_sql = statements("queue")


def queue_queries(connection: Connection) -> Queries:
    """The queue's own operations on this connection (and in its transaction)."""
    # A pooled connection behaves like the connection that it stands for.
    return Queries(
        AsyncpgDriver(cast("asyncpg.Connection", connection)), qbe=_ENVIRONMENT, qbq=_QUEUE, qbs=_SCHEDULER
    )


async def enqueue_permits(
    connection: Connection, providers: Sequence[str], *, is_sweep: bool = False
) -> None:
    """Let a worker look for due tasks of these providers; a permit too many does no harm.

    Those of a sweep carry a key, so that sweeps do not pile them up while nobody takes them.
    """
    if not providers:
        return
    await queue_queries(connection).enqueue(
        [SUBMIT] * len(providers),
        [provider.encode() for provider in providers],
        [0] * len(providers),
        dedupe_key=[f"sweep:{SUBMIT}:{provider}" if is_sweep else None for provider in providers],
        on_conflict="skip",
    )


async def enqueue_copying(connection: Connection, *, is_sweep: bool = False) -> None:
    """Let a worker look for results to copy; a permit too many does no harm."""
    await queue_queries(connection).enqueue(
        ARCHIVE, b"", 0, dedupe_key=f"sweep:{ARCHIVE}" if is_sweep else None, on_conflict="skip"
    )


async def enqueue_delivering(connection: Connection) -> None:
    """Let a worker look for deliveries that are due; a job too many does no harm."""
    await queue_queries(connection).enqueue(DELIVER, b"", 0)


async def enqueue_unstaging(connection: Connection, task_ids: Sequence[UUID]) -> None:
    """Let a worker delete the staged bytes of settled tasks."""
    if not task_ids:
        return
    await queue_queries(connection).enqueue(
        [UNSTAGE] * len(task_ids), [str(task_id).encode() for task_id in task_ids], [0] * len(task_ids)
    )


async def providers_with_due_tasks(
    connection: Connection, providers: Sequence[str], *, overdue_s: float = 0.0
) -> list[str]:
    """Those of the providers that have a waiting task due for at least `overdue_s` seconds."""
    rows = await _sql.providers_with_due_tasks.rows(
        connection, providers=list(providers), overdue_s=overdue_s
    )
    return [row["provider"] for row in rows]


async def waiting_providers(connection: Connection) -> list[str]:
    """Providers that have a waiting task, due or not."""
    return [row["provider"] for row in await _sql.waiting_providers.rows(connection)]


async def prune_queue(connection: Connection, *, keep_days: int = 2) -> None:
    """Delete the queue's own log and statistics beyond `keep_days` days: three rows a job add up."""
    await _sql.prune_log.run(connection, keep_days=keep_days)
    await _sql.prune_statistics.run(connection, keep_days=keep_days)
