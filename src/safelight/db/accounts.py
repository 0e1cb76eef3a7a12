"""Accounts and their API keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import asyncpg

from safelight.db.statements import Connection, statements
from safelight.domain import keys
from safelight.domain.ids import new_id
from safelight.errors import RequestError

FIRST_ACCOUNT = "default"
"""Made at first start; the commands use it where none is named."""

_sql = statements("accounts")


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account with its balance."""

    id: UUID
    name: str
    available: int
    held: int
    open_tasks: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KeyRow:
    """What is kept of a key in order to recognise it."""

    account_id: UUID
    secret_hash: bytes = field(repr=False)
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key as lists show it: nothing secret."""

    id: str
    account_id: UUID
    account_name: str
    name: str
    created_at: datetime
    revoked_at: datetime | None


async def create_account(connection: Connection, name: str) -> UUID:
    """Make an empty account.

    Raises:
        RequestError: 409, there is an account of that name; 422, the name is empty.
    """
    account_id = new_id()
    try:
        await _sql.insert_account.run(connection, id=account_id, name=name)
    except asyncpg.UniqueViolationError:
        raise RequestError(409, "account-exists", "There is an account of that name.") from None
    except asyncpg.CheckViolationError:
        raise RequestError(422, "validation-failed", "An account needs a name.") from None
    return account_id


async def find_account(connection: Connection, name: str) -> UUID | None:
    """The account of that name."""
    row = await _sql.find_account.row(connection, name=name)
    return row["id"] if row else None


async def list_accounts(connection: Connection) -> list[AccountRow]:
    """Every account, oldest first."""
    return [AccountRow(**row) for row in await _sql.list_accounts.rows(connection)]


async def create_key(connection: Connection, account_id: UUID, name: str, pepper: bytes) -> str:
    """Make a key and return its whole text, which cannot be had a second time.

    Raises:
        RequestError: 404, there is no such account.
    """
    key = keys.new_key()
    secret_hash = keys.hash_secret(pepper, key.secret)
    try:
        await _sql.insert_key.run(
            connection, id=key.id, account_id=account_id, name=name, secret_hash=secret_hash
        )
    except asyncpg.ForeignKeyViolationError:
        raise RequestError(404, "not-found", "There is no such account.") from None
    return key.text


async def read_key(connection: Connection, key_id: str) -> KeyRow | None:
    """What is kept of a key, revoked or not."""
    row = await _sql.read_key.row(connection, id=key_id)
    return KeyRow(row["account_id"], row["secret_hash"], row["revoked_at"]) if row else None


async def revoke_key(connection: Connection, key_id: str) -> bool:
    """End a key; every door refuses it within 5 s. False if there is no such key."""
    return await _sql.revoke_key.row(connection, id=key_id) is not None


async def ended_keys(connection: Connection, key_ids: Sequence[str]) -> set[str]:
    """Those of the keys that were revoked, or are not there."""
    rows = await _sql.ended_keys.rows(connection, ids=list(key_ids))
    return {row["id"] for row in rows}


async def list_keys(connection: Connection, account_id: UUID | None = None) -> list[ListedKey]:
    """Keys of one account, or of all, oldest first."""
    return [ListedKey(**row) for row in await _sql.list_keys.rows(connection, account_id=account_id)]
