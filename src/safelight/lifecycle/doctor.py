"""Audit our own books: ledger, states, attempts, inbox and stored bytes. It reads, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from safelight.assets.pictures import PictureLimits, PicturePool
from safelight.assets.store import AssetStore
from safelight.db import audit
from safelight.db.database import Database
from safelight.domain.task import TERMINAL, TRANSITIONS
from safelight.errors import AssetError
from safelight.lifecycle.accept import KEEP_KEY_S

STRAY_AFTER = timedelta(hours=48)
"""Bytes are stored before their row, so young ones without a row are nothing unusual."""

THUMBNAILS = "thumbnails/"
"""Made when first asked for, and may go at any time: no row speaks of them."""

LATE_S = 300.0
UNWOKEN_S = 120.0 + 60.0
"""Two minutes beyond the longest lease."""

_BATCH = 1_000
_AT_ONCE = 4
# The length is compared with the row; a limit of today says nothing about a picture of yesterday.
_LIMITS = PictureLimits(max_bytes=1 << 40)


@dataclass(frozen=True, slots=True)
class Check:
    """One invariant, and the name under which a finding tells of it."""

    name: str
    invariant: str
    is_about_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Where the books break an invariant; `is_information` says that it is none, but worth knowing."""

    check: str
    subject: str
    detail: str
    is_information: bool = False


CHECKS: tuple[Check, ...] = (
    Check("balances", "An account has what its entries add up to, and is never overdrawn."),
    Check("holds", "What an account has held is the sum of the holds of its open tasks."),
    Check("open_tasks", "An account counts its open tasks rightly."),
    Check("entries", "A task has exactly one hold, and at most one entry that settles it."),
    Check("settlements", "A task that has ended has one settlement: captured + released = held."),
    Check("captures", "What was captured is the price of the pictures that were delivered."),
    Check("history", "A history is a path along the arrows, one version a step, to the state of the row."),
    Check("endings", "A task ends once."),
    Check("receipts", "A task was accepted under exactly one idempotency key."),
    Check(
        "attempts", "Every call has its intent, numbered without a hole, and only the current one is open."
    ),
    Check("provider_refs", "No two attempts share an id of their provider."),
    Check("callbacks", "A callback changes an attempt once for each status, and only one that was made."),
    Check("overdue", "Every open task is woken in time, and none stays past its deadlines."),
    Check("reviews", "What waits for a person is seen."),
    Check("assets", "The bytes of every picture are there, unchanged, and decode.", is_about_bytes=True),
    Check("strays", "Stored bytes belong to a picture or to an open task."),
)
_INFORMATION = frozenset({"reviews"})
_IN_THE_STORE = frozenset({"assets", "strays"})


def checks(*, with_bytes: bool = True) -> tuple[Check, ...]:
    """The checks that `examine` makes."""
    return tuple(check for check in CHECKS if with_bytes or not check.is_about_bytes)


async def examine(
    database: Database, store: AssetStore, *, with_bytes: bool = True
) -> AsyncGenerator[Finding, None]:
    """Everything that is wrong, check by check, while the service may be running.

    `with_bytes` reads every picture back, which takes a while. Each check sees one moment, in bounded memory.
    """
    for check in checks(with_bytes=with_bytes):
        if check.name in _IN_THE_STORE:
            continue
        async with aclosing(audit.ask(database, check.name, _VALUES)) as rows:
            async for subject, detail in rows:
                yield Finding(check.name, subject, detail, is_information=check.name in _INFORMATION)
    if with_bytes:
        async for finding in _examine_assets(database, store):
            yield finding
    async for finding in _find_strays(database, store):
        yield finding


def _values() -> dict[str, Any]:
    arrows = [(source, target) for source, targets in TRANSITIONS.items() for target in targets]
    return {
        "sources": [source.value for source, _ in arrows],
        "targets": [target.value for _, target in arrows],
        "terminal": [state.value for state in TERMINAL],
        "keep_s": KEEP_KEY_S,
        "late_s": LATE_S,
        "unwoken_s": UNWOKEN_S,
    }


_VALUES = _values()


async def _examine_assets(database: Database, store: AssetStore) -> AsyncIterator[Finding]:
    pool = PicturePool(timeout_s=60.0, limits=_LIMITS)
    try:
        async for batch in audit.asset_batches(database):
            for start in range(0, len(batch), _AT_ONCE):
                for finding in await _judge(batch[start : start + _AT_ONCE], store, pool):
                    yield finding
    finally:
        await pool.aclose()


async def _judge(rows: Sequence[audit.AssetRow], store: AssetStore, pool: PicturePool) -> list[Finding]:
    faults = await asyncio.gather(*(_fault_of(row, store, pool) for row in rows))
    return [
        Finding("assets", f"asset {row.id} of task {row.task_id}", fault)
        for row, fault in zip(rows, faults, strict=True)
        if fault is not None
    ]


async def _fault_of(row: audit.AssetRow, store: AssetStore, pool: PicturePool) -> str | None:
    try:
        data = await store.get(row.store_key)
        if len(data) != row.bytes:
            return f"has {len(data)} bytes instead of {row.bytes}"
        picture = await pool.check(data)
    except AssetError as error:
        return f"cannot be read: {error.reason} ({error})"
    if picture.sha256 != row.sha256:
        return f"has the hash {picture.sha256.hex()} instead of {row.sha256.hex()}"
    if (picture.width, picture.height) != (row.width, row.height):
        return f"is {picture.width}x{picture.height} instead of {row.width}x{row.height}"
    if picture.content_type != row.content_type:
        return f"is {picture.content_type} instead of {row.content_type}"
    return None


async def _find_strays(database: Database, store: AssetStore) -> AsyncIterator[Finding]:
    oldest = (await database.now() - STRAY_AFTER).timestamp()
    old: list[str] = []
    async for key, _, modified in store.keys():
        if modified < oldest and not key.startswith(THUMBNAILS):
            old.append(key)
        if len(old) == _BATCH:
            for finding in await _strays_among(database, old):
                yield finding
            old = []
    for finding in await _strays_among(database, old):
        yield finding


async def _strays_among(database: Database, keys: list[str]) -> list[Finding]:
    ownerless = await audit.ownerless_keys(database, keys) if keys else []
    return [Finding("strays", f"object {key}", "belongs to no picture and no open task") for key in ownerless]
