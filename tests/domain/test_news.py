"""What a piece of news does to a task, as a table over everything that may come together."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safelight.domain.failure import MAX_ATTEMPTS, Failure, FailureClass
from safelight.domain.news import (
    AttemptOutcome,
    Decision,
    Setback,
    Standing,
    Verdict,
    decide,
    decide_setback,
    is_final,
)
from safelight.domain.provider import Origin, Output, ProviderUpdate, UpdateStatus
from safelight.domain.task import State, is_terminal, may_move

OPEN = (State.SUBMITTING, State.UNCERTAIN, State.RUNNING, State.REVIEW)
CLOSED = tuple(state for state in State if state not in OPEN)
PICTURE = (Output(url="https://cdn.example/1.png"),)
ENDINGS = (UpdateStatus.FAILED, UpdateStatus.BLOCKED, UpdateStatus.CANCELED)


@dataclass(frozen=True)
class Told:
    """What a decision is compared by."""

    verdict: str
    path: str = ""
    failure: str = ""
    outcome: str = ""
    finding: str = ""
    is_look_wanted: bool = False


def told(decision: Decision) -> Told:
    return Told(
        verdict=decision.verdict.value,
        path=" ".join(decision.path),
        failure=decision.failure.code if decision.failure else "",
        outcome=decision.outcome.value if decision.outcome else "",
        finding=decision.finding or "",
        is_look_wanted=decision.is_look_wanted,
    )


def update(
    status: UpdateStatus, origin: Origin, *, has_outputs: bool = True, **more: object
) -> ProviderUpdate:
    outputs = PICTURE if status is UpdateStatus.SUCCEEDED and has_outputs else ()
    values: dict[str, object] = {"provider_ref": "up-1", "outputs": outputs, **more}
    return ProviderUpdate(status, origin, **values)  # type: ignore[arg-type]  # the values vary by test


# An open task and its current attempt, the first of three; the second column is with a cancel requested.
TABLE: dict[tuple[str, str], tuple[Told, Told]] = {}


def _row(states: str, statuses: str, plain: Told, canceling: Told | None = None) -> None:
    for key in itertools.product(states.split(), statuses.split()):
        TABLE[key] = (plain, canceling or plain)


_row("submitting uncertain review", "queued running", Told("applied", "running"))
_row("running", "queued running", Told("progress"))
_row("submitting uncertain running review", "succeeded", Told("applied", "archiving", outcome="succeeded"))
_row(
    "submitting uncertain running review",
    "failed",
    Told("applied", "retrying", "generation_failed", "failed"),
    Told("applied", "retrying canceled", "canceled", "failed"),
)
_row(
    "submitting uncertain running review", "blocked", Told("applied", "blocked", "content_blocked", "blocked")
)
_row(
    "submitting uncertain",
    "canceled",
    Told("applied", "retrying", "upstream_canceled", "canceled"),
    Told("applied", "running canceled", "canceled", "canceled"),
)
_row(
    "running review",
    "canceled",
    Told("applied", "retrying", "upstream_canceled", "canceled"),
    Told("applied", "canceled", "canceled", "canceled"),
)
_row("submitting uncertain running review", "hint", Told("hint", is_look_wanted=True))


@pytest.mark.parametrize("is_cancel_requested", [False, True])
@pytest.mark.parametrize("origin", list(Origin))
@pytest.mark.parametrize("status", list(UpdateStatus))
@pytest.mark.parametrize("state", OPEN)
def test_news_about_the_current_attempt_moves_an_open_task(
    state: State, status: UpdateStatus, origin: Origin, is_cancel_requested: bool
) -> None:
    expected = TABLE[(state, status)][is_cancel_requested]
    if origin is Origin.ANSWER and state is State.RUNNING and status in ENDINGS:
        expected = Told("out_of_order", finding="contradiction", is_look_wanted=True)
    standing = Standing(state, 1, is_cancel_requested)
    assert told(decide(standing, 1, update(status, origin))) == expected


@pytest.mark.parametrize("is_cancel_requested", [False, True])
@pytest.mark.parametrize("origin", list(Origin))
@pytest.mark.parametrize("status", list(UpdateStatus))
@pytest.mark.parametrize("state", CLOSED)
def test_news_never_moves_a_task_that_is_not_upstream(
    state: State, status: UpdateStatus, origin: Origin, is_cancel_requested: bool
) -> None:
    expected = Told("out_of_order")
    if status is UpdateStatus.HINT:
        expected = Told("hint")
    elif status is UpdateStatus.SUCCEEDED and state in (State.SUCCEEDED, State.ARCHIVING):
        expected = Told("duplicate")
    elif status is UpdateStatus.SUCCEEDED:
        expected = Told("out_of_order", finding="orphan_result")
    standing = Standing(state, 1, is_cancel_requested)
    assert told(decide(standing, 1, update(status, origin))) == expected


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("origin", list(Origin))
@pytest.mark.parametrize("status", list(UpdateStatus))
@pytest.mark.parametrize("state", list(State))
def test_news_about_another_attempt_moves_nothing(
    state: State, status: UpdateStatus, origin: Origin, number: int
) -> None:
    expected = Told("stale")
    if status is UpdateStatus.HINT:
        expected = Told("hint", is_look_wanted=state in OPEN)
    elif status is UpdateStatus.SUCCEEDED:
        expected = Told("stale", finding="orphan_result")
    assert (
        told(decide(Standing(state, 2, is_cancel_requested=False), number, update(status, origin)))
        == expected
    )


@pytest.mark.parametrize("state", OPEN)
def test_a_called_back_success_without_pictures_asks_for_a_look_and_ends_nothing(state: State) -> None:
    empty = update(UpdateStatus.SUCCEEDED, Origin.CALLBACK, has_outputs=False)
    standing = Standing(state, 1, is_cancel_requested=False)
    assert told(decide(standing, 1, empty)) == Told("unusable", is_look_wanted=True)


@pytest.mark.parametrize("origin", [Origin.POLL, Origin.LOOK_UP, Origin.ANSWER, Origin.RECONCILIATION])
@pytest.mark.parametrize("state", OPEN)
def test_a_success_without_pictures_that_was_asked_for_has_failed_and_is_not_drawn_again(
    state: State, origin: Origin
) -> None:
    empty = update(UpdateStatus.SUCCEEDED, origin, has_outputs=False)
    decision = decide(Standing(state, 1, is_cancel_requested=False), 1, empty)
    assert told(decision) == Told("applied", "failed", "result_unusable", "failed")


def test_a_late_success_without_pictures_is_no_orphan() -> None:
    empty = update(UpdateStatus.SUCCEEDED, Origin.CALLBACK, has_outputs=False)
    decision = decide(Standing(State.FAILED, 1, is_cancel_requested=False), 1, empty)
    assert told(decision) == Told("out_of_order")


@pytest.mark.parametrize(
    ("failure_class", "first", "last"),
    [
        (FailureClass.INVALID_REQUEST, "failed", "failed"),
        (FailureClass.CONTENT_BLOCKED, "blocked", "blocked"),
        (FailureClass.UPSTREAM_FAULT, "retrying", "failed"),
        (FailureClass.ENVIRONMENT, "retrying", "failed"),
    ],
)
@pytest.mark.parametrize("state", OPEN)
def test_the_class_of_a_failure_says_whether_another_attempt_follows(
    state: State, failure_class: FailureClass, first: str, last: str
) -> None:
    news = update(UpdateStatus.FAILED, Origin.POLL, failure=Failure(failure_class, "some_code"))
    for has_try_left in (True, False):
        standing = Standing(state, 2, is_cancel_requested=False, has_try_left=has_try_left)
        decision = decide(standing, 2, news)
        assert decision.path == (State(first if has_try_left else last),)
        assert decision.failure == Failure(failure_class, "some_code")


@pytest.mark.parametrize("state", OPEN)
def test_a_block_ends_the_task_even_if_a_cancel_was_requested(state: State) -> None:
    news = update(UpdateStatus.FAILED, Origin.POLL, failure=Failure(FailureClass.CONTENT_BLOCKED, "flagged"))
    decision = decide(Standing(state, 1, is_cancel_requested=True), 1, news)
    assert told(decision) == Told("applied", "blocked", "flagged", "failed")


@pytest.mark.parametrize("attempt", [1, 2, 3])
@pytest.mark.parametrize("state", OPEN)
def test_no_attempt_follows_once_a_cancel_was_requested(state: State, attempt: int) -> None:
    standing = Standing(state, attempt, is_cancel_requested=True)
    for status in (UpdateStatus.FAILED, UpdateStatus.CANCELED):
        assert decide(standing, attempt, update(status, Origin.POLL)).path[-1] is State.CANCELED


def test_a_refusal_without_an_id_was_never_accepted() -> None:
    standing = Standing(State.SUBMITTING, 1, is_cancel_requested=False)
    refused = update(UpdateStatus.FAILED, Origin.ANSWER, provider_ref=None)
    accepted = update(UpdateStatus.FAILED, Origin.ANSWER)
    assert decide(standing, 1, refused).outcome is AttemptOutcome.REFUSED
    assert decide(standing, 1, accepted).outcome is AttemptOutcome.FAILED


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (UpdateStatus.FAILED, AttemptOutcome.FAILED),
        (UpdateStatus.BLOCKED, AttemptOutcome.BLOCKED),
        (UpdateStatus.CANCELED, AttemptOutcome.CANCELED),
    ],
)
@pytest.mark.parametrize("state", CLOSED)
def test_the_same_ending_again_is_a_duplicate(
    state: State, status: UpdateStatus, outcome: AttemptOutcome
) -> None:
    news = update(status, Origin.CALLBACK)
    for known in AttemptOutcome:
        verdict = decide(Standing(state, 1, False, known), 1, news).verdict
        assert verdict is (Verdict.DUPLICATE if known is outcome else Verdict.OUT_OF_ORDER)


# Setbacks of the first attempt: state, setback, whether sends are left, a cancel requested.
SETBACKS: dict[tuple[str, str, bool, bool], Told] = {}
for _left in (False, True):
    for _wish in (False, True):
        SETBACKS["submitting", "no_answer", _left, _wish] = Told("applied", "uncertain")
        SETBACKS["uncertain", "no_answer", _left, _wish] = Told("progress")
        SETBACKS["uncertain", "turned_away", _left, _wish] = Told("progress")
    for _state in ("submitting", "uncertain"):
        SETBACKS[_state, "proved_absent", _left, True] = Told(
            "applied", "retrying canceled", "canceled", "refused"
        )
        SETBACKS[_state, "proved_absent", _left, False] = Told(
            "applied", "retrying", "provider_unavailable", "refused"
        )
    SETBACKS["submitting", "turned_away", _left, True] = Told(
        "applied", "retrying canceled", "canceled", "refused"
    )
SETBACKS["submitting", "turned_away", True, False] = Told("applied", "retrying")
SETBACKS["submitting", "turned_away", False, False] = Told(
    "applied", "retrying", "provider_unavailable", "refused"
)


@pytest.mark.parametrize("is_cancel_requested", [False, True])
@pytest.mark.parametrize("has_sends_left", [False, True])
@pytest.mark.parametrize("setback", list(Setback))
@pytest.mark.parametrize("state", list(State))
def test_a_setback_moves_only_a_task_that_was_being_sent(
    state: State, setback: Setback, has_sends_left: bool, is_cancel_requested: bool
) -> None:
    standing = Standing(state, 1, is_cancel_requested)
    expected = SETBACKS.get((state, setback, has_sends_left, is_cancel_requested), Told("stale"))
    assert told(decide_setback(standing, 1, setback, has_sends_left=has_sends_left)) == expected
    other = decide_setback(standing, 2, setback, has_sends_left=has_sends_left)
    assert told(other) == Told("stale")


@pytest.mark.parametrize(
    ("state", "setback", "has_sends_left", "path"),
    [
        (State.SUBMITTING, Setback.TURNED_AWAY, True, "retrying"),
        (State.SUBMITTING, Setback.TURNED_AWAY, False, "failed"),
        (State.UNCERTAIN, Setback.TURNED_AWAY, False, ""),
        (State.UNCERTAIN, Setback.PROVED_ABSENT, True, "failed"),
        (State.SUBMITTING, Setback.NO_ANSWER, False, "uncertain"),
    ],
)
def test_the_last_attempt_fails_only_where_it_was_certainly_not_accepted(
    state: State, setback: Setback, has_sends_left: bool, path: str
) -> None:
    standing = Standing(state, 3, is_cancel_requested=False, has_try_left=False)
    decision = decide_setback(standing, 3, setback, has_sends_left=has_sends_left)
    assert " ".join(decision.path) == path


UPDATES = st.builds(
    update,
    st.sampled_from(list(UpdateStatus)),
    st.sampled_from(list(Origin)),
    has_outputs=st.booleans(),
    provider_ref=st.sampled_from([None, "up-1"]),
    failure=st.none() | st.builds(Failure, st.sampled_from(list(FailureClass)[:4]), st.just("some_code")),
)
STEPS = st.one_of(
    st.tuples(st.integers(1, 3), UPDATES),
    st.tuples(st.integers(1, 3), st.sampled_from(list(Setback))),
    st.just("claim"),
    st.just("cancel"),
)


@given(steps=st.lists(STEPS, max_size=25), has_sends_left=st.booleans())
def test_no_sequence_of_news_leaves_the_arrows_or_an_end(steps: list[object], has_sends_left: bool) -> None:
    standing = Standing(State.SUBMITTING, 1, is_cancel_requested=False)
    for step in steps:
        before = standing
        standing = _after(before, step, has_sends_left)
        if is_terminal(before.state):
            assert standing.state is before.state
        assert standing.attempt <= MAX_ATTEMPTS
        if before.is_cancel_requested:
            assert standing.attempt == before.attempt


@given(first=UPDATES, state=st.sampled_from(OPEN), copies=st.integers(1, 5))
def test_the_same_news_again_changes_nothing_more(first: ProviderUpdate, state: State, copies: int) -> None:
    once = _after(Standing(state, 1, is_cancel_requested=False), (1, first), True)
    again = once
    for _ in range(copies):
        again = _after(again, (1, first), True)
    assert again.state is once.state


@given(decision=UPDATES, state=st.sampled_from(list(State)), wish=st.booleans())
def test_only_a_path_to_an_end_is_final(decision: ProviderUpdate, state: State, wish: bool) -> None:
    made = decide(Standing(state, 1, wish), 1, decision)
    assert is_final(made) == (bool(made.path) and is_terminal(made.path[-1]))
    assert bool(made.path) == (made.verdict is Verdict.APPLIED)
    if is_final(made):
        assert made.failure is not None


def _after(standing: Standing, step: object, has_sends_left: bool) -> Standing:
    """Where the task stands after a step; asserts that every move follows an arrow."""
    if step == "cancel":
        return replace(standing, is_cancel_requested=True)
    if step == "claim":
        if standing.state is not State.RETRYING or standing.is_cancel_requested:
            return standing
        is_over = standing.attempt_outcome is not None
        number = standing.attempt + is_over
        return Standing(State.SUBMITTING, number, False, has_try_left=number < MAX_ATTEMPTS)
    assert isinstance(step, tuple)
    number, news = step
    if isinstance(news, Setback):
        decision = decide_setback(standing, number, news, has_sends_left=has_sends_left)
    else:
        decision = decide(standing, number, news)
    state = standing.state
    for target in decision.path:
        assert may_move(state, target), f"{state} to {target}"
        state = target
    outcome = (
        standing.attempt_outcome or decision.outcome
        if number == standing.attempt
        else standing.attempt_outcome
    )
    return replace(standing, state=state, attempt_outcome=outcome)
