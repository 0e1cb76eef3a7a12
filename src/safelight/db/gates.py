"""Shared gates: a provider that told us to wait, or a breaker that is open."""

from __future__ import annotations

from dataclasses import dataclass

from safelight.db.statements import Connection, statements

STORAGE = "storage"
"""The gate of our own storage: while it is closed nothing is dispatched anywhere."""

_sql = statements("gates")


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate under its lock. After failures it lets one task through at a time, as a probe."""

    is_closed: bool
    failures: int
    reason: str


async def lock_gate(connection: Connection, name: str) -> Gate:
    """Lock a gate, making it on first use."""
    row = await _sql.lock_gate.row(connection, name=name)
    if row is None:
        await _sql.ensure_gate.run(connection, name=name)
        row = await _sql.lock_gate.row(connection, name=name)
    if row is None:
        return Gate(is_closed=False, failures=0, reason="")
    return Gate(row["is_closed"], row["failures"], row["reason"])


async def close_gate(
    connection: Connection, name: str, *, for_s: float, reason: str, is_failure: bool
) -> None:
    """Close a gate for `for_s` seconds; a failure also counts towards the breaker."""
    await _sql.close_gate.run(
        connection, name=name, for_s=for_s, reason=reason, failures=1 if is_failure else 0
    )


async def open_gate(connection: Connection, name: str) -> None:
    """A success: the failures are forgotten."""
    await _sql.open_gate.run(connection, name=name)


async def gate_failures(connection: Connection, name: str) -> int:
    """Failures in a row behind this gate."""
    return int(await _sql.gate_failures.value(connection, name=name) or 0)


async def closed_gates(connection: Connection) -> list[tuple[str, str]]:
    """(name, reason) of every closed gate."""
    return [(row["name"], row["reason"]) for row in await _sql.closed_gates.rows(connection)]
