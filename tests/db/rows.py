"""Rows written past the lifecycle, in plain SQL: true ones to start from, and the parts that attacks are made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg

from safelight.domain.ids import new_id
from safelight.domain.task import TERMINAL, TRANSITIONS, State, is_terminal

PRICE = 3
COUNT = 2
HELD = PRICE * COUNT
GRANTED = 1_000

_FAILURES = {
    State.FAILED: ("upstream_fault", "generation_failed"),
    State.BLOCKED: ("content_blocked", "content_blocked"),
    State.CANCELED: ("canceled", "canceled"),
}


@dataclass(slots=True)
class Rows:
    """An account with one task in each state, and a second account without any."""

    account: UUID = field(default_factory=new_id)
    other: UUID = field(default_factory=new_id)
    standing: dict[State, UUID] = field(default_factory=lambda: {state: new_id() for state in State})
    fresh: UUID = field(default_factory=new_id)

    def fill(self, sql: str) -> str:
        """Put the ids in: `:account`, `:other`, `:fresh` (a task id in no row), and a task by its state."""
        names: dict[str, UUID] = {
            "account": self.account,
            "other": self.other,
            "fresh": self.fresh,
            **{state.value: task_id for state, task_id in self.standing.items()},
        }
        for name, value in names.items():
            sql = sql.replace(f":{name}", f"'{value}'")
        return sql

    async def write(self, connection: asyncpg.Connection) -> None:
        """Write them all; every deferred rule holds at the commit."""
        async with connection.transaction():
            await connection.execute(
                self.fill(
                    "INSERT INTO accounts (id, name) VALUES (:account, 'default'), (:other, 'other');"
                    "INSERT INTO entries (account_id, kind, available_delta, held_delta)"
                    f"VALUES (:account, 'grant', {GRANTED}, 0), (:other, 'grant', 50, 0)"
                )
            )
            for state, task_id in self.standing.items():
                await connection.execute(self.fill(accepted(f"'{task_id}'")))
                source = State.QUEUED
                for target in path_to(state):
                    await connection.execute(self.fill(moved(f"'{task_id}'", source, target)))
                    source = target


def path_to(state: State) -> list[State]:
    """The shortest way from `queued` along the arrows."""
    ways: deque[list[State]] = deque([[State.QUEUED]])
    while True:
        way = ways.popleft()
        if way[-1] is state:
            return way[1:]
        ways.extend([*way, target] for target in State if target in TRANSITIONS[way[-1]])


def pairs() -> Iterator[tuple[State, State]]:
    """Every two different states."""
    return ((source, target) for source in State for target in State if source is not target)


def accepted(
    task: str,
    *,
    has_hold: bool = True,
    has_receipt: bool = True,
    has_event: bool = True,
    account: str = ":account",
    columns: Mapping[str, str] | None = None,
) -> str:
    """SQL that accepts a task of an account; `columns` are SQL expressions to use instead of the right ones."""
    values = {
        "id": task,
        "account_id": account,
        "model": "'lab-callback'",
        "operation": "'generate'",
        "prompt": "'a red shoe on white'",
        "n": str(COUNT),
        "provider": "'lab'",
        "upstream_model": "'callback'",
        "unit_price": str(PRICE),
        "held": str(HELD),
        "wake_at": "clock_now()",
        "start_by": "clock_now() + interval '1 hour'",
        "deadline_s": "3600",
        **(columns or {}),
    }
    parts = [f"INSERT INTO tasks ({', '.join(values)}) VALUES ({', '.join(values.values())});"]
    if has_hold:
        parts.append(
            entry("hold", task, available=f"-({values['held']})", held=values["held"], account=account)
        )
    if has_receipt:
        parts.append(receipt(task, account=account))
    if has_event:
        parts.append(event(task, None))
    return "".join(parts)


def moved(task: str, source: State, target: State) -> str:
    """SQL that moves a task in a way that only the arrow can be wrong with; an ending is whole."""
    parts = [updated(task, target)]
    if target is State.SUBMITTING:
        parts.append(attempt(task))
    if is_terminal(target):
        pictures = 1 if target is State.SUCCEEDED else 0
        parts.append(resolution(task, captured=PRICE * pictures))
        parts.extend(asset(task, position=position) for position in range(pictures))
    parts.append(event(task, source))
    return "".join(parts)


def updated(task: str, target: State, **columns: str) -> str:
    """SQL that changes the row alone; `columns` are SQL expressions to use instead of the right ones."""
    is_end = target in TERMINAL
    is_review = target is State.REVIEW
    failure_class, failure_code = _FAILURES.get(target, (None, None))
    values = {
        "state": f"'{target}'",
        "version": "version + 1",
        "attempt": "greatest(attempt, 1)",
        "wake_at": "NULL" if is_end else "clock_now()",
        "finished_at": "clock_now()" if is_end else "NULL",
        "review_reason": "'deadline'" if is_review else "NULL",
        "decide_by": "clock_now() + interval '1 day'" if is_review else "NULL",
        "failure_class": f"'{failure_class}'" if failure_class else "NULL",
        "failure_code": f"'{failure_code}'" if failure_code else "NULL",
        **columns,
    }
    pairs_of_columns = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"UPDATE tasks SET {pairs_of_columns} WHERE id = {task};"


def resolution(
    task: str,
    *,
    held: int = HELD,
    captured: int = 0,
    released: int | None = None,
    account: str = ":account",
    entry_account: str = ":account",
) -> str:
    """SQL of a settlement with its entry."""
    given_back = held - captured if released is None else released
    return (
        "INSERT INTO settlements (task_id, account_id, held, captured, released)"
        f"VALUES ({task}, {account}, {held}, {captured}, {given_back});"
    ) + entry("settle", task, available=str(given_back), held=f"-{held}", account=entry_account)


def entry(kind: str, task: str, *, available: str, held: str, account: str = ":account") -> str:
    """SQL of one ledger line."""
    return (
        "INSERT INTO entries (account_id, kind, task_id, available_delta, held_delta)"
        f"VALUES ({account}, '{kind}', {task}, {available}, {held});"
    )


def receipt(task: str, *, account: str = ":account") -> str:
    """SQL of the stored answer to a submit."""
    return (
        "INSERT INTO receipts (account_id, route, key, fingerprint, task_id, body, expires_at)"
        f"VALUES ({account}, 'POST /v1/tasks', {task}::text, sha256('body'), {task}, '{{}}',"
        "clock_now() + interval '30 days');"
    )


def event(task: str, source: State | None, *, account: str = "account_id") -> str:
    """SQL of the history row that says how a task came to where it stands."""
    came_from = f"'{source}'" if source else "NULL"
    return (
        "INSERT INTO task_events (task_id, account_id, version, source, target, attempt, cause)"
        f"SELECT id, {account}, version, {came_from}, state, attempt, 'test' FROM tasks WHERE id = {task};"
    )


def attempt(task: str, **columns: str) -> str:
    """SQL of an attempt; `columns` are SQL expressions to use instead of the right ones."""
    values = {
        "task_id": task,
        "number": "1",
        "provider": "'lab'",
        "upstream_model": "'callback'",
        "reference": "gen_random_uuid()::text",
        "images": str(COUNT),
        "answer_by": "clock_now() + interval '1 minute'",
        **columns,
    }
    return f"INSERT INTO attempts ({', '.join(values)}) VALUES ({', '.join(values.values())});"


def first_is_over() -> str:
    """SQL that ends the first attempts, so that second ones may follow."""
    return "UPDATE attempts SET outcome = 'failed', ended_at = clock_now() WHERE outcome IS NULL;"


def asset(task: str, *, position: int = 0, account: str = ":account", number: int = 1) -> str:
    """SQL of a stored picture."""
    return (
        "INSERT INTO assets (id, account_id, task_id, attempt, position, store_key, content_type, width, height,"
        f"bytes, sha256) VALUES (gen_random_uuid(), {account}, {task}, {number}, {position},"
        "gen_random_uuid()::text, 'image/png', 8, 8, 100, sha256('picture'));"
    )


def callback(task: str, *, verdict: str = "applied", status: str = "done", number: int = 1) -> str:
    """SQL of a kept callback."""
    return (
        "INSERT INTO callbacks (provider, task_id, attempt, upstream_status, verdict, body)"
        f"VALUES ('lab', {task}, {number}, '{status}', '{verdict}', '{{}}');"
    )
