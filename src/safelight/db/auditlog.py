"""The audit log: written with the change that it tells of, and checked line by line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from safelight.db.statements import Connection, statements, storable
from safelight.domain.audit import DONE, NO_HASH, Actor, AuditLine

_sql = statements("auditlog")
_BATCH = 1_000
_FIELDS = tuple(AuditLine.__slots__)


@dataclass(frozen=True, slots=True)
class Chain:
    """What became of a check: how many lines were right, and the first that is not, if there is one.

    `head` is the hash of the last line, in hex: kept elsewhere, it proves that nothing before it was changed.
    """

    lines: int
    head: str
    broken_id: int | None = None
    fault: str = ""


async def write_line(
    connection: Connection,
    by: Actor,
    action: str,
    object_: str = "",
    *,
    account_id: UUID | None = None,
    outcome: str = DONE,
    detail: Mapping[str, Any] | None = None,
) -> AuditLine:
    """Append a line in the transaction of the change, after every other lock that it takes."""
    head = await _sql.lock_head.row(connection)
    if head is None:
        raise AssertionError("the audit log has no head")
    line = AuditLine(
        id=head["id"] + 1,
        actor=storable(by.name),
        address=storable(by.address),
        request_id=storable(by.request_id),
        action=action,
        object=storable(object_),
        account_id=account_id,
        outcome=outcome,
        detail=json.dumps(dict(detail or {}), default=str, sort_keys=True),
        created_at=head["now"],
    )
    values = {name: getattr(line, name) for name in _FIELDS}
    await _sql.append.run(connection, **values, hash=line.hash_after(head["hash"]))
    return line


async def read_line(
    connection: Connection, line_id: int, by: Actor, action: str, object_: str, *, within_s: float
) -> dict[str, Any] | None:
    """What a line says in detail; None unless it tells of just this, and was written in the last `within_s`."""
    row = await _sql.read_line.row(
        connection,
        id=line_id,
        actor=storable(by.name),
        action=action,
        object=storable(object_),
        within_s=within_s,
    )
    found: dict[str, Any] | None = json.loads(row["detail"]) if row else None
    return found


async def verify_chain(connection: Connection) -> Chain:
    """Walk the whole chain in bounded memory, while lines may be added; stops at the first that is broken."""
    head = await _sql.read_head.row(connection)
    if head is None:
        return Chain(0, "", 1, "the head of the log is gone")
    previous, last = NO_HASH, 0
    while last < head["id"]:
        rows = await _sql.lines_after.rows(connection, after=last, until=head["id"], room=_BATCH)
        for row in rows:
            if row["id"] != last + 1:
                return Chain(last, previous.hex(), last + 1, "the line is missing")
            line = AuditLine(**{name: row[name] for name in _FIELDS})
            if line.hash_after(previous) != row["hash"]:
                return Chain(last, previous.hex(), line.id, "its hash does not cover what it says")
            previous, last = row["hash"], line.id
        if not rows:
            return Chain(last, previous.hex(), last + 1, "the line is missing")
    if previous != head["hash"]:
        return Chain(last, previous.hex(), max(last, 1), "the head names another hash")
    return Chain(last, previous.hex())
