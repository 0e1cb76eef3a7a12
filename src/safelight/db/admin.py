"""What operators change: their keys, findings that they resolve, and the answers to their changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from safelight.db.statements import Connection, statements
from safelight.domain import keys

_sql = statements("admin")


@dataclass(frozen=True, slots=True)
class AdminKeyRow:
    """What is kept of an operator's key in order to recognise it."""

    name: str
    secret_hash: bytes = field(repr=False)
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class ListedAdminKey:
    """A key as lists show it: nothing secret."""

    id: str
    name: str
    created_at: datetime
    revoked_at: datetime | None


async def create_admin_key(connection: Connection, name: str, pepper: bytes) -> keys.ApiKey:
    """Make a key; its whole text cannot be had a second time."""
    key = keys.new_key(keys.ADMIN_PREFIX)
    secret_hash = keys.hash_secret(pepper, key.secret)
    await _sql.insert_admin_key.run(connection, id=key.id, name=name, secret_hash=secret_hash)
    return key


async def read_admin_key(connection: Connection, key_id: str) -> AdminKeyRow | None:
    """What is kept of a key, revoked or not."""
    row = await _sql.read_admin_key.row(connection, id=key_id)
    return AdminKeyRow(row["name"], row["secret_hash"], row["revoked_at"]) if row else None


async def revoke_admin_key(connection: Connection, key_id: str) -> bool:
    """End a key; False if there is no such key."""
    return await _sql.revoke_admin_key.row(connection, id=key_id) is not None


async def list_admin_keys(connection: Connection) -> list[ListedAdminKey]:
    """Every key, oldest first."""
    return [ListedAdminKey(**row) for row in await _sql.list_admin_keys.rows(connection)]


async def lock_receipt(connection: Connection, route: str, key: str) -> None:
    """Wait until nobody else works under this idempotency key; held until the commit."""
    await _sql.lock_receipt.run(connection, route=route, key=key)


async def find_admin_receipt(connection: Connection, route: str, key: str) -> tuple[bytes, bytes] | None:
    """(fingerprint, answer) of an earlier change under this key."""
    row = await _sql.find_admin_receipt.row(connection, route=route, key=key)
    return (row["fingerprint"], row["body"]) if row else None


async def insert_admin_receipt(
    connection: Connection, route: str, key: str, *, fingerprint: bytes, body: bytes, keep_s: float
) -> None:
    """Keep an answer for `keep_s` seconds."""
    await _sql.insert_admin_receipt.run(
        connection, route=route, key=key, fingerprint=fingerprint, body=body, keep_s=keep_s
    )


async def drop_admin_receipts(connection: Connection) -> None:
    """Forget answers that have expired."""
    await _sql.drop_admin_receipts.run(connection)


@dataclass(frozen=True, slots=True)
class ResolvedFinding:
    """A finding that has been looked into; `is_new` says that this was the first time."""

    id: int
    task_id: UUID | None
    is_new: bool


async def resolve_finding(
    connection: Connection, finding_id: int, *, resolved_by: str, resolution: str
) -> ResolvedFinding | None:
    """Note that somebody has looked into a finding, and what came of it; None if there is no such finding."""
    row = await _sql.resolve_finding.row(
        connection, id=finding_id, resolved_by=resolved_by, resolution=resolution
    )
    return ResolvedFinding(**row) if row else None
