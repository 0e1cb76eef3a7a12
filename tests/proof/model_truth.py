"""A small model of a task in plain Python: what may come of each step, by the contract and by the lab's own books."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from safelight.domain.task import TERMINAL, State
from safelight.errors import ProviderError, ProviderRefused, ProviderUnavailable, SubmissionUncertain

Moves = Mapping[State, frozenset[State]]
"""Where a step may take a task that stands so; it may always stay."""

WAITING = (State.QUEUED, State.RETRYING)
AFLOAT = (State.SUBMITTING, State.UNCERTAIN, State.RUNNING, State.REVIEW)
ENDED_BADLY = frozenset({"failed", "blocked", "invalid_request", "canceled"})
"""How a job of the lab ends without a picture."""


class Fate(StrEnum):
    """What the upstream makes of a submit."""

    DONE = "done"
    PARTIAL = "partial"
    EMPTY = "empty"
    PAGE = "page"
    """Its results are HTML."""
    FAILED = "failed"
    BLOCKED = "blocked"
    SLOW = "slow"
    """Taken, and never drawn."""
    LOST = "lost"
    """Taken, and the answer is lost."""
    LOST_SLOW = "lost_slow"
    GATEWAY = "gateway"
    """A gateway answers in its place; it was not taken."""
    DECLINED = "declined"
    """Refused by its content policy."""
    REFUSED = "refused"
    FAULT = "fault"
    LIMITED = "limited"
    AWAY = "away"
    """Nobody could be reached."""


FOR_EVER_S = 80_000.0
_SLOW = {"latency_s": [FOR_EVER_S, FOR_EVER_S]}
KNOBS: dict[Fate, dict[str, Any]] = {
    Fate.DONE: {},
    Fate.PARTIAL: {"partial": 1},
    Fate.EMPTY: {"empty_success": 1},
    Fate.PAGE: {"html_result": 1},
    Fate.FAILED: {"fail": 1},
    Fate.BLOCKED: {"moderate": 1},
    Fate.SLOW: _SLOW,
    Fate.LOST: {"lose_answer": 1},
    Fate.LOST_SLOW: {"lose_answer": 1, **_SLOW},
}
"""How the lab is told of a fate; those that are missing are told before it hears of anything."""
CALM: dict[str, Any] = {"latency_s": [0, 0], "callback_loss": 1, "small_pictures": True}
"""The lab keeps quiet and does what it is asked for: a play signs the callbacks that it wants."""


def turned_away(fate: Fate) -> ProviderError | None:
    """What a submit of this fate ends with that nobody upstream hears of."""
    match fate:
        case Fate.GATEWAY:
            return SubmissionUncertain("502 from a gateway")
        case Fate.DECLINED:
            return ProviderRefused("no", failure_class="content_blocked", failure_code="content_blocked")
        case Fate.REFUSED:
            return ProviderRefused("no", failure_class="invalid_request", failure_code="invalid_request")
        case Fate.FAULT:
            return ProviderRefused("no", failure_class="upstream_fault", failure_code="generation_failed")
        case Fate.LIMITED:
            return ProviderUnavailable("slowly", reason="rate_limited", retry_after_s=5.0)
        case Fate.AWAY:
            return ProviderUnavailable("connection refused", reason="not_sent")
        case _:
            return None


_TRIED_AGAIN = frozenset({State.RETRYING, State.FAILED})
_AFTER_ANSWER: dict[Fate, frozenset[State]] = {
    Fate.LOST: frozenset({State.UNCERTAIN}),
    Fate.LOST_SLOW: frozenset({State.UNCERTAIN}),
    Fate.GATEWAY: frozenset({State.UNCERTAIN}),
    Fate.DECLINED: frozenset({State.BLOCKED}),
    Fate.REFUSED: frozenset({State.FAILED}),
    Fate.FAULT: _TRIED_AGAIN,
    Fate.LIMITED: _TRIED_AGAIN,
    Fate.AWAY: _TRIED_AGAIN,
}
_AT_ONCE: dict[Fate, frozenset[State]] = {
    Fate.FAILED: _TRIED_AGAIN,
    Fate.BLOCKED: frozenset({State.BLOCKED}),
    Fate.EMPTY: frozenset({State.FAILED}),
}
"""Where the answer to the submit carries the end."""


def fate_at(shapes: Sequence[str], word: str) -> Fate:
    """What the word means here: a picture that is never drawn would keep a synchronous call for ever."""
    fate = Fate(word)
    if "lab-sync" in shapes:
        return {Fate.SLOW: Fate.DONE, Fate.LOST_SLOW: Fate.LOST}.get(fate, fate)
    return fate


def after_answer(shape: str, fate: Fate) -> frozenset[State]:
    """Where a submit of this fate takes a task."""
    if fate in _AFTER_ANSWER:
        return _AFTER_ANSWER[fate]
    if shape == "lab-sync":
        return _AT_ONCE.get(fate, frozenset({State.ARCHIVING}))
    return frozenset({State.RUNNING})


NEWS = frozenset(
    {State.RUNNING, State.ARCHIVING, State.RETRYING, State.FAILED, State.BLOCKED, State.CANCELED}
)
NOTHING: Moves = {}
CLAIMED: Moves = dict.fromkeys(WAITING, frozenset({State.SUBMITTING}))
LOOKED: Moves = {
    State.SUBMITTING: frozenset({State.UNCERTAIN}),
    **dict.fromkeys((State.UNCERTAIN, State.RUNNING), NEWS | {State.REVIEW}),
    State.REVIEW: NEWS,
}
RECONCILED: Moves = dict.fromkeys(AFLOAT, NEWS | {State.REVIEW})
COPIED: Moves = {State.ARCHIVING: frozenset({State.SUCCEEDED, State.FAILED, State.REVIEW})}
TIDIED: Moves = dict.fromkeys(WAITING, frozenset({State.FAILED}))


def resumed(shape: str, fate: Fate) -> Moves:
    """A submit that was claimed long ago goes out at last, or comes too late; its customer may have canceled since."""
    late = after_answer(shape, fate) | {State.RETRYING, State.UNCERTAIN, State.CANCELED}
    return dict.fromkeys(AFLOAT, late)


@dataclass(slots=True)
class Known:
    """One task as the model knows it; `number` is that of its attempt."""

    task_id: UUID
    shape: str
    n: int
    state: State = State.QUEUED
    number: int = 0
    version: int = 1
    captured: int = 0
    is_canceled: bool = False
    """The customer wanted it back."""
    is_risked: bool = False
    """A person took the risk of paying twice."""
    is_decided: bool = False
    """A person gave it its pictures."""

    @property
    def reference(self) -> str:
        return self.reference_of(self.number)

    @property
    def is_open(self) -> bool:
        return self.state not in TERMINAL

    def reference_of(self, number: int) -> str:
        """What an attempt is called upstream."""
        return f"{self.task_id.hex}-{number}"


Witness = Mapping[str, Mapping[str, Any]]
"""What the lab's own books say, by reference."""


def judge(known: Known, state: State, number: int, witness: Witness, *, is_declined: bool) -> str | None:
    """What speaks against a task's having come from `known` to this state and attempt, if anything does."""
    if known.state in TERMINAL:
        return f"left its end {known.state}" if state is not known.state else None
    outcome = witness.get(known.reference_of(number), {}).get("outcome")
    before = witness.get(known.reference, {}).get("outcome")
    if number > known.number and before is not None and before not in ENDED_BADLY and not known.is_risked:
        return f"made attempt {number} while the one before is {before} upstream"
    if state is known.state:
        return None
    if state is State.ARCHIVING and outcome != "done" and not known.is_decided:
        return f"took over pictures of a job that is {outcome} upstream"
    if state is State.RUNNING and outcome is None:
        return "runs, and nobody upstream knows it"
    if state is State.BLOCKED and outcome != "blocked" and not is_declined:
        return f"is blocked, and upstream it is {outcome}"
    if state is State.CANCELED and not known.is_canceled:
        return "was canceled, and nobody asked for it"
    return None
