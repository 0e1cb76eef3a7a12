"""Credits: locked accounts, settlements and entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from safelight.db.statements import Connection, statements
from safelight.db.tasks import as_json
from safelight.errors import LedgerError

_sql = statements("ledger")


@dataclass(slots=True)
class LockedAccount:
    """An account under its lock; a batch counts down what it spends here before it writes."""

    available: int
    open_tasks: int
    now: datetime


async def lock_accounts(connection: Connection, ids: Iterable[UUID]) -> dict[UUID, LockedAccount]:
    """Lock accounts by id, before any of their tasks."""
    rows = await _sql.lock_accounts.rows(connection, ids=list(ids))
    return {row["id"]: LockedAccount(row["available"], row["open_tasks"], row["now"]) for row in rows}


async def settle(connection: Connection, items: Sequence[Mapping[str, Any]]) -> dict[UUID, bool]:
    """T5 for tasks whose accounts and rows are locked: those really settled, and whether a webhook tells of it."""
    rows = await _sql.settle.rows(connection, items=as_json(items))
    return {row["task_id"]: row["is_told"] for row in rows}


async def grant(connection: Connection, account_id: UUID, amount: int, *, note: str = "") -> None:
    """Add credits (or with a negative amount take some back) as one entry.

    Raises:
        LedgerError: the amount is 0, or more would be taken than is available.
    """
    if amount == 0:
        raise LedgerError("a grant needs an amount other than 0")
    try:
        await _sql.insert_entry.run(
            connection,
            account_id=account_id,
            kind="grant" if amount > 0 else "adjust",
            amount=amount,
            note=note,
        )
    except asyncpg.CheckViolationError:
        raise LedgerError("more credits than are available cannot be taken back") from None
    except asyncpg.ForeignKeyViolationError:
        raise LedgerError("there is no such account") from None
