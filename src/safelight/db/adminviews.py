"""Read-only questions of the operator's door: over all accounts, and in our inner words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import asyncpg

from safelight.db.statements import Connection, statements
from safelight.db.views import AssetView, timeline

_sql = statements("adminviews")
_JSON = ("options", "metadata", "outputs", "detail")
NOTICES = 200
"""Callbacks that are shown with a task."""

Row = dict[str, Any]


async def reviews_by_reason(connection: Connection) -> Mapping[str, int]:
    """How many tasks wait for a person, by reason; reasons without any are left out."""
    return {row["review_reason"]: row["tasks"] for row in await _sql.reviews_by_reason.rows(connection)}


async def reviews(
    connection: Connection,
    *,
    after: UUID | None = None,
    limit: int = 50,
    reason: str | None = None,
    provider: str | None = None,
) -> list[Row]:
    """At most `limit` tasks in review, oldest first."""
    rows = await _sql.list_reviews.rows(connection, after=after, room=limit, reason=reason, provider=provider)
    return _plain(rows)


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks are wanted; None is any. Stuck ones are open, and several looks in a row brought nothing new."""

    state: str | None = None
    account_id: UUID | None = None
    model: str | None = None
    provider: str | None = None
    is_open: bool = False
    is_stuck: bool = False


async def tasks(
    connection: Connection, wanted: TaskFilter, *, before: UUID | None = None, limit: int = 50
) -> list[Row]:
    """At most `limit` tasks of all accounts, newest first."""
    return _plain(await _sql.list_tasks.rows(connection, before=before, room=limit, **asdict(wanted)))


async def whole_task(connection: Connection, task_id: UUID) -> Row | None:
    """A task with everything that is known of it; None if there is no such task."""
    row = await _sql.read_whole_task.row(connection, id=task_id)
    if row is None:
        return None
    (task,) = _plain([row])
    events = await timeline(connection, None, task_id)
    return {
        **task,
        "attempts": _plain(await _sql.attempts_of_task.rows(connection, id=task_id)),
        "events": [{name: getattr(event, name) for name in type(event).__slots__} for event in events],
        "notices": _plain(await _sql.notices_of_task.rows(connection, id=task_id, room=NOTICES)),
        "entries": _plain(await _sql.entries_of_task.rows(connection, id=task_id)),
        "assets": _plain(await _sql.assets_of_task.rows(connection, id=task_id)),
        "inputs": _plain(await _sql.inputs_of_task.rows(connection, id=task_id)),
        "decisions": _plain(await _sql.decisions_of_task.rows(connection, id=task_id)),
        "findings": _plain(await _sql.findings_of_task.rows(connection, id=task_id)),
        "losses": _plain(await _sql.losses_of_task.rows(connection, id=task_id)),
    }


@dataclass(frozen=True, slots=True)
class TaskPicture:
    """A picture of a task that can be shown: one that was delivered, or an input."""

    stored: AssetView
    is_input: bool


async def pictures(connection: Connection, task_id: UUID) -> list[TaskPicture]:
    """The pictures of a task that can still be shown: nothing that is doomed, and nothing that is not settled."""
    found = [dict(row) for row in await _sql.pictures_of_task.rows(connection, id=task_id)]
    return [TaskPicture(is_input=row.pop("is_input"), stored=AssetView(**row)) for row in found]


async def findings(
    connection: Connection,
    *,
    before: int | None = None,
    limit: int = 50,
    kind: str | None = None,
    provider: str | None = None,
    is_open: bool = False,
) -> list[Row]:
    """At most `limit` findings, newest first; with `is_open` those alone that nobody has resolved."""
    statement = _sql.list_open_findings if is_open else _sql.list_findings
    return _plain(await statement.rows(connection, before=before, room=limit, kind=kind, provider=provider))


async def notices(
    connection: Connection,
    *,
    before: int | None = None,
    limit: int = 50,
    provider: str | None = None,
    verdict: str | None = None,
) -> list[Row]:
    """At most `limit` callbacks with their verdicts, newest first; their bodies stay inside."""
    if provider is None:
        rows = await _sql.list_notices.rows(connection, before=before, room=limit, verdict=verdict)
    else:
        rows = await _sql.list_notices_of_provider.rows(
            connection, before=before, room=limit, verdict=verdict, provider=provider
        )
    return _plain(rows)


async def audit_lines(
    connection: Connection, *, before: int | None = None, limit: int = 50, object_: str | None = None
) -> list[Row]:
    """At most `limit` lines of the audit log, newest first."""
    if object_ is None:
        return _plain(await _sql.list_audit.rows(connection, before=before, room=limit))
    return _plain(await _sql.list_audit_of.rows(connection, before=before, room=limit, object=object_))


async def accounts(connection: Connection, *, after: UUID | None = None, limit: int = 50) -> list[Row]:
    """At most `limit` accounts with their balances, oldest first."""
    return _plain(await _sql.list_accounts_after.rows(connection, after=after, room=limit))


async def account(connection: Connection, account_id: UUID) -> Row | None:
    """An account with its balance, and how many endpoints and keys it has; None if there is no such account."""
    row = await _sql.read_account.row(connection, id=account_id)
    return dict(row) if row else None


def _plain(rows: Sequence[asyncpg.Record]) -> list[Row]:
    found = [dict(row) for row in rows]
    for row in found:
        for name in _JSON:
            if name in row:
                row[name] = _unsigned(json.loads(row[name]))
    return found


def _unsigned(value: Any) -> Any:
    """Addresses of results without their queries: a signature in one opens the picture to whoever reads it."""
    if isinstance(value, list):
        return [_unsigned(one) for one in value]
    if isinstance(value, dict):
        return {name: _shortened(one) if name == "url" else _unsigned(one) for name, one in value.items()}
    return value


def _shortened(url: Any) -> Any:
    address, mark, _ = str(url).partition("?")
    return f"{address}?…" if mark else address
