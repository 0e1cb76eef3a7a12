"""Illegal money: every way to make or lose a credit that plain SQL could try is refused by the schema."""

from __future__ import annotations

import asyncpg
import pytest

from safelight.domain.task import State
from tests.db import rows
from tests.db.conftest import Attacked
from tests.db.rows import HELD

Check = asyncpg.CheckViolationError
Unique = asyncpg.UniqueViolationError
Restrict = asyncpg.RestrictViolationError
Whole = asyncpg.IntegrityConstraintViolationError


def posted(kind: str, available: int, held: int, task: str = "NULL") -> str:
    return rows.entry(kind, task, available=str(available), held=str(held))


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        pytest.param(
            posted("adjust", -rows.GRANTED - 1, 0), Check, "accounts_available_check", id="more is taken back"
        ),
        pytest.param(
            rows.accepted(":fresh", columns={"n": "1000", "held": str(1000 * rows.PRICE)}),
            Check,
            "accounts_available_check",
            id="more is held",
        ),
    ],
)
async def test_no_balance_becomes_negative(attacked: Attacked, sql: str, error: type, words: str) -> None:
    await attacked.refused(sql, error, words)


@pytest.mark.parametrize(
    "change",
    ["available = available + 1", "available = -1", "held = held - 1", "held = 0", "open_tasks = 0"],
)
async def test_a_balance_cannot_be_changed_directly(attacked: Attacked, change: str) -> None:
    await attacked.refused(
        f"UPDATE accounts SET {change} WHERE id = :account",
        Restrict,
        "^a balance changes through entries only$",
    )


@pytest.mark.parametrize("column", ["available", "held", "open_tasks"])
async def test_an_account_does_not_begin_with_a_balance(attacked: Attacked, column: str) -> None:
    await attacked.refused(
        f"INSERT INTO accounts (id, name, {column}) VALUES (:fresh, 'rich', 5)",
        Restrict,
        "^a new account is empty$",
    )


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        pytest.param(posted("grant", 0, 0), "entry_shape", id="a grant of nothing"),
        pytest.param(posted("grant", -5, 0), "entry_shape", id="a grant that takes"),
        pytest.param(posted("grant", 5, 5), "entry_shape", id="a grant that holds"),
        pytest.param(posted("adjust", -5, 5), "entry_shape", id="an adjustment that holds"),
        pytest.param(posted("hold", 6, -6, ":queued"), "entry_shape", id="a hold that gives"),
        pytest.param(posted("hold", -6, 5, ":queued"), "entry_shape", id="a hold that loses a credit"),
        pytest.param(posted("hold", 0, 6, ":queued"), "entry_shape", id="a hold out of nothing"),
        pytest.param(posted("settle", -1, -6, ":running"), "entry_shape", id="a settlement that takes"),
        pytest.param(posted("settle", 0, 1, ":running"), "entry_shape", id="a settlement that holds"),
        pytest.param(posted("settle", 7, -6, ":running"), "entry_shape", id="more released than held"),
        pytest.param(posted("grant", 5, 0, ":queued"), "entry_task", id="a grant for a task"),
        pytest.param(posted("adjust", 5, 0, ":queued"), "entry_task", id="an adjustment for a task"),
        pytest.param(posted("hold", -6, 6), "entry_task", id="a hold for no task"),
        pytest.param(posted("settle", 6, -6), "entry_task", id="a settlement of no task"),
        pytest.param(posted("gift", 5, 0), "entries_kind_check", id="a kind that does not exist"),
    ],
)
async def test_an_entry_of_the_wrong_shape_is_refused(attacked: Attacked, sql: str, words: str) -> None:
    await attacked.refused(sql, Check, words)


@pytest.mark.parametrize("state", State)
async def test_a_task_has_one_hold(attacked: Attacked, state: State) -> None:
    sql = posted("hold", -HELD, HELD, f":{state}")
    await attacked.refused(sql, Unique, "entries_once_per_task")


@pytest.mark.parametrize("state", ["succeeded", "failed", "blocked", "canceled"])
async def test_a_task_is_settled_once(attacked: Attacked, state: str) -> None:
    settlement, entry = rows.resolution(f":{state}").split(";")[:2]
    await attacked.refused(settlement, Unique, "settlements_pkey")
    await attacked.refused(entry, Unique, "entries_once_per_task")


@pytest.mark.parametrize(
    ("captured", "released", "words"),
    [
        (0, HELD - 1, "settlement_sum"),
        (HELD, 1, "settlement_sum"),
        (HELD, HELD, "settlement_sum"),
        (-1, HELD + 1, "settlements_captured_check"),
        (HELD + 1, -1, "settlements_released_check"),
    ],
)
async def test_a_settlement_adds_up(attacked: Attacked, captured: int, released: int, words: str) -> None:
    settlement = rows.resolution(":archiving", captured=captured, released=released).split(";")[0]
    await attacked.refused(settlement, Check, words)


OPEN = ["queued", "submitting", "uncertain", "running", "retrying", "archiving", "review"]


@pytest.mark.parametrize("state", OPEN)
async def test_an_open_task_has_no_settlement(attacked: Attacked, state: str) -> None:
    await attacked.refused(rows.resolution(f":{state}"), Whole, "which has not ended")


@pytest.mark.parametrize("state", OPEN)
async def test_the_hold_of_an_open_task_cannot_be_released_by_an_entry_alone(
    attacked: Attacked, state: str
) -> None:
    await attacked.impossible(posted("settle", HELD, -HELD, f":{state}"))


def ended(target: State, parts: str, source: str = "archiving") -> str:
    return rows.updated(f":{source}", target) + parts


def paid(
    captured: int,
    pictures: int,
    *,
    held: int = HELD,
    account: str = ":account",
    entry_account: str = ":account",
) -> str:
    parts = [
        rows.resolution(
            ":archiving", held=held, captured=captured, account=account, entry_account=entry_account
        )
    ]
    parts.extend(rows.asset(":archiving", position=position) for position in range(pictures))
    return "".join(parts)


SUCCEEDED, FAILED, BLOCKED = State.SUCCEEDED, State.FAILED, State.BLOCKED
SETTLEMENT, SETTLING_ENTRY = (f"{part};" for part in rows.resolution(":archiving").split(";")[:2])


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        pytest.param(ended(FAILED, ""), "without its settlement", id="with nothing"),
        pytest.param(ended(FAILED, SETTLING_ENTRY), "without its settlement", id="without a settlement"),
        pytest.param(ended(FAILED, SETTLEMENT), "without its entry", id="without an entry"),
        pytest.param(
            ended(FAILED, paid(0, 0, held=3)), "without its settlement", id="with half a settlement"
        ),
        pytest.param(
            ended(FAILED, SETTLEMENT + rows.entry("settle", ":archiving", available="3", held="-6")),
            "without its entry",
            id="with an entry of another amount",
        ),
        pytest.param(ended(SUCCEEDED, paid(3, 0)), "captured 3 for 0 pictures", id="ready without a picture"),
        pytest.param(ended(SUCCEEDED, paid(0, 0)), "captured 0 for 0 pictures", id="ready for nothing"),
        pytest.param(ended(SUCCEEDED, paid(6, 1)), "captured 6 for 1 pictures", id="paid for two, got one"),
        pytest.param(ended(SUCCEEDED, paid(3, 2)), "captured 3 for 2 pictures", id="paid for one, got two"),
        pytest.param(ended(SUCCEEDED, paid(6, 3)), "captured 6 for 3 pictures", id="more than was asked for"),
        pytest.param(ended(FAILED, paid(0, 1)), "captured or kept pictures", id="failed with a picture"),
        pytest.param(ended(FAILED, paid(3, 0)), "captured or kept pictures", id="failed and paid"),
        pytest.param(ended(FAILED, paid(3, 1)), "captured or kept pictures", id="failed as if it were ready"),
        pytest.param(ended(BLOCKED, paid(0, 1)), "captured or kept pictures", id="blocked with a picture"),
        pytest.param(ended(BLOCKED, paid(6, 0)), "captured or kept pictures", id="blocked and paid"),
    ],
)
async def test_a_task_does_not_end(attacked: Attacked, sql: str, words: str) -> None:
    await attacked.refused(sql, Whole, words)


async def test_a_hold_is_not_released_to_another_account(attacked: Attacked) -> None:
    holder = rows.accepted(":fresh", account=":other")
    await attacked.impossible(holder + ended(FAILED, paid(0, 0, entry_account=":other")))


async def test_a_canceled_task_keeps_and_pays_nothing(attacked: Attacked) -> None:
    canceled = rows.updated(":queued", State.CANCELED)
    paid_for = canceled + rows.resolution(":queued", captured=3)
    await attacked.refused(paid_for, Whole, "ended as canceled but captured or kept pictures")


async def test_a_task_is_not_settled_with_another_account(attacked: Attacked) -> None:
    settled = ended(FAILED, paid(0, 0, account=":other"))
    await attacked.refused(settled, asyncpg.ForeignKeyViolationError, "settlements_account_id_task_id_fkey")


async def test_a_settlement_of_a_part_is_taken(attacked: Attacked) -> None:
    await attacked.attack(ended(SUCCEEDED, paid(3, 1)))
    await attacked.attack(ended(SUCCEEDED, paid(6, 2)))


async def test_the_rules_of_an_ending_hold_at_a_real_commit(attacked: Attacked) -> None:
    with pytest.raises(Whole, match="without its settlement"):
        async with attacked.connection.transaction():
            await attacked.connection.execute(attacked.rows.fill(ended(FAILED, "")))
    state = await attacked.connection.fetchval(
        attacked.rows.fill("SELECT state FROM tasks WHERE id = :archiving")
    )
    assert state == "archiving"


@pytest.mark.parametrize("state", ["succeeded", "failed"])
async def test_the_pictures_of_a_finished_task_do_not_change(attacked: Attacked, state: str) -> None:
    await attacked.impossible(rows.asset(f":{state}", position=1))


async def test_what_is_told_of_a_stored_picture_does_not_change(attacked: Attacked) -> None:
    await attacked.impossible("UPDATE assets SET sha256 = sha256('another') WHERE task_id = :succeeded")


@pytest.mark.parametrize("table", ["entries", "settlements", "task_events"])
@pytest.mark.parametrize("change", ["UPDATE {} SET created_at = created_at", "DELETE FROM {}", "TRUNCATE {}"])
async def test_the_ledger_and_the_history_are_append_only(
    attacked: Attacked, table: str, change: str
) -> None:
    await attacked.refused(change.format(table), Restrict, f"^{table} is append-only$")


HALF_A_HOLD = rows.entry("hold", ":fresh", available="-3", held="3")
ANOTHERS_HOLD = rows.entry("hold", ":fresh", available="-6", held="6", account=":other")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        pytest.param(rows.accepted(":fresh", has_hold=False), "has no hold", id="without a hold"),
        pytest.param(rows.accepted(":fresh", has_receipt=False), "has no receipt", id="without a receipt"),
        pytest.param(
            rows.accepted(":fresh", has_hold=False) + HALF_A_HOLD, "has no hold", id="with half a hold"
        ),
    ],
)
async def test_a_task_is_not_accepted(attacked: Attacked, sql: str, words: str) -> None:
    await attacked.refused(sql, Whole, words)


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(rows.accepted(":fresh", has_event=False), id="without its first event"),
        pytest.param(
            rows.accepted(":fresh", has_hold=False) + ANOTHERS_HOLD, id="on another account's credits"
        ),
        pytest.param(
            rows.accepted(":fresh", has_receipt=False) + rows.receipt(":fresh", account=":other"),
            id="with another account's receipt",
        ),
    ],
)
async def test_a_task_is_accepted_whole_and_by_one_account(attacked: Attacked, sql: str) -> None:
    await attacked.impossible(sql)


async def test_a_whole_task_is_accepted_and_held(attacked: Attacked) -> None:
    await attacked.attack(rows.accepted(":fresh"))


async def test_the_balance_follows_the_entries(attacked: Attacked) -> None:
    async with attacked.connection.transaction():
        row = await attacked.connection.fetchrow(
            attacked.rows.fill("SELECT available, held, open_tasks FROM accounts WHERE id = :account")
        )
    assert row is not None
    # Eleven tasks of 6: seven are open, one has succeeded with one picture of two.
    assert dict(row) == {"available": rows.GRANTED - 7 * HELD - rows.PRICE, "held": 7 * HELD, "open_tasks": 7}
