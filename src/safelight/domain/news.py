"""What a piece of news does to a task: a pure decision, so that every order of arrival can be tested."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from safelight.domain.failure import TREATMENTS, Failure, FailureClass
from safelight.domain.provider import Origin, ProviderUpdate, UpdateStatus
from safelight.domain.task import UPSTREAM, State, is_terminal


class Verdict(StrEnum):
    """What became of a piece of news; everything but `applied` and `progress` changes no state."""

    APPLIED = "applied"
    PROGRESS = "progress"
    DUPLICATE = "duplicate"
    OUT_OF_ORDER = "out_of_order"
    STALE = "stale"
    UNKNOWN = "unknown"
    HINT = "hint"
    UNUSABLE = "unusable"
    WOULD_APPLY = "would_apply"
    """Its provider is only observed: applied it would have moved the task."""


class AttemptOutcome(StrEnum):
    """How an attempt ended; `refused` was never accepted upstream."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELED = "canceled"
    REFUSED = "refused"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where task and attempt stand when the news arrives, read under the task's lock.

    `has_try_left` says whether another attempt may follow, at this route or another (`domain.routes`).
    """

    state: State
    attempt: int
    is_cancel_requested: bool
    attempt_outcome: AttemptOutcome | None = None
    has_try_left: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """The states to pass through, in order (none: nothing moves), and what is noted beside them.

    `failure` belongs to the last state if that is terminal, else to the attempt. `is_look_wanted` asks for a
    poll at once. `finding` names a difference to keep.
    """

    verdict: Verdict
    path: tuple[State, ...] = ()
    failure: Failure | None = None
    outcome: AttemptOutcome | None = None
    finding: str | None = None
    is_look_wanted: bool = False


CANCELED = Failure(FailureClass.CANCELED, "canceled")
RESULT_UNUSABLE = Failure(FailureClass.UPSTREAM_FAULT, "result_unusable")
UPSTREAM_CANCELED = Failure(FailureClass.UPSTREAM_FAULT, "upstream_canceled")
UPSTREAM_FAILED = Failure(FailureClass.UPSTREAM_FAULT, "generation_failed")
CONTENT_BLOCKED = Failure(FailureClass.CONTENT_BLOCKED, "content_blocked")

_OPEN = UPSTREAM | {State.REVIEW}
_ENDINGS = frozenset({UpdateStatus.FAILED, UpdateStatus.BLOCKED, UpdateStatus.CANCELED})


def decide(standing: Standing, attempt: int, update: ProviderUpdate) -> Decision:
    """Decide what the update about attempt number `attempt` does to a task that stands so.

    News only ever moves a task that is upstream or in review, and only through its current attempt.
    """
    if update.status is UpdateStatus.HINT:
        return Decision(Verdict.HINT, is_look_wanted=standing.state in _OPEN)
    if attempt != standing.attempt:
        return Decision(Verdict.STALE, finding=_late_finding(update))
    if standing.state not in _OPEN:
        return _decide_late(standing, update)
    if update.origin is Origin.ANSWER and standing.state is State.RUNNING and update.status in _ENDINGS:
        # The submit says refused while other news says running: a retry now could pay twice.
        return Decision(Verdict.OUT_OF_ORDER, finding="contradiction", is_look_wanted=True)
    if update.status in (UpdateStatus.QUEUED, UpdateStatus.RUNNING):
        return _decide_running(standing)
    if update.status is UpdateStatus.SUCCEEDED:
        return _decide_success(standing, update)
    return _decide_failure(standing, update)


def _decide_late(standing: Standing, update: ProviderUpdate) -> Decision:
    if update.status is UpdateStatus.SUCCEEDED:
        if standing.state in (State.SUCCEEDED, State.ARCHIVING):
            return Decision(Verdict.DUPLICATE)
        return Decision(Verdict.OUT_OF_ORDER, finding=_late_finding(update))
    said = {
        UpdateStatus.FAILED: AttemptOutcome.FAILED,
        UpdateStatus.BLOCKED: AttemptOutcome.BLOCKED,
        UpdateStatus.CANCELED: AttemptOutcome.CANCELED,
    }.get(update.status)
    is_same = said is not None and said == standing.attempt_outcome
    return Decision(Verdict.DUPLICATE if is_same else Verdict.OUT_OF_ORDER)


def _late_finding(update: ProviderUpdate) -> str | None:
    """A success that nobody can use any more was still paid for upstream."""
    return "orphan_result" if update.status is UpdateStatus.SUCCEEDED and update.outputs else None


def _decide_running(standing: Standing) -> Decision:
    if standing.state is State.RUNNING:
        return Decision(Verdict.PROGRESS)
    return Decision(Verdict.APPLIED, path=(State.RUNNING,))


def _decide_success(standing: Standing, update: ProviderUpdate) -> Decision:
    if update.outputs:
        return Decision(Verdict.APPLIED, path=(State.ARCHIVING,), outcome=AttemptOutcome.SUCCEEDED)
    if update.origin is Origin.CALLBACK:
        return Decision(Verdict.UNUSABLE, is_look_wanted=True)
    return Decision(
        Verdict.APPLIED, path=(State.FAILED,), failure=RESULT_UNUSABLE, outcome=AttemptOutcome.FAILED
    )


def _decide_failure(standing: Standing, update: ProviderUpdate) -> Decision:
    if update.status is UpdateStatus.BLOCKED:
        failure = update.failure or CONTENT_BLOCKED
        return Decision(Verdict.APPLIED, (State.BLOCKED,), failure, AttemptOutcome.BLOCKED)
    if update.status is UpdateStatus.CANCELED:
        if standing.is_cancel_requested:
            return Decision(Verdict.APPLIED, _path_to_canceled(standing), CANCELED, AttemptOutcome.CANCELED)
        return _end_or_retry(standing, UPSTREAM_CANCELED, AttemptOutcome.CANCELED)
    is_refusal = update.origin is Origin.ANSWER and update.provider_ref is None
    outcome = AttemptOutcome.REFUSED if is_refusal else AttemptOutcome.FAILED
    return _end_or_retry(standing, update.failure or UPSTREAM_FAILED, outcome)


def _path_to_canceled(standing: Standing) -> tuple[State, ...]:
    if standing.state in (State.RUNNING, State.REVIEW):
        return (State.CANCELED,)
    return (State.RUNNING, State.CANCELED)


def _end_or_retry(standing: Standing, failure: Failure, outcome: AttemptOutcome) -> Decision:
    if failure.failure_class is FailureClass.CONTENT_BLOCKED:
        return Decision(Verdict.APPLIED, (State.BLOCKED,), failure, outcome)
    if standing.is_cancel_requested:
        return Decision(Verdict.APPLIED, (State.RETRYING, State.CANCELED), CANCELED, outcome)
    if TREATMENTS[failure.failure_class].is_retried and standing.has_try_left:
        return Decision(Verdict.APPLIED, (State.RETRYING,), failure, outcome)
    return Decision(Verdict.APPLIED, (State.FAILED,), failure, outcome)


def is_final(decision: Decision) -> bool:
    """Whether the decision settles the task."""
    return bool(decision.path) and is_terminal(decision.path[-1])


class Setback(StrEnum):
    """A submit that brought no news of the attempt."""

    TURNED_AWAY = "turned_away"
    """Certainly not accepted by this send: not sent, or refused for now."""
    NO_ANSWER = "no_answer"
    """It may have been accepted."""
    PROVED_ABSENT = "proved_absent"
    """Looked up after the visibility delay: the provider does not know it."""


UNREACHABLE = Failure(FailureClass.ENVIRONMENT, "provider_unavailable")


def decide_setback(standing: Standing, attempt: int, setback: Setback, *, has_sends_left: bool) -> Decision:
    """Decide what a failed send does.

    A send that was turned away proves nothing about an earlier send of the same attempt: `uncertain` stays.
    """
    if attempt != standing.attempt or standing.state not in (State.SUBMITTING, State.UNCERTAIN):
        return Decision(Verdict.STALE)
    if setback is Setback.NO_ANSWER:
        path = (State.UNCERTAIN,) if standing.state is State.SUBMITTING else ()
        return Decision(Verdict.APPLIED if path else Verdict.PROGRESS, path)
    if setback is Setback.TURNED_AWAY and standing.state is State.UNCERTAIN:
        return Decision(Verdict.PROGRESS)
    if standing.is_cancel_requested:
        return Decision(Verdict.APPLIED, (State.RETRYING, State.CANCELED), CANCELED, AttemptOutcome.REFUSED)
    if setback is Setback.TURNED_AWAY and has_sends_left:
        return Decision(Verdict.APPLIED, (State.RETRYING,))
    if standing.has_try_left:
        return Decision(Verdict.APPLIED, (State.RETRYING,), UNREACHABLE, AttemptOutcome.REFUSED)
    return Decision(Verdict.APPLIED, (State.FAILED,), UNREACHABLE, AttemptOutcome.REFUSED)
