"""Read-only questions for the doors; every one of them names the account that asks."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from safelight.db import batches
from safelight.db.batches import BatchItem, BatchView
from safelight.db.statements import Connection, statements
from safelight.db.uploads import UploadRow, row_of
from safelight.domain.task import State

_sql = statements("views")

UNREACHABLE: tuple[type[Exception], ...] = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
)
"""Errors that mean the database is away for a while: asking again later makes sense."""


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task with its settlement (None while open) and assets (dictionaries in order)."""

    id: UUID
    account_id: UUID
    state: State
    version: int
    stage: int
    model: str
    operation: str
    prompt: str
    n: int
    percent: int | None
    position: int | None
    failure_class: str | None
    failure_code: str | None
    review_reason: str | None
    held: int
    captured: int | None
    released: int | None
    metadata: dict[str, Any]
    assets: list[dict[str, Any]]
    created_at: datetime
    finished_at: datetime | None
    erased_at: datetime | None


@dataclass(frozen=True, slots=True)
class EntryView:
    """One ledger line; `note` is the operator's."""

    id: int
    kind: str
    task_id: UUID | None
    available_delta: int
    held_delta: int
    note: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AssetView:
    """Where an asset's bytes lie, and what they are."""

    id: UUID
    account_id: UUID
    store_key: str
    content_type: str
    size_bytes: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class KeyHealth:
    """How a provider key stands. `failures` are closings of its gate in a row, `faults` failed calls in a row;
    `calls` are submits in flight, `tasks` and `images` what is upstream.
    """

    name: str
    is_closed: bool
    closed_until: datetime | None
    reason: str
    failures: int
    faults: int
    calls: int
    tasks: int
    images: int
    waiting: int


@dataclass(frozen=True, slots=True)
class EventView:
    """One move of a task, in our inner words: for operators."""

    version: int
    source: State | None
    target: State
    attempt: int
    cause: str
    detail: str
    created_at: datetime


async def task_view(connection: Connection, account_id: UUID, task_id: UUID) -> TaskView | None:
    """One task of the account."""
    found = await _tasks_of(connection, account_id, [task_id])
    return found[0] if found else None


async def task_list(
    connection: Connection,
    account_id: UUID,
    *,
    before: UUID | None = None,
    limit: int = 50,
    states: Collection[State] | None = None,
    since: datetime | None = None,
) -> list[TaskView]:
    """At most `limit` tasks of the account, newest first, older than `before`, in any of `states`.

    With `since` those alone that were made or have ended since then: what a customer sees of them has changed.
    """
    words = None if states is None else sorted(states)
    asked = {"account_id": account_id, "before": before, "states": words, "room": limit}
    if since is None:
        rows = await _sql.list_tasks.rows(connection, **asked)
    else:
        rows = await _sql.list_changed_tasks.rows(connection, **asked, since=since)
    return await _tasks_of(connection, account_id, [row["id"] for row in rows])


async def batch(connection: Connection, account_id: UUID, batch_id: UUID) -> BatchView | None:
    """One batch of the account, with what became of its items."""
    return await batches.read_batch(connection, account_id, batch_id)


async def batch_list(
    connection: Connection, account_id: UUID, *, before: UUID | None = None, limit: int = 50
) -> list[BatchView]:
    """At most `limit` batches of the account, newest first, older than `before`."""
    return await batches.list_batches(connection, account_id, before=before, limit=limit)


async def batch_items(
    connection: Connection, account_id: UUID, batch_id: UUID, *, after: int, room: int
) -> list[tuple[BatchItem, TaskView | None]]:
    """At most `room` items of the account's batch in order, after a position, each with its task if it has one."""
    items = await batches.list_items(connection, account_id, batch_id, after=after, room=room)
    ids = [item.task_id for item in items if item.task_id]
    found = {task.id: task for task in await _tasks_of(connection, account_id, ids)}
    return [(item, found.get(item.task_id) if item.task_id else None) for item in items]


async def balance(connection: Connection, account_id: UUID) -> tuple[int, int] | None:
    """(available, held) credits."""
    row = await _sql.read_balance.row(connection, account_id=account_id)
    return (row["available"], row["held"]) if row else None


async def entries(
    connection: Connection, account_id: UUID, *, before: int | None = None, limit: int = 50
) -> list[EntryView]:
    """At most `limit` ledger lines of the account, newest first, older than `before`."""
    rows = await _sql.list_entries.rows(connection, account_id=account_id, before=before, room=limit)
    return [EntryView(**row) for row in rows]


async def asset(connection: Connection, account_id: UUID, asset_id: UUID) -> AssetView | None:
    """One asset of the account."""
    row = await _sql.read_asset.row(connection, account_id=account_id, id=asset_id)
    return AssetView(**row) if row else None


async def upload(connection: Connection, account_id: UUID, upload_id: UUID) -> UploadRow | None:
    """One upload of the account."""
    row = await _sql.read_upload.row(connection, account_id=account_id, id=upload_id)
    return row_of(row) if row else None


async def ended(connection: Connection, task_ids: Collection[UUID]) -> set[UUID]:
    """Which of these tasks have ended; whose they are is asked when one is read."""
    return {row["id"] for row in await _sql.ended_tasks.rows(connection, ids=list(task_ids))}


async def open_tasks_by_state(connection: Connection) -> dict[State, int]:
    """How many tasks stand in each open state; states without any are left out."""
    return {State(row["state"]): row["tasks"] for row in await _sql.open_tasks_by_state.rows(connection)}


async def provider_health(connection: Connection, names: Sequence[str]) -> list[KeyHealth]:
    """How these provider keys stand, in the order given."""
    return [KeyHealth(**row) for row in await _sql.provider_health.rows(connection, names=list(names))]


async def gates(connection: Connection) -> list[tuple[str, bool, int]]:
    """(name, whether it is closed, failures in a row) of every gate that was ever used."""
    return [(row["name"], row["is_closed"], row["failures"]) for row in await _sql.gates.rows(connection)]


async def timeline(connection: Connection, account_id: UUID | None, task_id: UUID) -> list[EventView]:
    """Every move of a task in order; an operator passes no account."""
    rows = await _sql.list_events.rows(connection, account_id=account_id, task_id=task_id)
    return [
        EventView(
            version=row["version"],
            source=State(row["source"]) if row["source"] else None,
            target=State(row["target"]),
            attempt=row["attempt"],
            cause=row["cause"],
            detail=row["detail"],
            created_at=row["created_at"],
        )
        for row in rows
    ]


async def _tasks_of(connection: Connection, account_id: UUID, ids: Sequence[UUID]) -> list[TaskView]:
    """Those of the tasks that are the account's, newest first."""
    rows = await _sql.read_tasks.rows(connection, account_id=account_id, ids=list(ids))
    return [_task_of(row) for row in rows]


def _task_of(row: asyncpg.Record) -> TaskView:
    values = dict(row)
    values["state"] = State(values["state"])
    values["metadata"] = json.loads(values["metadata"])
    values["assets"] = json.loads(values["assets"] or "[]")
    return TaskView(**values)
