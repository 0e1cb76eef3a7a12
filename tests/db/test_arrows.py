"""A task moves along the arrows and in no other way, whatever the SQL that tries."""

from __future__ import annotations

import asyncpg
import pytest

from safelight.domain.task import TERMINAL, TRANSITIONS, WAITING, State, may_move
from tests.db import rows
from tests.db.conftest import Attacked


def shown(pair: tuple[State, State]) -> str:
    return f"from {pair[0]} to {pair[1]}"


LEGAL = [pair for pair in rows.pairs() if may_move(*pair)]
ILLEGAL = [pair for pair in rows.pairs() if not may_move(*pair)]


async def test_the_table_of_arrows_is_that_of_the_code(attacked: Attacked) -> None:
    found = {(row["source"], row["target"]) for row in await attacked.connection.fetch("TABLE transitions")}
    assert found == {(source, target) for source, targets in TRANSITIONS.items() for target in targets}
    assert len(found) == 35


@pytest.mark.parametrize("pair", LEGAL, ids=shown)
async def test_a_move_along_an_arrow_is_taken(attacked: Attacked, pair: tuple[State, State]) -> None:
    source, target = pair
    task = f":{source}"
    if target is State.SUBMITTING and source is not State.QUEUED:  # its attempt is there already
        await attacked.attack(rows.updated(task, target) + rows.event(task, source))
    else:
        await attacked.attack(rows.moved(task, source, target))


@pytest.mark.parametrize("pair", ILLEGAL, ids=shown)
async def test_a_move_without_an_arrow_is_refused(attacked: Attacked, pair: tuple[State, State]) -> None:
    source, target = pair
    await attacked.refused(
        rows.updated(f":{source}", target),
        asyncpg.RestrictViolationError,
        f"^no arrow from {source} to {target}$",
    )


@pytest.mark.parametrize("state", State)
async def test_a_move_to_where_the_task_stands_is_refused(attacked: Attacked, state: State) -> None:
    await attacked.refused(
        f"UPDATE tasks SET version = version + 1 WHERE id = :{state}",
        asyncpg.RestrictViolationError,
        "^the version counts moves$",
    )


@pytest.mark.parametrize("change", ["provider = 'other'", "upstream_model = 'other'"])
@pytest.mark.parametrize("state", State)
async def test_a_task_changes_its_provider_only_while_it_waits_and_as_a_move(
    attacked: Attacked, state: State, change: str
) -> None:
    moved = f"UPDATE tasks SET {change}, version = version + 1 WHERE id = :{state};"
    if state in WAITING:
        await attacked.refused(
            f"UPDATE tasks SET {change} WHERE id = :{state}",
            asyncpg.RestrictViolationError,
            "^a move raises the version by one$",
        )
        await attacked.attack(moved + rows.event(f":{state}", state))
    else:
        await attacked.refused(
            moved, asyncpg.RestrictViolationError, "^a task changes its provider only while it waits$"
        )


async def test_a_task_does_not_change_its_provider_on_its_way_to_another_state(attacked: Attacked) -> None:
    await attacked.refused(
        rows.updated(":running", State.RETRYING, provider="'other'"),
        asyncpg.RestrictViolationError,
        "^a task changes its provider only while it waits$",
    )


@pytest.mark.parametrize("version", ["version", "version + 2", "version - 1", "1"])
async def test_a_move_that_does_not_raise_the_version_by_one_is_refused(
    attacked: Attacked, version: str
) -> None:
    await attacked.refused(
        rows.updated(":running", State.ARCHIVING, version=version),
        asyncpg.RestrictViolationError,
        "^a move raises the version by one$",
    )


@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize(
    "change",
    [
        "failure_code = 'another'",
        "finished_at = finished_at + interval '1 second'",
        "finished_at = NULL",
        "attempt = attempt + 1",
        "failure_class = 'environment', failure_code = 'another'",
    ],
)
async def test_a_finished_row_does_not_change(attacked: Attacked, state: State, change: str) -> None:
    await attacked.refused(
        f"UPDATE tasks SET {change} WHERE id = :{state}",
        asyncpg.RestrictViolationError,
        "^a finished task does not change$",
    )


@pytest.mark.parametrize("state", sorted(TERMINAL))
async def test_a_finished_row_is_never_woken(attacked: Attacked, state: State) -> None:
    await attacked.refused(
        f"UPDATE tasks SET wake_at = clock_now() WHERE id = :{state}",
        asyncpg.CheckViolationError,
        "task_open_has_wake",
    )


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize(
    "change",
    [
        "unit_price = unit_price + 1, held = (unit_price + 1) * n",
        "n = n + 1, held = unit_price * (n + 1)",
        "held = 0, unit_price = 0",
        "account_id = :other",
    ],
)
async def test_price_count_and_account_are_frozen_in_every_state(
    attacked: Attacked, state: State, change: str
) -> None:
    await attacked.refused(
        f"UPDATE tasks SET {change} WHERE id = :{state}",
        asyncpg.RestrictViolationError,
        "^account, price and count of a task are frozen$",
    )


NOT_NEW = [state for state in State if state is not State.QUEUED]


@pytest.mark.parametrize("state", NOT_NEW)
async def test_a_task_cannot_be_born_in_the_middle_of_its_life(attacked: Attacked, state: State) -> None:
    """It would stand there without a path; a terminal one even without its settlement."""
    is_end = state in TERMINAL
    columns = {
        "state": f"'{state}'",
        "attempt": "1",
        "wake_at": "NULL" if is_end else "clock_now()",
        "finished_at": "clock_now()" if is_end else "NULL",
        "review_reason": "'deadline'" if state is State.REVIEW else "NULL",
        "decide_by": "clock_now()" if state is State.REVIEW else "NULL",
        "failure_class": "'environment'" if is_end and state is not State.SUCCEEDED else "NULL",
        "failure_code": "'made_up'" if is_end and state is not State.SUCCEEDED else "NULL",
    }
    sql = rows.accepted(":fresh", columns=columns)
    await attacked.impossible(sql)


async def test_a_task_cannot_be_born_with_a_later_version(attacked: Attacked) -> None:
    await attacked.impossible(rows.accepted(":fresh", columns={"version": "7"}))
