"""Shared gates: a provider key that told us to wait, a breaker that is open, and the quota of looks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from safelight.db.statements import Connection, statements

STORAGE = "storage"
"""The gate of our own storage: while it is closed nothing is dispatched anywhere."""

_sql = statements("gates")


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate under its lock; `now` is the clock. After failures it lets one task through at a time, as a probe."""

    is_closed: bool
    failures: int
    faults: int
    reason: str
    now: datetime


@dataclass(frozen=True, slots=True)
class GateState:
    """A gate that is closed, for `closed_for_s` seconds more, or that has failures in a row behind it."""

    closed_for_s: float
    failures: int
    reason: str


async def lock_gate(connection: Connection, name: str) -> Gate:
    """Lock a gate, making it on first use."""
    row = await _sql.lock_gate.row(connection, name=name)
    while row is None:
        await _sql.ensure_gate.run(connection, name=name)
        row = await _sql.lock_gate.row(connection, name=name)
    return Gate(**row)


async def close_gate(
    connection: Connection, name: str, *, for_s: float, reason: str, is_failure: bool
) -> None:
    """Close a gate for `for_s` seconds; a failure also counts towards the breaker."""
    await _sql.close_gate.run(
        connection, name=name, for_s=for_s, reason=reason, failures=1 if is_failure else 0
    )


async def open_gate(connection: Connection, name: str) -> bool:
    """A success: failures and faults are forgotten. Whether this opened a breaker: faults alone had closed nothing."""
    return bool(await _sql.open_gate.value(connection, name=name))


async def count_fault(connection: Connection, name: str) -> tuple[int, int]:
    """One more call that failed upstream; (faults in a row, closings in a row before)."""
    row = await _sql.count_fault.row(connection, name=name)
    return (row["faults"], row["failures"]) if row else (0, 0)


async def gate_failures(connection: Connection, name: str) -> int:
    """Failures in a row behind this gate."""
    return int(await _sql.gate_failures.value(connection, name=name) or 0)


async def closed_gates(connection: Connection) -> list[tuple[str, str]]:
    """(name, reason) of every closed gate."""
    return [(row["name"], row["reason"]) for row in await _sql.closed_gates.rows(connection)]


async def gate_states(connection: Connection) -> dict[str, GateState]:
    """Every gate that is not simply open."""
    return {
        row["name"]: GateState(row["closed_for_s"], row["failures"], row["reason"])
        for row in await _sql.gate_states.rows(connection)
    }


async def looks_free(connection: Connection, name: str, *, per_s: float) -> int:
    """How many looks the quota of `per_s` allows now, over all workers; the gate stays locked."""
    await _sql.ensure_gate.run(connection, name=name)
    return int(await _sql.looks_free.value(connection, name=name, per_s=per_s) or 0)


async def take_looks(connection: Connection, name: str, count: int, *, per_s: float) -> None:
    """Use up so many looks of the quota; its gate must be locked."""
    await _sql.take_looks.run(connection, name=name, count=count, per_s=per_s)
