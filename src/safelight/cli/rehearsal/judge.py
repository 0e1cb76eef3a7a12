"""Waits for every task's end, then lays three books side by side: the customers', ours, and the lab's."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import aiohttp
import asyncpg

from safelight.assets.opening import open_store_of
from safelight.cli.rehearsal.customers import Receipts
from safelight.cli.rehearsal.scratch import GRANTED, Scratch
from safelight.lifecycle.doctor import Books, Outcome, audit_books
from safelight.upstreams import LAB_SHAPES

QUIET_S = 5.0
"""Nothing has moved for so long: what is left waits for a time-out, and the clock is moved."""
FIRST_STEP_S, LAST_STEP_S = 60.0, 600.0
LOOK_EVERY_S = 0.5
NAMED = 5
_OPEN = "SELECT count(*) FROM tasks WHERE finished_at IS NULL AND state <> 'review'"
_MOVED = "SELECT coalesce(sum(version), 0)::bigint + (SELECT count(*) FROM attempts) FROM tasks"
_TASKS = """
SELECT tasks.id::text, state, failure_code, review_reason, finished_at, coalesce(captured, 0) AS captured
FROM tasks LEFT JOIN settlements ON settlements.task_id = tasks.id
"""
_ATTEMPTS = "SELECT reference FROM attempts"
_CALLBACKS = "SELECT verdict, count(*) AS callbacks FROM callbacks GROUP BY verdict ORDER BY verdict"
_ACCOUNTS = "SELECT available, held FROM accounts WHERE name = 'default'"


@dataclass(slots=True)
class Found:
    """What the books say; `reasons` are those that speak against them."""

    tasks: int = 0
    states: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    captured: int = 0
    accepted_upstream: int = 0
    billed_upstream: int = 0
    polls: int = 0
    callbacks: dict[str, int] = field(default_factory=dict)
    delays_ms: list[float] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


async def wait_for_ends(place: Scratch, *, give_up_s: float) -> tuple[int, float | None]:
    """Until every task is terminal or in review; how many are not, and when (Unix time) the clock was first moved."""
    began = changed_at = time.monotonic()
    seen, step_s, first_moved_at = -1, FIRST_STEP_S, None
    while (left := await _ask(place, _OPEN)) and time.monotonic() - began < give_up_s:
        moved = await _ask(place, _MOVED)
        if moved != seen:
            seen, changed_at = moved, time.monotonic()
        elif time.monotonic() - changed_at > QUIET_S:
            first_moved_at = first_moved_at or time.time()
            await place.books.shift_clock(timedelta(seconds=step_s))
            step_s, changed_at = min(step_s * 2.0, LAST_STEP_S), time.monotonic()
        await asyncio.sleep(LOOK_EVERY_S)
    return left, first_moved_at


async def judge(place: Scratch, receipts: Receipts, *, moved_at: float | None, left: int) -> Found:
    """Compare; whatever does not fit is a reason."""
    found = Found()
    async with place.books.connection() as connection:
        tasks = await connection.fetch(_TASKS)
        references = {row["reference"] for row in await connection.fetch(_ATTEMPTS)}
        found.callbacks = {row["verdict"]: row["callbacks"] for row in await connection.fetch(_CALLBACKS)}
        account = await connection.fetchrow(_ACCOUNTS)
    ledger = await _ledger(place)
    found.tasks, found.attempts = len(tasks), len(references)
    found.captured = sum(row["captured"] for row in tasks)
    found.accepted_upstream, found.billed_upstream = ledger["accepted"], ledger["billed"]
    found.polls = ledger["polls"]
    _count_ends(found, tasks, ledger, moved_at)
    if left:
        found.reasons.append(f"{left} tasks have not come to an end")
    _judge_customers(found, receipts, {row["id"] for row in tasks})
    _judge_lab(found, ledger["items"], references)
    _judge_money(found, account)
    found.outcomes = await _audit(place)
    found.reasons.extend(
        f"doctor: {outcome.check.name}: {said}" for outcome in found.outcomes for said in _said(outcome)
    )
    return found


def _count_ends(
    found: Found, tasks: Sequence[asyncpg.Record], ledger: dict[str, Any], moved_at: float | None
) -> None:
    done_at = {
        item["reference"].partition("-")[0]: item["done_at"]
        for item in ledger["items"]
        if item["outcome"] == "done"
    }
    for row in tasks:
        word = row["failure_code"] or row["review_reason"] or ""
        found.states[f"{row['state']} {word}".strip()] += 1
        upstream = done_at.get(row["id"].replace("-", ""))
        ended = row["finished_at"].timestamp() if row["finished_at"] else None
        if row["state"] == "succeeded" and upstream and ended and (moved_at is None or ended < moved_at):
            found.delays_ms.append((ended - upstream) * 1_000.0)


def _judge_customers(found: Found, receipts: Receipts, known: set[str]) -> None:
    lost = sorted(set(receipts.ids.values()) - known)
    if lost:
        found.reasons.append(f"{len(lost)} tasks were accepted and are lost: {_some(lost)}")
    if receipts.split_keys:
        found.reasons.append(f"{len(receipts.split_keys)} keys got two tasks: {_some(receipts.split_keys)}")
    if receipts.unanswered:
        found.reasons.append(f"{len(receipts.unanswered)} submits were never answered")
    # An unanswered submit may have made its task all the same.
    surplus = len(known) - len(set(receipts.ids.values())) - len(receipts.unanswered)
    if surplus > 0:
        found.reasons.append(f"{surplus} tasks exist that no customer asked for")


def _judge_lab(found: Found, items: Sequence[dict[str, Any]], references: set[str]) -> None:
    twice = [item["reference"] for item in items if item["times_accepted"] > 1]
    if twice:
        found.reasons.append(f"{len(twice)} references were accepted twice: {_some(twice)}")
    strange = sorted({item["reference"] for item in items} - references)
    if strange:
        found.reasons.append(f"{len(strange)} calls were made without an intent: {_some(strange)}")
    drawn: dict[str, int] = defaultdict(int)
    for item in items:
        drawn[item["reference"].partition("-")[0]] += item["outcome"] == "done"
    again = [task for task, times in drawn.items() if times > 1]
    if again:
        found.reasons.append(f"{len(again)} tasks were drawn twice: {_some(again)}")


def _judge_money(found: Found, account: asyncpg.Record | None) -> None:
    if found.captured > found.billed_upstream:
        found.reasons.append(
            f"customers paid for {found.captured} pictures, and the lab made {found.billed_upstream}"
        )
    if account is None or account["available"] + account["held"] + found.captured != GRANTED:
        found.reasons.append(f"the credits do not add up: {dict(account or {})}, {found.captured} captured")


def _said(outcome: Outcome) -> list[str]:
    said = [f"{one.subject} {one.detail}" for one in outcome.findings if not one.is_information][:NAMED]
    return [*said, *([outcome.trouble] if outcome.trouble else [])]


async def _audit(place: Scratch) -> list[Outcome]:
    store = open_store_of(place.settings)
    try:
        async with aclosing(audit_books(Books(place.books, store, LAB_SHAPES))) as outcomes:
            return [outcome async for outcome in outcomes]
    finally:
        await store.aclose()


async def _ask(place: Scratch, question: str) -> int:
    async with place.books.connection() as connection:
        return int(await connection.fetchval(question))


async def _ledger(place: Scratch) -> dict[str, Any]:
    async with aiohttp.ClientSession() as session, session.get(f"{place.lab.url}/lab/ledger") as answer:
        found: dict[str, Any] = await answer.json()
        return found


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (" …" if len(names) > NAMED else "")
