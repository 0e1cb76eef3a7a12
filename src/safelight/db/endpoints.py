"""Webhook endpoints: where an account wants to be told, and what signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from safelight.db.statements import Connection, statements

_sql = statements("endpoints")


@dataclass(frozen=True, slots=True)
class LockedEndpoint:
    """An account's endpoint under its lock."""

    id: UUID
    account_id: UUID
    url: str
    is_disabled: bool


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A secret in force, sealed; without `expires_at` until it is rotated."""

    id: UUID
    endpoint_id: UUID
    sealed: bytes = field(repr=False)
    key_id: str
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class DisabledEndpoint:
    """What became of an endpoint that was disabled."""

    account_id: UUID
    url: str
    failures: int
    disabled_at: datetime
    failing_since: datetime | None


async def count_endpoints(connection: Connection, account_id: UUID) -> int:
    """How many endpoints an account has."""
    return int(await _sql.count_endpoints.value(connection, account_id=account_id))


async def insert_endpoint(
    connection: Connection,
    endpoint_id: UUID,
    account_id: UUID,
    *,
    url: str,
    description: str,
    types: Sequence[str],
) -> None:
    """A new endpoint, enabled; the lock of its account is held, so that no event slips by."""
    await _sql.insert_endpoint.run(
        connection, id=endpoint_id, account_id=account_id, url=url, description=description, types=list(types)
    )


async def insert_secret(
    connection: Connection, secret_id: UUID, endpoint_id: UUID, *, sealed: bytes, key_id: str
) -> None:
    """A further secret, in force at once."""
    await _sql.insert_secret.run(
        connection, id=secret_id, endpoint_id=endpoint_id, sealed=sealed, key_id=key_id
    )


async def retire_secrets(connection: Connection, endpoint_id: UUID, *, overlap_s: float) -> None:
    """Let the secrets in force end after `overlap_s` seconds, or at once; those that have ended are deleted."""
    await _sql.retire_secrets.run(connection, endpoint_id=endpoint_id, overlap_s=overlap_s)
    await _sql.drop_expired_secrets.run(connection, endpoint_id=endpoint_id)


async def list_secrets(connection: Connection, endpoint_ids: Sequence[UUID]) -> list[SecretRow]:
    """Secrets in force of these endpoints, the newest first."""
    rows = await _sql.list_secrets.rows(connection, endpoint_ids=list(endpoint_ids))
    return [SecretRow(**row) for row in rows]


async def lock_endpoint(connection: Connection, account_id: UUID, endpoint_id: UUID) -> LockedEndpoint | None:
    """An account's endpoint, locked until the transaction ends."""
    row = await _sql.lock_endpoint.row(connection, id=endpoint_id, account_id=account_id)
    return LockedEndpoint(**row) if row else None


async def change_endpoint(
    connection: Connection,
    endpoint_id: UUID,
    *,
    url: str | None,
    description: str | None,
    types: Sequence[str] | None,
) -> None:
    """Change what is not None; another address starts with a clean record."""
    await _sql.change_endpoint.run(
        connection,
        id=endpoint_id,
        url=url,
        description=description,
        types=None if types is None else list(types),
    )


async def enable_endpoint(connection: Connection, endpoint_id: UUID) -> None:
    """Put an endpoint back in use, with a clean record."""
    await _sql.enable_endpoint.run(connection, id=endpoint_id)


async def disable_endpoint(
    connection: Connection, endpoint_id: UUID, *, reason: str, after_s: float
) -> DisabledEndpoint | None:
    """Take an endpoint out of use, with what was on its way; None if somebody was faster, or it works again."""
    row = await _sql.disable_endpoint.row(connection, id=endpoint_id, reason=reason, after_s=after_s)
    if row is None:
        return None
    await _sql.end_pending.run(
        connection, endpoint_id=endpoint_id, status="failed", reason="endpoint_disabled"
    )
    return DisabledEndpoint(**row)


async def delete_endpoint(connection: Connection, endpoint_id: UUID) -> None:
    """Delete an endpoint with its secrets; what was on its way to it is canceled."""
    await _sql.delete_endpoint.run(connection, id=endpoint_id)
    await _sql.drop_secrets.run(connection, endpoint_id=endpoint_id)
    await _sql.end_pending.run(
        connection, endpoint_id=endpoint_id, status="canceled", reason="endpoint_deleted"
    )


async def set_low_credits(connection: Connection, account_id: UUID, low_credits: int | None) -> None:
    """From which balance on the account wants to be told; None means never."""
    await _sql.set_low_credits.run(connection, account_id=account_id, low_credits=low_credits)
