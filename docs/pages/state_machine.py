"""The page of states and arrows, made from `safelight.domain.task`."""

from __future__ import annotations

from safelight.domain.task import MEANINGS, TRANSITIONS, State, public_status, state_diagram

HEAD = """\
# A task's states

Generated from `src/safelight/domain/task.py` by `make docs`; a test compares.

A task moves along these arrows and no others. Every move is one conditional update that names the state it
comes from, and writes a row of `task_events` in the same transaction; the database refuses an arrow that is
not in the table. Terminal states are never left.
"""


def page() -> str:
    """The whole page."""
    rows = [
        f"| `{state}` | {MEANINGS[state]} | {_targets(state)} | `{public_status(state)}` |" for state in State
    ]
    table = "\n".join(["| state | meaning | leaves to | customers see |", "|---|---|---|---|", *rows])
    return f"{HEAD}\n```mermaid\n{state_diagram()}\n```\n\n{table}\n"


def _targets(state: State) -> str:
    return ", ".join(f"`{target}`" for target in State if target in TRANSITIONS[state]) or "(terminal)"
