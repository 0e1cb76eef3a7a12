"""A task's states, the arrows between them, and what a customer sees of them."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a task stands; `TRANSITIONS` says where it may go from there."""

    QUEUED = "queued"
    SUBMITTING = "submitting"
    UNCERTAIN = "uncertain"
    RUNNING = "running"
    RETRYING = "retrying"
    ARCHIVING = "archiving"
    REVIEW = "review"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELED = "canceled"


MEANINGS: dict[State, str] = {
    State.QUEUED: "accepted, credits held, waits for a permit",
    State.SUBMITTING: "the attempt row is committed, the call is in flight",
    State.UNCERTAIN: "the provider may have accepted it",
    State.RUNNING: "the provider has it",
    State.RETRYING: "waits for its back-off before it is sent again",
    State.ARCHIVING: "the provider is done, results are being copied",
    State.REVIEW: "a person must decide; genuine news still moves it",
    State.SUCCEEDED: "every picture lies in our own storage, credits are captured",
    State.FAILED: "ended without a picture, credits are released",
    State.BLOCKED: "ended by a content policy, credits are released",
    State.CANCELED: "ended by the customer, credits are released",
}

TRANSITIONS: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.SUBMITTING, State.CANCELED, State.FAILED}),
    State.SUBMITTING: frozenset(
        {
            State.RUNNING,
            State.ARCHIVING,
            State.RETRYING,
            State.UNCERTAIN,
            State.FAILED,
            State.BLOCKED,
        }
    ),
    State.UNCERTAIN: frozenset(
        {
            State.RUNNING,
            State.ARCHIVING,
            State.RETRYING,
            State.REVIEW,
            State.FAILED,
            State.BLOCKED,
        }
    ),
    State.RUNNING: frozenset(
        {State.ARCHIVING, State.RETRYING, State.REVIEW, State.FAILED, State.BLOCKED, State.CANCELED}
    ),
    State.RETRYING: frozenset({State.SUBMITTING, State.CANCELED, State.FAILED}),
    State.ARCHIVING: frozenset({State.SUCCEEDED, State.REVIEW, State.FAILED, State.BLOCKED}),
    State.REVIEW: frozenset(
        {
            State.ARCHIVING,
            State.RUNNING,
            State.RETRYING,
            State.SUCCEEDED,
            State.FAILED,
            State.BLOCKED,
            State.CANCELED,
        }
    ),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.BLOCKED: frozenset(),
    State.CANCELED: frozenset(),
}

TERMINAL = frozenset(state for state, targets in TRANSITIONS.items() if not targets)
WAITING = frozenset({State.QUEUED, State.RETRYING})
UPSTREAM = frozenset({State.SUBMITTING, State.UNCERTAIN, State.RUNNING})
"""States that take capacity at the provider."""


class ReviewReason(StrEnum):
    """Why a person must decide."""

    SUBMIT_UNCERTAIN = "submit_uncertain"
    NO_PROGRESS = "no_progress"
    DEADLINE = "deadline"
    ARCHIVE_STUCK = "archive_stuck"
    PROVIDER_GONE = "provider_gone"
    """Its provider key is not configured any more, so that nobody can be asked."""


class PublicStatus(StrEnum):
    """The only three words a customer ever sees."""

    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


def is_terminal(state: State) -> bool:
    """Whether the state is never left."""
    return state in TERMINAL


def may_move(source: State, target: State) -> bool:
    """Whether the table of arrows has this one."""
    return target in TRANSITIONS[source]


def public_status(state: State) -> PublicStatus:
    """The customer's word for a state."""
    if state is State.SUCCEEDED:
        return PublicStatus.READY
    return PublicStatus.FAILED if is_terminal(state) else PublicStatus.PROCESSING


STAGES = ("waiting", "drawing", "saving", "done")
"""The hints of `public_stage` in order."""


def public_stage(state: State, review_reason: str | None = None) -> str:
    """A hint for a progress bar: `waiting`, `drawing`, `saving`, or `done` once terminal.

    A task in `retrying` or `review` still says what it said before: a stage never goes backwards.
    """
    if is_terminal(state):
        return "done"
    if state is State.ARCHIVING or review_reason == ReviewReason.ARCHIVE_STUCK:
        return "saving"
    return "waiting" if state is State.QUEUED else "drawing"


def state_diagram() -> str:
    """The Mermaid source of the state diagram, in the order of the table."""
    lines = ["stateDiagram-v2", "    [*] --> queued"]
    for source in State:
        lines.extend(f"    {source} --> {target}" for target in State if target in TRANSITIONS[source])
        if is_terminal(source):
            lines.append(f"    {source} --> [*]")
    return "\n".join(lines)
