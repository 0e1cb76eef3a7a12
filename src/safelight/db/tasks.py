"""Tasks and attempts: rows, claims, locks and conditional moves."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from safelight.db.statements import Connection, statements, storable
from safelight.domain.capacity import Taken
from safelight.domain.news import AttemptOutcome
from safelight.domain.provider import AttemptRef, Output
from safelight.domain.task import State

_sql = statements("tasks")

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One reference upstream."""

    number: int
    reference: str
    sends: int
    throttled: int
    provider_ref: str | None
    upstream_status: str
    accepted_at: datetime | None
    looked_at: datetime | None
    outputs: tuple[Output, ...]
    outcome: AttemptOutcome | None
    sent_at: datetime
    answer_by: datetime
    links: dict[str, str]
    provider: str
    upstream_model: str

    @property
    def has_had_its_chance(self) -> bool:
        """Whether it is one of the attempts a task may have: it was sent, or the provider is known to have it.

        One that was only ever turned away for its key has not; nor has one that was looked for after a restore and
        not found.
        """
        return self.sends > self.throttled or self.accepted_at is not None


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as it stood when it was read; `now` is the clock of that moment."""

    id: UUID
    account_id: UUID
    model: str
    operation: str
    prompt: str
    n: int
    size: str | None
    aspect_ratio: str | None
    images: list[UUID]
    mask: UUID | None
    options: dict[str, Any]
    provider: str
    upstream_model: str
    unit_price: int
    held: int
    state: State
    version: int
    attempt: int
    start_by: datetime
    deadline_at: datetime | None
    decide_by: datetime | None
    cancel_requested_at: datetime | None
    looks: int
    copies: int
    decode_tries: int
    percent: int | None
    position: int | None
    state_since: datetime
    look_until: int
    now: datetime
    batch_id: UUID | None = None

    def reference_of(self, attempt: AttemptRow) -> AttemptRef:
        """How to speak to the provider about the attempt."""
        return AttemptRef(
            attempt.reference,
            attempt.provider_ref,
            attempt.upstream_model,
            self.operation,
            links=attempt.links,
        )


def task_of(row: asyncpg.Record) -> TaskRow:
    """The task columns of a row."""
    values = {name: row[name] for name in _TASK_COLUMNS}
    values["state"] = State(values["state"])
    values["options"] = json.loads(values["options"])
    return TaskRow(**values)


def attempt_of(row: asyncpg.Record) -> AttemptRow:
    """The attempt columns of a row."""
    values = {name: row[name] for name in _ATTEMPT_COLUMNS}
    values["outputs"] = outputs_of(values["outputs"])
    values["links"] = json.loads(values["links"])
    values["provider"], values["upstream_model"] = row["attempt_provider"], row["attempt_model"]
    values["outcome"] = AttemptOutcome(values["outcome"]) if values["outcome"] else None
    return AttemptRow(**values)


_NUL = r"\u0000"
_ESCAPE = re.compile(r"\\(?:u0000|.)")
_TASK_COLUMNS = tuple(TaskRow.__slots__)
_ATTEMPT_COLUMNS = tuple(name for name in AttemptRow.__slots__ if name not in ("provider", "upstream_model"))


def outputs_of(text: str) -> tuple[Output, ...]:
    """Outputs as they are kept: a URL or a staged key each."""
    return tuple(Output(url=item.get("url"), staged_key=item.get("staged_key")) for item in json.loads(text))


def outputs_json(outputs: Sequence[Output]) -> list[dict[str, str]]:
    """The shape in which outputs are kept; bytes must have been staged before."""
    return [
        {"staged_key": output.staged_key} if output.staged_key else {"url": output.url or ""}
        for output in outputs
    ]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The stored answer to an accepted submit."""

    fingerprint: bytes
    body: bytes
    task_id: UUID
    is_expired: bool = False


async def find_receipts(
    connection: Connection, route: str, pairs: Sequence[tuple[UUID, str]]
) -> dict[tuple[UUID, str], Receipt]:
    """Earlier answers by (account, key); expired ones are marked, since their key counts as new."""
    rows = await _sql.find_receipts.rows(connection, route=route, **_columns(pairs))
    return {
        (row["account_id"], row["key"]): Receipt(
            row["fingerprint"], row["body"], row["task_id"], row["is_expired"]
        )
        for row in rows
    }


async def forget_receipts(connection: Connection, route: str, pairs: Sequence[tuple[UUID, str]]) -> None:
    """Make room for keys that have expired."""
    if pairs:
        await _sql.forget_receipts.run(connection, route=route, **_columns(pairs))


def _columns(pairs: Sequence[tuple[UUID, str]]) -> dict[str, list[Any]]:
    return {"account_ids": [account for account, _ in pairs], "keys": [key for _, key in pairs]}


async def insert_accepted(connection: Connection, items: Sequence[Item]) -> None:
    """T1: task, hold, receipt and event of every item. The accounts must be locked."""
    # A customer's words are kept as they are, or not at all.
    await _sql.insert_accepted.run(connection, items=_exact_json(items))


async def capacity_taken(connection: Connection, provider: str, *, window_s: float) -> Taken:
    """Counted from rows, under the provider's gate lock; `sent` are the submits of the last `window_s` seconds."""
    row = await _sql.capacity_taken.row(connection, provider=provider, window_s=window_s)
    return Taken(**row) if row else Taken(0, 0, 0, 0)


async def claim_fairest(
    connection: Connection,
    provider: str,
    *,
    calls_free: int,
    images_free: int,
    is_idle: bool,
    answer_in_s: float,
    retired: Sequence[str] = (),
) -> list[tuple[TaskRow, AttemptRow]]:
    """T2: the fairest due tasks with their attempts, leased for `answer_in_s` seconds.

    Nothing is taken of the `retired` upstream models.
    """
    rows = await _sql.claim_fairest.rows(
        connection,
        provider=provider,
        calls_free=calls_free,
        images_free=images_free,
        is_idle=is_idle,
        answer_in_s=answer_in_s,
        retired=list(retired),
    )
    return [(task_of(row), attempt_of(row)) for row in rows]


async def accounts_of_tasks(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Whose tasks these are."""
    rows = await _sql.accounts_of_tasks.rows(connection, ids=list(ids))
    return {row["id"]: row["account_id"] for row in rows}


async def lock_tasks(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, TaskRow]:
    """Lock tasks by id; accounts that will be settled must be locked before."""
    rows = await _sql.lock_tasks.rows(connection, ids=list(ids))
    return {row["id"]: task_of(row) for row in rows}


async def read_attempts(
    connection: Connection, task_ids: Sequence[UUID]
) -> dict[tuple[UUID, int], AttemptRow]:
    """Every attempt of these tasks, by (task, number), in order."""
    rows = await _sql.read_attempts.rows(connection, task_ids=list(task_ids))
    return {(row["task_id"], row["number"]): attempt_of(row) for row in rows}


async def attempt_of_provider_ref(
    connection: Connection, provider: str, provider_ref: str
) -> tuple[UUID, int] | None:
    """The (task, attempt number) that a provider's own id belongs to."""
    row = await _sql.attempt_of_provider_ref.row(connection, provider=provider, provider_ref=provider_ref)
    return (row["task_id"], row["number"]) if row else None


async def taken_provider_refs(
    connection: Connection, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[UUID, int]]:
    """Which of these (provider, id) pairs belong to an attempt already."""
    rows = await _sql.taken_provider_refs.rows(
        connection, providers=[provider for provider, _ in pairs], refs=[ref for _, ref in pairs]
    )
    return {(row["provider"], row["provider_ref"]): (row["task_id"], row["number"]) for row in rows}


async def read_task(connection: Connection, task_id: UUID) -> tuple[TaskRow, AttemptRow | None] | None:
    """A task and its current attempt, without a lock."""
    row = await _sql.read_task.row(connection, id=task_id)
    if row is None:
        return None
    return task_of(row), attempt_of(row) if row["number"] is not None else None


async def move(connection: Connection, items: Sequence[Item]) -> set[UUID]:
    """Move tasks along one arrow each; the ids that really moved."""
    rows = await _sql.move.rows(connection, items=as_json(items))
    return {row["task_id"] for row in rows}


async def note_progress(connection: Connection, items: Sequence[Item]) -> None:
    """Progress hints and the next look of tasks that stay where they are."""
    await _sql.note_progress.run(connection, items=as_json(items))


async def patch_attempts(connection: Connection, items: Sequence[Item]) -> None:
    """Add what was learned about attempts."""
    await _sql.patch_attempts.run(connection, items=as_json(items))


async def claim_looks(
    connection: Connection, provider: str, *, room: int, lease_s: float
) -> list[tuple[TaskRow, AttemptRow]]:
    """Due looks of one provider, leased."""
    rows = await _sql.claim_looks.rows(connection, provider=provider, room=room, lease_s=lease_s)
    return [(task_of(row), attempt_of(row)) for row in rows]


async def claim_copies(
    connection: Connection, *, room: int, lease_s: float
) -> list[tuple[TaskRow, AttemptRow]]:
    """Archiving tasks whose copy is due, leased, with the attempt that succeeded."""
    rows = await _sql.claim_copies.rows(connection, room=room, lease_s=lease_s)
    return [(task_of(row), attempt_of(row)) for row in rows]


async def claim_copy(
    connection: Connection, task_id: UUID, *, lease_s: float
) -> tuple[TaskRow, AttemptRow] | None:
    """One archiving task, leased, due or not; None if its state no longer asks for it."""
    row = await _sql.claim_copy.row(connection, id=task_id, lease_s=lease_s)
    return (task_of(row), attempt_of(row)) if row else None


async def renew_copies(connection: Connection, ids: Sequence[UUID], *, lease_s: float) -> None:
    """Prolong the leases of copies under way."""
    await _sql.renew_copies.run(connection, ids=list(ids), lease_s=lease_s)


async def has_due_copies(connection: Connection, *, overdue_s: float) -> bool:
    """Whether a copy has been due for at least `overdue_s` seconds."""
    return bool(await _sql.has_due_copies.value(connection, overdue_s=overdue_s))


async def note_decode(connection: Connection, ids: Sequence[UUID]) -> None:
    """Count decodes before they start."""
    await _sql.note_decode.run(connection, ids=list(ids))


async def forget_decode(connection: Connection, task_id: UUID) -> None:
    """The pictures decoded without harm."""
    await _sql.forget_decode.run(connection, id=task_id)


@dataclass(frozen=True, slots=True)
class Load:
    """What a provider key has to do; `waiting` is counted no further than was asked."""

    calls: int
    tasks: int
    waiting: int


async def loads(connection: Connection, providers: Sequence[str], *, most: int) -> dict[str, Load]:
    """The load of each provider key, its waiting tasks counted up to `most`."""
    rows = await _sql.loads.rows(connection, providers=list(providers), most=most)
    return {row["provider"]: Load(row["calls"], row["tasks"], row["waiting"]) for row in rows}


@dataclass(frozen=True, slots=True)
class Page:
    """How far a reading of waiting tasks has come: the last one's `wake_at` and id."""

    wake_at: datetime | None
    id: UUID


FIRST_PAGE = Page(None, UUID(int=0))


async def lock_waiting(
    connection: Connection,
    provider: str,
    upstream_models: Sequence[str],
    *,
    room: int,
    after: Page = FIRST_PAGE,
    overdue_s: float = 0.0,
) -> tuple[dict[UUID, TaskRow], Page]:
    """Lock waiting tasks of a provider key that are due since `overdue_s` seconds, oldest first; the next page's start.

    A negative `overdue_s` takes those too that are due so much later.
    """
    rows = await _sql.lock_waiting.rows(
        connection,
        provider=provider,
        upstream_models=list(upstream_models),
        room=room,
        after_at=after.wake_at,
        after_id=after.id,
        overdue_s=overdue_s,
    )
    page = Page(rows[-1]["wake_at"], rows[-1]["id"]) if len(rows) == room else FIRST_PAGE
    return {row["id"]: task_of(row) for row in rows}, page


async def past_start(connection: Connection, *, room: int) -> list[UUID]:
    """Waiting tasks that did not start in time."""
    return [row["id"] for row in await _sql.past_start.rows(connection, room=room)]


async def request_cancel(connection: Connection, task_id: UUID) -> None:
    """Note that the customer wants it canceled."""
    await _sql.request_cancel.run(connection, id=task_id)


async def bring_look_forward(connection: Connection, ids: Sequence[UUID], *, gap_s: float) -> None:
    """A hint arrived: look now, but not within `gap_s` seconds of the last look."""
    await _sql.bring_look_forward.run(connection, ids=list(ids), gap_s=gap_s)


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Measured run times, seconds."""

    samples: int
    p95_s: float | None
    median_s: float | None


async def run_times(connection: Connection, providers: Sequence[str], upstream_model: str) -> RunTimes:
    """P95 and median of the last 500 succeeded attempts over all keys of a provider."""
    row = await _sql.run_times.row(connection, providers=list(providers), upstream_model=upstream_model)
    return RunTimes(row["samples"], row["p95_s"], row["median_s"]) if row else RunTimes(0, None, None)


async def callback_share(connection: Connection, providers: Sequence[str]) -> tuple[int, int]:
    """(ended tasks looked at, those that a callback noticed first), of the last 20 over all keys of a provider."""
    row = await _sql.callback_share.row(connection, providers=list(providers))
    return (row["tasks"], row["called_back"]) if row else (0, 0)


def as_json(items: Sequence[Item]) -> str:
    """Items as the one JSON parameter that the statements take, without what PostgreSQL has no letter for."""
    text = _exact_json(items)
    if _NUL in text:  # or a backslash before a plain u0000, which stays
        text = _ESCAPE.sub(lambda escape: "\ufffd" if escape[0] == _NUL else escape[0], text)
    return storable(text)


def _exact_json(items: Sequence[Item]) -> str:
    return json.dumps(items, default=str, ensure_ascii=False, separators=(",", ":"))


async def provider_of_attempt(connection: Connection, task_id: UUID, number: int) -> str | None:
    """Which provider an attempt went to; None if there is no such attempt."""
    found: str | None = await _sql.provider_of_attempt.value(connection, task_id=task_id, number=number)
    return found


async def note_send(connection: Connection, task_id: UUID, number: int, *, answer_in_s: float) -> bool:
    """Count another send of an uncertain attempt before it happens; False if the task has moved on."""
    sends = await _sql.note_send.value(connection, task_id=task_id, number=number, answer_in_s=answer_in_s)
    return sends is not None


async def stuck_share(connection: Connection, provider: str, *, looks: int) -> tuple[int, int]:
    """(running, of these with at least `looks` looks that showed nothing new)."""
    row = await _sql.stuck_share.row(connection, provider=provider, looks=looks)
    return (row["running"], row["stuck"]) if row else (0, 0)


async def staged_outputs(connection: Connection, task_id: UUID) -> list[Output]:
    """Outputs of every attempt of a settled task; none while it is open."""
    rows = await _sql.staged_outputs.rows(connection, task_id=task_id)
    return [output for row in rows for output in outputs_of(row["outputs"])]
