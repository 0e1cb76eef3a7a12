"""Changes by operators happen once for one idempotency key, and are answered with the same bytes again."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from safelight.db import admin
from safelight.db.database import Database
from safelight.db.statements import Connection
from safelight.errors import RequestError
from safelight.telemetry import point

Work = Callable[[Connection], Coroutine[Any, Any, dict[str, Any]]]
"""A change in a transaction that was opened for it; what it returns is its answer."""
KEEP_KEY_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Once:
    """Under which key a change is made: `route` is where it was asked for, `fingerprint` tells bodies apart."""

    route: str
    key: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a change, as bytes of JSON."""

    body: bytes
    is_replayed: bool = False


async def replayed(connection: Connection, once: Once | None, *, is_locking: bool) -> Answered | None:
    """The answer that was given to this key.

    With `is_locking` everybody else who comes with it waits for the commit: the first lock of a transaction.

    Raises:
        RequestError: 422, the key was used for another body.
    """
    if once is None:
        return None
    if is_locking:
        await admin.lock_receipt(connection, once.route, once.key)
    found = await admin.find_admin_receipt(connection, once.route, once.key)
    if found is None:
        return None
    fingerprint, body = found
    if fingerprint != once.fingerprint:
        raise RequestError(422, "idempotency-key-reused", "This Idempotency-Key was used for another body.")
    return Answered(body, is_replayed=True)


async def answered(connection: Connection, once: Once | None, document: Mapping[str, Any]) -> Answered:
    """The answer to a change that was made just now, kept in its transaction."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    if once is not None:
        await admin.insert_admin_receipt(
            connection, once.route, once.key, fingerprint=once.fingerprint, body=body, keep_s=KEEP_KEY_S
        )
    return Answered(body)


async def change_once(database: Database, once: Once | None, work: Work) -> Answered:
    """Make a change in a transaction of its own, or answer it as it was answered before."""
    async with database.transaction() as connection:
        earlier = await replayed(connection, once, is_locking=True)
        if earlier is not None:
            return earlier
        answer = await answered(connection, once, await work(connection))
        point("before_change_commit")
    point("after_change_commit")
    return answer
