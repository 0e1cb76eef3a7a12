"""Reconciliation runs: which are due, how far each has come, and the attempts behind a provider's records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import UUID

import asyncpg

from safelight.db.statements import Connection, statements
from safelight.db.tasks import as_json
from safelight.domain.news import AttemptOutcome
from safelight.domain.provider import AttemptRef, Origin
from safelight.domain.recognition import Owner
from safelight.domain.reconciling import Ours
from safelight.domain.task import State

_sql = statements("reconciliation")

FIRST_ID = UUID(int=0)
Found = Mapping[str, Any]
"""A finding as the report keeps it."""


@dataclass(slots=True)
class Run:
    """One run over a provider's day; without an id it is a preview, of which nothing is kept.

    `cursor` is where the provider's list, or the list of our attempts, goes on. `now` is the clock of the claim.
    """

    id: int | None
    provider: str
    day: date
    until_at: datetime
    mode: str
    stage: str
    now: datetime
    cursor: str | None = None
    version: int = 1
    tries: int = 0
    is_complete: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Found] = field(default_factory=list)
    note: str = ""
    wake_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


_COLUMNS = tuple(name for name in Run.__slots__ if name not in ("counts", "findings"))


def _run_of(row: asyncpg.Record) -> Run:
    values = {name: row[name] for name in _COLUMNS}
    return Run(**values, counts=Counter(json.loads(row["counts"])), findings=json.loads(row["findings"]))


@dataclass(frozen=True, slots=True)
class AttemptSide:
    """An attempt as reconciliation looks at it."""

    task_id: UUID
    number: int
    provider_ref: str | None
    reference: str
    upstream_model: str
    operation: str
    links: dict[str, str]
    sent_at: datetime
    noticed_by: str | None
    ours: Ours

    @property
    def owner(self) -> Owner:
        """Its task, and its number."""
        return self.task_id, self.number

    @property
    def ref(self) -> AttemptRef:
        """How to speak to the provider about it."""
        return AttemptRef(
            self.reference, self.provider_ref, self.upstream_model, self.operation, links=self.links
        )

    @property
    def was_missed(self) -> bool:
        """Whether reconciliation brought its end."""
        return self.noticed_by == Origin.RECONCILIATION


def _side_of(row: asyncpg.Record) -> AttemptSide:
    return AttemptSide(
        **{name: row[name] for name in _SIDE},
        links=json.loads(row["links"]),
        ours=Ours(
            state=State(row["state"]),
            is_current=row["number"] == row["current"],
            outcome=AttemptOutcome(row["outcome"]) if row["outcome"] else None,
            is_known=row["provider_ref"] is not None,
            cost=None if row["cost"] is None else float(row["cost"]),
        ),
    )


_SIDE = tuple(name for name in AttemptSide.__slots__ if name not in ("links", "ours"))


async def first_days(connection: Connection, providers: Sequence[str]) -> tuple[dict[str, date], datetime]:
    """Since which day (UTC) each provider has attempts, if it has any; and the time."""
    rows = await _sql.first_days.rows(connection, providers=list(providers))
    found = {row["provider"]: row["first_day"] for row in rows if row["first_day"] is not None}
    return found, rows[0]["now"]


async def add_due(connection: Connection, due: Sequence[tuple[str, date, str]]) -> None:
    """Plan whole days, each (provider, day, mode); those that were planned or done before are left alone."""
    await _sql.add_due.run(
        connection,
        providers=[provider for provider, _, _ in due],
        days=[day for _, day, _ in due],
        modes=[mode for _, _, mode in due],
    )


async def claim(connection: Connection, providers: Sequence[str], *, lease_s: float) -> Run | None:
    """Take a run that is due at one of these providers, the oldest day first."""
    row = await _sql.claim.row(connection, providers=list(providers), lease_s=lease_s)
    return _run_of(row) if row else None


async def begin(
    connection: Connection, provider: str, day: date, *, until_at: datetime, mode: str, lease_s: float
) -> Run | None:
    """Take a day now; None while another is at it. A run that was left half done goes on where it stood."""
    row = await _sql.begin.row(
        connection, provider=provider, day=day, until_at=until_at, mode=mode, lease_s=lease_s
    )
    return _run_of(row) if row else None


async def note_records(connection: Connection, run: Run, refs: Sequence[str]) -> None:
    """These ids were in the provider's list."""
    await _sql.note_records.run(connection, id=run.id, refs=list(refs))


async def seen_records(connection: Connection, run: Run, refs: Sequence[str]) -> set[str]:
    """Which of these ids the provider's list had."""
    rows = await _sql.seen_records.rows(connection, id=run.id, refs=list(refs))
    return {row["provider_ref"] for row in rows}


async def turn_page(connection: Connection, run: Run, found: Sequence[Found], *, lease_s: float) -> bool:
    """Keep how far the run has come, with what this page added; False if the claim was lost."""
    row = await _sql.turn_page.value(
        connection,
        id=run.id,
        version=run.version,
        stage=run.stage,
        cursor=run.cursor,
        counts=json.dumps(run.counts),
        findings=as_json(found),
        is_complete=run.is_complete,
        note=run.note,
        lease_s=lease_s,
    )
    return row is not None


async def postpone(connection: Connection, run: Run, *, wait_s: float, is_from_start: bool) -> None:
    """Go on in `wait_s` seconds, where the run stands or from the start of its list."""
    await _sql.postpone.run(
        connection,
        id=run.id,
        version=run.version,
        note=run.note,
        wait_s=wait_s,
        is_from_start=is_from_start,
    )


async def finish(connection: Connection, run: Run) -> Run | None:
    """End the run; its row is the report. None if the claim was lost."""
    row = await _sql.finish.row(connection, id=run.id, version=run.version)
    return _run_of(row) if row else None


async def reports(
    connection: Connection, *, provider: str | None = None, day: date | None = None, room: int
) -> list[Run]:
    """Runs and their reports, the latest first."""
    rows = await _sql.reports.rows(connection, provider=provider, day=day, room=room)
    return [_run_of(row) for row in rows]


async def match_records(
    connection: Connection, provider: str, wanted: Sequence[tuple[str, str | None, Owner | None]]
) -> list[AttemptSide | None]:
    """The attempt behind each (provider_ref, reference, owner by token), in their order."""
    rows = await _sql.match_records.rows(
        connection,
        provider=provider,
        refs=[ref for ref, _, _ in wanted],
        references=[reference for _, reference, _ in wanted],
        task_ids=[owner[0] if owner else None for _, _, owner in wanted],
        numbers=[owner[1] if owner else None for _, _, owner in wanted],
    )
    found: list[AttemptSide | None] = [None] * len(wanted)
    for row in rows:
        found[row["place"] - 1] = _side_of(row)
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """How far a reading of a window's attempts has come; written down as a run's cursor."""

    sent_at: datetime
    task_id: UUID = FIRST_ID
    number: int = 0

    def __str__(self) -> str:
        return f"{self.sent_at.isoformat()} {self.task_id} {self.number}"

    @classmethod
    def parse(cls, text: str) -> Place:
        """The place that a cursor names."""
        sent_at, task_id, number = text.split(" ")
        return cls(datetime.fromisoformat(sent_at), UUID(task_id), int(number))


async def attempts_of_window(
    connection: Connection, provider: str, after: Place, *, until: datetime, room: int
) -> list[AttemptSide]:
    """The next attempts of a provider by their start."""
    rows = await _sql.attempts_of_window.rows(
        connection,
        provider=provider,
        since=after.sent_at,
        until=until,
        after_id=after.task_id,
        after_number=after.number,
        room=room,
    )
    return [_side_of(row) for row in rows]


async def span_of_attempt(connection: Connection, owner: Owner) -> tuple[datetime, datetime]:
    """Between which times (by our clock) an attempt may have been made upstream."""
    row = await _sql.span_of_attempt.row(connection, task_id=owner[0], number=owner[1])
    if row is None:
        raise LookupError(f"attempt {owner[1]} of task {owner[0]}")
    return row["since"], row["until"]


async def has_rival(
    connection: Connection,
    provider: str,
    owner: Owner,
    *,
    prompt: str,
    upstream_model: str,
    since: datetime,
    until: datetime,
) -> bool:
    """Whether another attempt may be behind a record with this prompt and model of that time."""
    return bool(
        await _sql.has_rival.value(
            connection,
            provider=provider,
            task_id=owner[0],
            number=owner[1],
            prompt=prompt,
            upstream_model=upstream_model,
            since=since,
            until=until,
        )
    )


async def unanswered(
    connection: Connection, provider: str, *, since: datetime, until: datetime
) -> list[tuple[datetime, datetime]]:
    """When open attempts of that time were sent, and when their answer was due, whose id is not known."""
    rows = await _sql.unanswered.rows(connection, provider=provider, since=since, until=until)
    return [(row["sent_at"], row["answer_by"]) for row in rows]
