"""The arrows, the words a customer sees, and the diagram."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safelight.domain.task import (
    MEANINGS,
    TERMINAL,
    TRANSITIONS,
    UPSTREAM,
    WAITING,
    PublicStatus,
    State,
    is_terminal,
    may_move,
    public_stage,
    public_status,
    state_diagram,
)

ARROWS = {
    "queued": "submitting canceled failed",
    "submitting": "running archiving retrying uncertain failed blocked",
    "uncertain": "running archiving retrying review failed blocked",
    "running": "archiving retrying review failed blocked canceled",
    "retrying": "submitting canceled failed",
    "archiving": "succeeded review failed blocked",
    "review": "archiving running retrying succeeded failed blocked canceled",
    "succeeded": "",
    "failed": "",
    "blocked": "",
    "canceled": "",
}
STATES = st.sampled_from(list(State))


@pytest.mark.parametrize("source", ARROWS)
def test_a_state_leaves_exactly_to_where_the_design_says(source: str) -> None:
    assert {state.value for state in TRANSITIONS[State(source)]} == set(ARROWS[source].split())


def test_every_state_has_arrows_and_a_meaning() -> None:
    assert set(TRANSITIONS) == set(MEANINGS) == set(State)


def test_terminal_states_are_never_left() -> None:
    assert {State.SUCCEEDED, State.FAILED, State.BLOCKED, State.CANCELED} == TERMINAL
    assert not any(may_move(source, target) for source in TERMINAL for target in State)


@given(source=STATES, target=STATES)
def test_the_table_alone_says_which_moves_are_allowed(source: State, target: State) -> None:
    assert may_move(source, target) == (target.value in ARROWS[source.value].split())
    assert not (is_terminal(source) and may_move(source, target))


def test_no_state_moves_to_itself_or_back_to_queued() -> None:
    assert not any(may_move(state, state) for state in State)
    assert not any(may_move(state, State.QUEUED) for state in State)


def test_every_state_is_reached_from_queued_and_reaches_an_end() -> None:
    reached = _reachable(State.QUEUED)
    assert reached | {State.QUEUED} == set(State)
    assert all(_reachable(state) & TERMINAL for state in State if state not in TERMINAL)


def test_a_task_is_canceled_only_where_it_waits_runs_or_is_reviewed() -> None:
    assert {source for source in State if may_move(source, State.CANCELED)} == {
        State.QUEUED,
        State.RETRYING,
        State.RUNNING,
        State.REVIEW,
    }


def test_only_a_claim_of_a_waiting_task_starts_a_submit() -> None:
    assert {source for source in State if may_move(source, State.SUBMITTING)} == WAITING


def test_what_takes_capacity_upstream_is_neither_waiting_nor_ended() -> None:
    assert not UPSTREAM & (WAITING | TERMINAL)
    assert {State.SUBMITTING, State.UNCERTAIN, State.RUNNING} == UPSTREAM


@pytest.mark.parametrize(
    ("state", "status", "stage"),
    [
        (State.QUEUED, "processing", "waiting"),
        (State.SUBMITTING, "processing", "drawing"),
        (State.UNCERTAIN, "processing", "drawing"),
        (State.RUNNING, "processing", "drawing"),
        (State.RETRYING, "processing", "drawing"),
        (State.ARCHIVING, "processing", "saving"),
        (State.REVIEW, "processing", "drawing"),
        (State.SUCCEEDED, "ready", "done"),
        (State.FAILED, "failed", "done"),
        (State.BLOCKED, "failed", "done"),
        (State.CANCELED, "failed", "done"),
    ],
)
def test_a_customer_sees_three_words_and_a_stage(state: State, status: str, stage: str) -> None:
    assert (public_status(state), public_stage(state)) == (status, stage)


def test_a_customer_has_only_three_words() -> None:
    assert {word.value for word in PublicStatus} == {"processing", "ready", "failed"}


def test_the_diagram_has_every_arrow_once_and_ends_only_terminal_states() -> None:
    lines = state_diagram().splitlines()
    assert lines[:2] == ["stateDiagram-v2", "    [*] --> queued"]
    drawn = [tuple(line.strip().split(" --> ")) for line in lines[2:]]
    assert len(drawn) == len(set(drawn))
    wanted = {(source, target) for source, targets in ARROWS.items() for target in targets.split()}
    assert set(drawn) == wanted | {(state.value, "[*]") for state in TERMINAL}


def _reachable(start: State) -> set[State]:
    found: set[State] = set()
    todo = [start]
    while todo:
        for target in TRANSITIONS[todo.pop()] - found:
            found.add(target)
            todo.append(target)
    return found
