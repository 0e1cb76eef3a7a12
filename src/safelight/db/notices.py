"""What callbacks are worth: counted, compared with polling, and missed when they stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from safelight.db.statements import Connection, statements

_sql = statements("notices")


async def count_callbacks(connection: Connection, counts: Mapping[tuple[str, str], int]) -> None:
    """Add to today's counts, each by (provider, kind)."""
    ordered = sorted(counts.items())  # one order of locks for all processes
    await _sql.count_callbacks.run(
        connection,
        providers=[provider for (provider, _), _ in ordered],
        kinds=[kind for (_, kind), _ in ordered],
        counts=[number for _, number in ordered],
    )


@dataclass(frozen=True, slots=True)
class Finished:
    """Attempts that ended upstream, and what callbacks had to do with it. Delays and gains are seconds.

    `compared` had another way than the callback notice the end first or alone, and have a callback that told of
    it: a delay below zero means that the callback was sooner; those are the `sooner` ones.
    """

    finished: int
    never_came: int
    by_callback: int
    by_reconciliation: int
    compared: int
    median_delay_s: float | None
    p95_delay_s: float | None
    sooner: int
    median_gain_s: float | None
    p95_gain_s: float | None


async def finished_attempts(
    connection: Connection, providers: Sequence[str], *, days: int, grace_s: float
) -> Finished:
    """The attempts of the last days; those that ended within `grace_s` may still hear their callback."""
    row = await _sql.finished_attempts.row(connection, providers=list(providers), days=days, grace_s=grace_s)
    assert row is not None  # noqa: S101 - an aggregate always has its row
    return Finished(**row)


async def verdicts(
    connection: Connection, providers: Sequence[str], *, days: int
) -> dict[str, tuple[int, int]]:
    """How many callbacks were kept with each verdict, and how many of those came early."""
    rows = await _sql.verdicts.rows(connection, providers=list(providers), days=days)
    return {row["verdict"]: (row["callbacks"], row["early"]) for row in rows}


async def counts(connection: Connection, providers: Sequence[str], *, days: int) -> dict[str, int]:
    """How many callbacks were only counted, by kind."""
    rows = await _sql.counts.rows(connection, providers=list(providers), days=days)
    return {row["kind"]: row["callbacks"] for row in rows}


@dataclass(frozen=True, slots=True)
class Share:
    """Of the latest finished attempts of a provider, and of those before them, how many a callback told of."""

    provider: str
    recent: int
    recent_told: int
    earlier: int
    earlier_told: int


async def shares(
    connection: Connection, providers: Sequence[str], *, recent: int, most: int, days: int, grace_s: float
) -> list[Share]:
    """The shares of several providers, over their last `most` finished attempts of the last days."""
    rows = await _sql.shares.rows(
        connection, providers=list(providers), recent=recent, most=most, days=days, grace_s=grace_s
    )
    return [Share(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class Alarm:
    """A provider's callbacks have stopped coming; the shares are those of the moment when that was noticed."""

    provider: str
    expected: float
    received: float
    raised_at: datetime


async def alarms(connection: Connection) -> dict[str, Alarm]:
    """The alarms that last, by provider."""
    return {row["provider"]: Alarm(**row) for row in await _sql.alarms.rows(connection)}


async def raise_alarm(connection: Connection, provider: str, *, expected: float, received: float) -> bool:
    """Raise an alarm; False if another process did."""
    raised = await _sql.raise_alarm.value(connection, provider=provider, expected=expected, received=received)
    return raised is not None


async def clear_alarm(connection: Connection, provider: str) -> bool:
    """Clear an alarm; False if another process did."""
    return await _sql.clear_alarm.value(connection, provider=provider) is not None
