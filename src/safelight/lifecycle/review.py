"""A person decides about a task in review: recorded, fenced by the task's version, and never by two at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog

from safelight.db import auditlog, decisions, ledger, tasks
from safelight.db.database import Database
from safelight.db.queue import enqueue_permits
from safelight.db.statements import Connection
from safelight.db.tasks import AttemptRow, TaskRow, outputs_json
from safelight.domain.audit import Actor
from safelight.domain.failure import MAX_ATTEMPTS, MAX_ATTEMPTS_IN_ALL, Failure, FailureClass
from safelight.domain.news import AttemptOutcome
from safelight.domain.review import Choice, ResubmitReason, faults_of
from safelight.domain.task import State
from safelight.errors import RequestError
from safelight.lifecycle.attach import Attach, Attached, RulingRefused
from safelight.lifecycle.changes import Changes
from safelight.lifecycle.once import Answered, Once, answered, replayed
from safelight.lifecycle.routing import Routing
from safelight.telemetry import DECISIONS, point

log = structlog.get_logger()

CAUSE = "decision"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a person decides about one version of a task; `urls` and `files` are pictures to attach, in order."""

    task_id: UUID
    version: int
    choice: Choice
    reason_code: str = ""
    note: str = ""
    urls: Sequence[str] = ()
    files: Sequence[bytes] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class _Case:
    """A decision under its locks; the last of `attempts` is the current one."""

    connection: Connection
    changes: Changes
    row: TaskRow
    attempts: Sequence[AttemptRow]
    ruling: Ruling
    attached: Attached

    @property
    def attempt(self) -> AttemptRow:
        return self.attempts[-1]


class Review:
    """Carries out decisions. Of two about the same version the second is told that it was decided already."""

    def __init__(self, database: Database, attach: Attach, routing: Routing, *, start_by_s: float) -> None:
        self._database = database
        self._attach = attach
        self._routing = routing
        self._start_by_s = start_by_s

    async def decide(self, ruling: Ruling, by: Actor, once: Once | None = None) -> Answered:
        """Carry out a decision; when this returns it is committed, with its record and its audit line.

        Raises:
            RequestError: 404 no such task; 409 `already-decided`, `task-moved-on`, `not-in-review`, or a decision
                that this task does not allow; 422 something is missing or wrong; 503 the store fails.
        """
        pictures = len(ruling.urls) + len(ruling.files)
        faults = faults_of(ruling.choice, ruling.reason_code, ruling.note, pictures=pictures)
        if faults:
            raise RulingRefused(faults)
        async with self._database.connection() as connection:
            earlier = await replayed(connection, once, is_locking=False)
            if earlier is not None:
                return earlier
            task, attempt = await _read(connection, ruling)
            orphans = await decisions.orphan_outputs(connection, task.id)
        # Before anything is locked: no connection is held during a call to the outside.
        attached = Attached()
        if ruling.choice is Choice.ATTACH_RESULT:
            attached = await self._attach.given(task, attempt, ruling.urls, ruling.files)
        elif ruling.choice is Choice.ACCEPT_AS_DONE:
            attached = await self._attach.known(task, attempt, attempt.outputs or orphans)
        try:
            async with self._database.transaction() as connection:
                answer = await replayed(connection, once, is_locking=True)
                if answer is None:
                    answer = await self._carry_out(connection, ruling, by, once, attached=attached)
                point("before_decision_commit")
        except RequestError:
            # After any other error the commit may have happened, and the pictures with it.
            await self._attach.forget(attached)
            raise
        point("after_decision_commit")
        if answer.is_replayed:
            await self._attach.forget(attached)
        else:
            DECISIONS.labels(ruling.choice).inc()
        return answer

    async def _carry_out(
        self, connection: Connection, ruling: Ruling, by: Actor, once: Once | None, *, attached: Attached
    ) -> Answered:
        accounts = await tasks.accounts_of_tasks(connection, [ruling.task_id])
        await ledger.lock_accounts(connection, set(accounts.values()))
        changes = Changes(await tasks.lock_tasks(connection, [ruling.task_id]))
        row = changes.rows[ruling.task_id]
        await _check_standing(connection, row, ruling)
        attempts = list((await tasks.read_attempts(connection, [row.id])).values())
        case = _Case(connection, changes, row, attempts, ruling, attached)
        record = await decisions.insert_decision(
            connection,
            row.id,
            ruling.choice,
            reason_code=ruling.reason_code,
            note=ruling.note.strip(),
            decided_by=by.name,
        )
        await self._follow(case)
        await changes.write(connection)
        if changes.state_of(row.id) is State.RETRYING:
            await enqueue_permits(connection, [row.provider])
        answer = await answered(connection, once, _document(case, record, by))
        await _tell(case, record, by)
        return answer

    async def _follow(self, case: _Case) -> None:
        choice, task_id = case.ruling.choice, case.row.id
        if choice is Choice.CHECK_AGAIN:
            await decisions.look_now(case.connection, task_id)
        elif choice is Choice.RESUBMIT:
            self._check_resubmit(case)
            await decisions.renew_start(case.connection, task_id, start_in_s=self._start_by_s)
            _resubmit(case)
        elif choice is Choice.FAIL_AND_RELEASE:
            _fail(case)
        else:
            await decisions.renew_copies(case.connection, task_id)
            _deliver(case)

    def _check_resubmit(self, case: _Case) -> None:
        if case.attempt.outcome is AttemptOutcome.SUCCEEDED:
            raise RequestError(409, "result-known", "The pictures are made, and are not paid for twice.")
        if case.row.cancel_requested_at is not None:
            raise RequestError(409, "cancel-requested", "The customer wants it canceled: release it instead.")
        if case.ruling.reason_code == ResubmitReason.PROVED_ABSENT and case.attempt.accepted_at is not None:
            raise RequestError(
                409, "attempt-accepted", "The provider has accepted this attempt, so it cannot be absent."
            )
        routing = self._routing
        counted = [
            (routing.provider_of(one.provider), one.upstream_model)
            for one in case.attempts
            if one.has_had_its_chance
        ]
        here = counted.count((routing.provider_of(case.row.provider), case.row.upstream_model))
        if here >= MAX_ATTEMPTS or len(counted) >= MAX_ATTEMPTS_IN_ALL:
            raise RequestError(409, "no-attempt-left", "The task has had as many attempts as it may have.")


async def _read(connection: Connection, ruling: Ruling) -> tuple[TaskRow, AttemptRow]:
    found = await tasks.read_task(connection, ruling.task_id)
    if found is None:
        raise RequestError(404, "not-found", "There is no such task.")
    task, attempt = found
    await _check_standing(connection, task, ruling)
    if attempt is None:
        raise AssertionError(f"task {task.id} is in review without an attempt")
    return task, attempt


async def _check_standing(connection: Connection, row: TaskRow, ruling: Ruling) -> None:
    """The fence: the task stands in review, as it stood when the person looked at it."""
    if row.state is State.REVIEW and row.version == ruling.version:
        return
    decided = await decisions.decision_about(connection, row.id, ruling.version)
    if decided is not None:
        what, who = decided
        raise RequestError(
            409, "already-decided", f"{who} has decided this already ({what}); the task is now {row.state}."
        )
    if row.state is not State.REVIEW:
        raise RequestError(409, "not-in-review", f"The task is {row.state}: there is nothing to decide.")
    raise RequestError(
        409, "task-moved-on", f"The task has moved on from version {ruling.version} to {row.version}."
    )


def _resubmit(case: _Case) -> None:
    """The attempt is over: it never was accepted, or whatever comes of it is given up."""
    reason = case.ruling.reason_code
    is_proved = reason != ResubmitReason.RISK_ACCEPTED and case.attempt.accepted_at is None
    outcome = AttemptOutcome.REFUSED if is_proved else AttemptOutcome.ABANDONED
    failure = Failure(FailureClass.UPSTREAM_FAULT, reason)
    case.changes.end_attempt(case.row.id, case.attempt.number, outcome, failure)
    case.changes.move(case.row.id, State.RETRYING, cause=CAUSE, wake_in_s=0.0, detail=_words(case.ruling))


def _fail(case: _Case) -> None:
    failure = Failure(FailureClass.UPSTREAM_FAULT, case.ruling.reason_code)
    if case.attempt.outcome is None:
        case.changes.end_attempt(case.row.id, case.attempt.number, AttemptOutcome.ABANDONED, failure)
    has_staged = any(output.staged_key for output in case.attempt.outputs)
    case.changes.settle(case.row.id, State.FAILED, cause=CAUSE, failure=failure, is_staged=has_staged)


def _deliver(case: _Case) -> None:
    """From here on it is copied like what a provider delivers: k of n, settled once."""
    case.changes.end_attempt(
        case.row.id,
        case.attempt.number,
        AttemptOutcome.SUCCEEDED,
        None,
        outputs=outputs_json(case.attached.outputs),
        noticed_by="decision",
    )
    case.changes.move(case.row.id, State.ARCHIVING, cause=CAUSE, wake_in_s=0.0, detail=_words(case.ruling))


def _words(ruling: Ruling) -> str:
    return f"{ruling.choice}: {ruling.reason_code}" if ruling.reason_code else ruling.choice.value


def _document(case: _Case, record: decisions.DecisionRow, by: Actor) -> dict[str, Any]:
    return {
        "id": str(record.id),
        "task_id": str(case.row.id),
        "decision": case.ruling.choice.value,
        "reason_code": case.ruling.reason_code,
        "version": case.row.version,
        "state": case.changes.state_of(case.row.id).value,
        "decided_by": by.name,
        "decided_at": record.created_at.isoformat().replace("+00:00", "Z"),
    }


async def _tell(case: _Case, record: decisions.DecisionRow, by: Actor) -> None:
    ruling, row = case.ruling, case.row
    detail = {
        "decision": record.id,
        "version": row.version,
        "reason_code": ruling.reason_code,
        "note": ruling.note.strip(),
        "pictures": len(case.attached.keys),
    }
    await auditlog.write_line(
        case.connection,
        by,
        f"review.{ruling.choice}",
        f"task:{row.id}",
        account_id=row.account_id,
        detail=detail,
    )
    log.info("decided", task_id=str(row.id), decision=ruling.choice.value, decided_by=by.name)
