"""Read-only questions about webhooks: an account's own for its owner, all of them for operators."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from safelight.db.statements import Connection, statements

_sql = statements("webhookviews")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EndpointView:
    """An endpoint as its owner sees it; `secrets` are the times of those in force, never what they are."""

    id: UUID
    url: str
    description: str
    types: list[str]
    created_at: datetime
    disabled_at: datetime | None
    disabled_reason: str
    failures: int
    failing_since: datetime | None
    succeeded_at: datetime | None
    pending: int
    secrets: list[Row]


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """A delivery with the event's body and every try (dictionaries in order); `due_at` while it is pending."""

    id: int
    event_id: UUID
    status: str
    reason: str
    created_at: datetime
    ended_at: datetime | None
    due_at: datetime | None
    type: str
    task_id: UUID | None
    body: bytes
    tries: list[Row]


async def endpoints(
    connection: Connection, account_id: UUID, endpoint_id: UUID | None = None
) -> list[EndpointView]:
    """The account's endpoints, oldest first, or the one that is named."""
    rows = await _sql.list_endpoints.rows(connection, account_id=account_id, id=endpoint_id)
    return [EndpointView(**{**row, "secrets": json.loads(row["secrets"])}) for row in rows]


async def deliveries(
    connection: Connection,
    account_id: UUID,
    endpoint_id: UUID,
    *,
    before: int | None = None,
    limit: int = 50,
    status: str | None = None,
    delivery_id: int | None = None,
) -> list[DeliveryView]:
    """At most `limit` deliveries of an account's endpoint, newest first, or the one that is named."""
    rows = await _sql.list_deliveries.rows(
        connection,
        account_id=account_id,
        endpoint_id=endpoint_id,
        before=before,
        room=limit,
        status=status,
        id=delivery_id,
    )
    return [DeliveryView(**{**row, "tries": json.loads(row["tries"])}) for row in rows]


async def low_credits(connection: Connection, account_id: UUID) -> int | None:
    """From which balance on the account wants to be told."""
    found: int | None = await _sql.read_low_credits.value(connection, account_id=account_id)
    return found


async def all_endpoints(
    connection: Connection, *, before: UUID | None = None, limit: int = 50, account_id: UUID | None = None
) -> list[Row]:
    """At most `limit` endpoints of all accounts, or of one, newest first; queries of addresses stay inside."""
    rows = await _sql.list_all_endpoints.rows(connection, before=before, room=limit, account_id=account_id)
    return [{**row, "url": _without_query(row)} for row in rows]


async def all_deliveries(
    connection: Connection,
    *,
    before: int | None = None,
    limit: int = 50,
    endpoint_id: UUID | None = None,
    status: str | None = None,
) -> list[Row]:
    """At most `limit` deliveries of all endpoints, or of one, newest first, with how their last try went."""
    rows = await _sql.list_all_deliveries.rows(
        connection, before=before, room=limit, endpoint_id=endpoint_id, status=status
    )
    return [dict(row) for row in rows]


def _without_query(row: asyncpg.Record) -> str:
    """Customers put secrets of theirs there."""
    address, mark, _ = row["url"].partition("?")
    return f"{address}?…" if mark else address
