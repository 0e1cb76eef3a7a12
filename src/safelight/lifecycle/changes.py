"""What a batch decided about locked tasks, written in one order."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog

from safelight.db import batches, findings, ledger, tasks
from safelight.db.queue import (
    enqueue_copying,
    enqueue_delivering,
    enqueue_permits,
    enqueue_unstaging,
    providers_with_due_tasks,
)
from safelight.db.statements import Connection
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.credits import settlement_of
from safelight.domain.failure import Failure
from safelight.domain.news import AttemptOutcome
from safelight.domain.routes import Place
from safelight.domain.task import UPSTREAM, WAITING, ReviewReason, State, is_terminal, may_move
from safelight.errors import LedgerError
from safelight.telemetry import FINDINGS, MOVES, REROUTES, REVIEWS, point

log = structlog.get_logger()

UNKNOWN_LIFETIME_S = 1_800.0
"""A result URL whose lifetime is not declared counts as living half an hour."""


@dataclass(frozen=True, slots=True)
class AssetItem:
    """A picture that lies in our storage and now gets its row."""

    id: UUID
    position: int
    store_key: str
    content_type: str
    width: int
    height: int
    bytes: int
    sha256: str


@dataclass(slots=True)
class _Working:
    """A task as it will stand after the moves decided so far."""

    row: TaskRow
    state: State
    version: int
    steps: int = 0


@dataclass(slots=True)
class Changes:
    """Collects moves, settlements and notes for tasks whose locks are held, then writes them."""

    rows: dict[UUID, TaskRow]
    _working: dict[UUID, _Working] = field(default_factory=dict)
    _moves: list[list[dict[str, Any]]] = field(default_factory=list)
    _settlements: list[dict[str, Any]] = field(default_factory=list)
    _patches: list[dict[str, Any]] = field(default_factory=list)
    _progress: list[dict[str, Any]] = field(default_factory=list)
    _findings: list[dict[str, Any]] = field(default_factory=list)
    _has_copies: bool = False
    _freed: set[str] = field(default_factory=set)
    _staged: list[UUID] = field(default_factory=list)

    def state_of(self, task_id: UUID) -> State:
        """Where the task stands after what was decided so far."""
        return self._work(task_id).state

    def move(
        self,
        task_id: UUID,
        target: State,
        *,
        cause: str,
        wake_in_s: float,
        detail: str = "",
        review_reason: ReviewReason | None = None,
        decide_in_s: float | None = None,
        lifetime_s: float = UNKNOWN_LIFETIME_S,
    ) -> None:
        """Move along one arrow to a state that is not terminal.

        `wake_in_s` is when to look at it next; `lifetime_s` is how long results live that must now be copied.
        """
        work = self._work(task_id)
        self._check_arrow(work, target)
        self._note_move(
            work,
            target,
            cause=cause,
            detail=detail,
            wake_in_s=wake_in_s,
            review_reason=review_reason,
            decide_in_s=decide_in_s,
            copy_within_s=lifetime_s if target is State.ARCHIVING else None,
        )
        if target is State.ARCHIVING:
            self._has_copies = True
        if target is State.REVIEW:
            REVIEWS.labels(str(review_reason)).inc()
            log.error("review_needed", task_id=str(task_id), reason=str(review_reason), cause=cause)
        self._step(work, target)

    def reroute(self, task_id: UUID, place: Place, *, reason: str, wake_in_s: float) -> None:
        """Take a waiting task to another provider key or route, where it is due in `wake_in_s` seconds."""
        work = self._work(task_id)
        if work.state not in WAITING:
            raise LedgerError(f"a task that is {work.state} cannot change its provider")
        source = work.row.provider
        self._note_move(
            work,
            work.state,
            cause="rerouted",
            detail=f"{source} → {place.provider}: {reason}",
            wake_in_s=wake_in_s,
            provider=place.provider,
            upstream_model=place.route.upstream_model,
            deadline_s=place.route.deadline_s,
        )
        REROUTES.labels(source, place.provider).inc()
        log.info("task_rerouted", task_id=str(task_id), source=source, target=place.provider, reason=reason)
        self._freed.add(place.provider)
        work.version += 1
        work.steps += 1

    def settle(
        self,
        task_id: UUID,
        target: State,
        *,
        cause: str,
        failure: Failure | None = None,
        assets: Sequence[AssetItem] = (),
        is_staged: bool = False,
    ) -> None:
        """End the task: capture what was delivered, release the rest. Its account must be locked.

        `is_staged` says that staged bytes are left over and may now be deleted.
        """
        work = self._work(task_id)
        self._check_arrow(work, target)
        if not is_terminal(target) or (target is State.SUCCEEDED) != bool(assets):
            raise LedgerError(f"a task cannot settle as {target} with {len(assets)} assets")
        row = work.row
        amounts = settlement_of(row.held, unit_price=row.unit_price, delivered=len(assets))
        self._settlements.append(
            {
                "id": task_id,
                "version": work.version,
                "source": work.state,
                "target": target,
                "captured": amounts.captured,
                "released": amounts.released,
                "failure_class": failure.failure_class if failure else None,
                "failure_code": failure.code if failure else None,
                "cause": cause,
                "assets": [{name: getattr(asset, name) for name in AssetItem.__slots__} for asset in assets],
            }
        )
        if is_staged:
            self._staged.append(task_id)
        self._step(work, target)

    def patch_attempt(self, task_id: UUID, number: int, **learned: Any) -> None:
        """Note what was learned about an attempt (see `patch_attempts` for the names)."""
        self._patches.append({"task_id": task_id, "number": number, **learned})

    def note(self, task_id: UUID, **progress: Any) -> None:
        """Note progress or the next look of a task that stays where it is."""
        self._progress.append({"id": task_id, **progress})

    def find(
        self,
        kind: str,
        task_id: UUID,
        attempt: AttemptRow,
        detail: dict[str, Any],
        *,
        cost: float | None = None,
    ) -> None:
        """Keep a difference about an attempt for a person."""
        self._findings.append(
            {
                "kind": kind,
                "provider": attempt.provider,
                "task_id": task_id,
                "attempt": attempt.number,
                "detail": detail,
                "cost": cost,
            }
        )

    def end_attempt(
        self, task_id: UUID, number: int, outcome: AttemptOutcome, failure: Failure | None, **learned: Any
    ) -> None:
        """The attempt is over; the next claim opens another one."""
        self.patch_attempt(
            task_id,
            number,
            outcome=outcome,
            failure_class=failure.failure_class if failure else None,
            failure_code=failure.code if failure else None,
            **learned,
        )

    async def write(self, connection: Connection) -> None:
        """Write everything; a condition that does not hold under the lock is a fault and rolls back."""
        for patches in _rounds(self._patches, ("task_id", "number")):
            await tasks.patch_attempts(connection, patches)
        for moves in self._moves:
            _expect(await tasks.move(connection, moves), moves)
        if self._settlements:
            settled = await ledger.settle(connection, self._settlements)
            _expect(settled.keys(), self._settlements)
            if any(settled.values()):
                await enqueue_delivering(connection)
        for notes in _rounds(self._progress, ("id",)):
            versioned = [{**note, "version": self._work(note["id"]).version} for note in notes]
            await tasks.note_progress(connection, versioned)
        if self._findings:
            for kind, task_id in await findings.insert_findings(connection, self._findings):
                FINDINGS.labels(kind).inc()
                log.warning("finding", kind=kind, task_id=str(task_id))
        point("before_enqueue")
        if self._has_copies:
            await enqueue_copying(connection)
        await enqueue_unstaging(connection, self._staged)
        await self._let_others_go(connection)
        if self._freed:
            await enqueue_permits(connection, await providers_with_due_tasks(connection, sorted(self._freed)))
        point("after_enqueue")

    async def _let_others_go(self, connection: Connection) -> None:
        """Items of the same batches that waited for these to end."""
        rows = [self.rows[item["id"]] for item in self._settlements]
        if ids := {row.batch_id for row in rows if row.batch_id is not None}:
            await enqueue_permits(connection, await batches.release(connection, sorted(ids)))

    def _work(self, task_id: UUID) -> _Working:
        work = self._working.get(task_id)
        if work is None:
            row = self.rows[task_id]
            work = self._working[task_id] = _Working(row, row.state, row.version)
        return work

    def _note_move(self, work: _Working, target: State, **move: Any) -> None:
        while len(self._moves) <= work.steps:
            self._moves.append([])
        known = {"id": work.row.id, "version": work.version, "source": work.state, "target": target}
        self._moves[work.steps].append({**known, **move})

    def _check_arrow(self, work: _Working, target: State) -> None:
        if not may_move(work.state, target):
            raise LedgerError(f"no arrow from {work.state} to {target}")

    def _step(self, work: _Working, target: State) -> None:
        MOVES.labels(work.state, target).inc()
        if work.state in UPSTREAM and target not in UPSTREAM:
            self._freed.add(work.row.provider)
        work.state = target
        work.version += 1
        work.steps += 1


def _expect(moved: Set[UUID], items: Sequence[dict[str, Any]]) -> None:
    missing = {item["id"] for item in items} - moved
    if missing:
        raise LedgerError(f"{len(missing)} locked tasks did not move as decided")


def _rounds(items: Sequence[dict[str, Any]], key_names: tuple[str, ...]) -> list[list[dict[str, Any]]]:
    """Split so that one statement touches a row once; the order per row is kept."""
    rounds: list[list[dict[str, Any]]] = []
    seen: dict[tuple[Any, ...], int] = {}
    for item in items:
        key = tuple(item[name] for name in key_names)
        place = seen.get(key, 0)
        seen[key] = place + 1
        while len(rounds) <= place:
            rounds.append([])
        rounds[place].append(item)
    return rounds
