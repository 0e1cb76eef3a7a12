"""Audit our own books: ledger, states, attempts, inbox, wake-ups and stored bytes. It reads, and changes nothing."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from safelight.assets.store import AssetStore
from safelight.db import audit
from safelight.db.auditlog import verify_chain
from safelight.db.database import Database
from safelight.db.inbox import MAX_BODIES_PER_ATTEMPT
from safelight.domain.failure import MAX_ATTEMPTS_IN_ALL, MAX_SENDS
from safelight.domain.task import TERMINAL, TRANSITIONS
from safelight.errors import AssetError
from safelight.lifecycle.accept import KEEP_KEY_S
from safelight.lifecycle.checks import CHECKS, AskedOf, Check
from safelight.lifecycle.readback import faulty_pictures
from safelight.lifecycle.strays import Strays

LATE_S = 300.0
UNWOKEN_S = 120.0 + 60.0
"""Two minutes beyond the longest lease."""
UNATTENDED_S = 60.0
"""At least so long something is due before the absence of a job says anything."""
STUCK_S = 600.0
CONCURRENT_CALLBACKS = 10
"""Callbacks of one attempt that may come at the same moment, before any of them is counted."""
SHOWN = 20
"""Findings of one check that are told; beyond that they are counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Where the books break an invariant; `is_information` says that it is none, but worth knowing."""

    check: str
    subject: str
    detail: str
    is_information: bool = False


@dataclass(slots=True)
class Outcome:
    """What came of one check: rows looked at, seconds, the first findings, and how many `more` there are.

    `trouble` says why the check could not be made to its end.
    """

    check: Check
    rows: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    more: int = 0
    trouble: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether nothing speaks against the books."""
        return not self.trouble and not self.more and all(found.is_information for found in self.findings)


@dataclass(frozen=True, slots=True)
class Books:
    """What is audited. `providers` are the provider keys in use; None where they are not known."""

    database: Database
    store: AssetStore
    providers: Sequence[str] | None = None
    sweep_interval_s: float = 30.0
    keep_deliveries_days: int = 30


def checks(*, with_bytes: bool = True) -> tuple[Check, ...]:
    """The checks that are made."""
    return tuple(check for check in CHECKS if with_bytes or not check.is_about_bytes)


async def examine(
    database: Database, store: AssetStore, *, with_bytes: bool = True
) -> AsyncGenerator[Finding, None]:
    """Everything that is found, check by check, while the service may be running."""
    async with aclosing(audit_books(Books(database, store), with_bytes=with_bytes)) as outcomes:
        async for outcome in outcomes:
            for finding in outcome.findings:
                yield finding
            if outcome.trouble:
                yield Finding(outcome.check.name, "the check", outcome.trouble)


async def audit_books(
    books: Books, *, with_bytes: bool = True, shown: int = SHOWN
) -> AsyncGenerator[Outcome, None]:
    """Make each check, and tell what came of it.

    `with_bytes` reads every picture back, which takes longest. What a check holds in memory is bounded, whatever it
    looks at and finds; it looks at a moment, or at one moment for each range of tasks.
    """
    values = _values(books)
    for check in checks(with_bytes=with_bytes):
        if check.asked_of is AskedOf.PROVIDERS and books.providers is None:
            continue
        yield await _make(check, books, values, shown)


async def _make(check: Check, books: Books, values: dict[str, Any], shown: int) -> Outcome:
    outcome, began = Outcome(check), time.monotonic()
    try:
        async with aclosing(_ask(check, books, values)) as answers:
            async for answer in answers:
                outcome.rows += answer.rows
                _take(outcome, answer.found, shown)
    except (asyncpg.PostgresError, AssetError, OSError) as error:
        outcome.trouble = f"it could not be made: {str(error)[:300]}"
    outcome.seconds = time.monotonic() - began
    return outcome


def _take(outcome: Outcome, found: Sequence[tuple[str, str, bool]], shown: int) -> None:
    room = max(shown - len(outcome.findings), 0)
    outcome.findings.extend(
        Finding(outcome.check.name, subject, detail, is_information=is_information)
        for subject, detail, is_information in found[:room]
    )
    outcome.more += sum(not is_information for _, _, is_information in found[room:])


async def _ask(check: Check, books: Books, values: dict[str, Any]) -> AsyncGenerator[audit.Answer, None]:
    answers: AsyncIterator[audit.Answer]
    match check.asked_of:
        case AskedOf.TASKS | AskedOf.ACCOUNTS:
            answers = audit.ask_ranges(books.database, check.name, values, of=check.asked_of.value)
        case AskedOf.ALL | AskedOf.PROVIDERS:
            answers = audit.ask_once(books.database, check.name, values)
        case AskedOf.AUDIT_LOG:
            answers = _walk_chain(books.database)
        case AskedOf.PICTURES:
            answers = faulty_pictures(books.database, books.store)
        case AskedOf.STORE:
            answers = _list_store(books.database, books.store)
    async for answer in answers:
        yield answer


async def _walk_chain(database: Database) -> AsyncGenerator[audit.Answer, None]:
    async with database.connection() as connection:
        chain = await verify_chain(connection)
    found = [] if chain.broken_id is None else [(f"line {chain.broken_id}", chain.fault, False)]
    yield audit.Answer(chain.lines, found)


async def _list_store(database: Database, store: AssetStore) -> AsyncGenerator[audit.Answer, None]:
    strays = Strays(database, store)
    async for key in strays.find():
        yield audit.Answer(0, [(f"object {key}", "belongs to no picture and no open task", False)])
    yield audit.Answer(strays.examined, ())


def _values(books: Books) -> dict[str, Any]:
    arrows = [(source, target) for source, targets in TRANSITIONS.items() for target in targets]
    return {
        "sources": [source.value for source, _ in arrows],
        "targets": [target.value for _, target in arrows],
        "terminal": [state.value for state in TERMINAL],
        "keep_s": KEEP_KEY_S,
        "late_s": LATE_S,
        "unwoken_s": UNWOKEN_S,
        "unattended_s": max(UNATTENDED_S, 2.0 * books.sweep_interval_s),
        "stuck_s": STUCK_S,
        "max_sends": MAX_SENDS,
        "max_attempts": MAX_ATTEMPTS_IN_ALL,
        "max_callbacks": MAX_BODIES_PER_ATTEMPT + CONCURRENT_CALLBACKS,
        "providers": list(books.providers or ()),
        "keep_deliveries_days": books.keep_deliveries_days,
        "guards": list(audit.guards()),
    }
