"""Illegal rows: states without what belongs to them, doubles, orphans, and values out of range."""

from __future__ import annotations

import asyncpg
import pytest

from safelight.domain.ids import new_id
from safelight.domain.task import State
from tests.db import rows
from tests.db.conftest import Attacked

Check = asyncpg.CheckViolationError
Unique = asyncpg.UniqueViolationError
Orphan = asyncpg.ForeignKeyViolationError

NOBODY = f"'{new_id()}'"
OPEN = ["queued", "submitting", "uncertain", "running", "retrying", "archiving", "review"]


@pytest.mark.parametrize("state", OPEN)
async def test_an_open_task_always_has_a_time_to_wake(attacked: Attacked, state: str) -> None:
    await attacked.refused(
        f"UPDATE tasks SET wake_at = NULL WHERE id = :{state}", Check, "task_open_has_wake"
    )


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        pytest.param(
            rows.updated(":running", State.REVIEW, review_reason="NULL"),
            "task_review_has_reason",
            id="a review without a reason",
        ),
        pytest.param(
            rows.updated(":running", State.REVIEW, decide_by="NULL"),
            "task_review_has_reason",
            id="a review without an end",
        ),
        pytest.param(
            rows.updated(":running", State.REVIEW, review_reason="'mood'"),
            "tasks_review_reason_check",
            id="a review for a reason that does not exist",
        ),
        pytest.param(
            rows.updated(":review", State.RUNNING, review_reason="'deadline'"),
            "task_review_has_reason",
            id="a reason without a review",
        ),
        pytest.param(
            rows.updated(":running", State.FAILED, failure_class="NULL", failure_code="NULL"),
            "task_failure_has_reason",
            id="a failure without a class",
        ),
        pytest.param(
            rows.updated(":running", State.FAILED, failure_code="NULL"),
            "task_failure_has_reason",
            id="a failure without a code",
        ),
        pytest.param(
            rows.updated(":running", State.FAILED, failure_class="'bad_luck'"),
            "tasks_failure_class_check",
            id="a failure of a class that does not exist",
        ),
        pytest.param(
            rows.updated(":archiving", State.SUCCEEDED, failure_class="'environment'", failure_code="'no'"),
            "task_failure_has_reason",
            id="a success with a failure",
        ),
        pytest.param(
            "UPDATE tasks SET failure_class = 'environment', failure_code = 'no' WHERE id = :queued",
            "task_failure_has_reason",
            id="an open task with a failure",
        ),
        pytest.param(
            rows.updated(":running", State.FAILED, finished_at="NULL"),
            "task_terminal_has_end",
            id="an end without its time",
        ),
        pytest.param(
            rows.updated(":running", State.ARCHIVING, finished_at="clock_now()"),
            "task_terminal_has_end",
            id="an open task with an end",
        ),
        pytest.param(
            rows.updated(":running", State.FAILED, wake_at="clock_now()"),
            "task_open_has_wake",
            id="an end that is woken again",
        ),
        pytest.param(
            rows.updated(":queued", State.SUBMITTING, attempt="0"),
            "task_upstream_has_attempt",
            id="a call without an attempt",
        ),
    ],
)
async def test_a_state_has_what_belongs_to_it(attacked: Attacked, sql: str, words: str) -> None:
    await attacked.refused(sql, Check, words)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"held": "5"}, "task_hold_is_worst_case"),
        ({"n": "0", "held": "0"}, "tasks_n_check"),
        ({"n": "1001", "held": "3003"}, "tasks_n_check"),
        ({"unit_price": "-1", "held": "-2"}, "tasks_(held|unit_price)_check"),
        ({"priority": "11"}, "tasks_priority_check"),
        ({"priority": "-11"}, "tasks_priority_check"),
        ({"percent": "101"}, "tasks_percent_check"),
        ({"position": "-1"}, "tasks_position_check"),
        ({"operation": "'paint'"}, "tasks_operation_check"),
        ({"deadline_s": "0"}, "tasks_deadline_s_check"),
        ({"images": "'{NULL}'"}, "tasks_images_check"),
        ({"mask": "gen_random_uuid()"}, "task_mask_has_image"),
        ({"options": "'[]'"}, "tasks_options_check"),
        ({"metadata": "'null'"}, "tasks_metadata_check"),
    ],
    ids=str,
)
async def test_a_task_out_of_range_is_refused(
    attacked: Attacked, columns: dict[str, str], words: str
) -> None:
    await attacked.refused(rows.accepted(":fresh", columns=columns), Check, words)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"number": "0"}, "attempts_number_check"),
        ({"number": "101"}, "attempts_number_check"),
        ({"images": "0"}, "attempts_images_check"),
        ({"sends": "0"}, "attempts_(sends|check|throttled_check)"),
        ({"sends": "1", "throttled": "2"}, "attempts_check"),
        ({"outcome": "'succeeded'"}, "attempt_end_has_outcome"),
        ({"ended_at": "clock_now()"}, "attempt_end_has_outcome"),
        ({"outcome": "'lost'", "ended_at": "clock_now()"}, "attempts_outcome_check"),
        ({"run_s": "-1"}, "attempts_run_s_check"),
        ({"noticed_by": "'rumour'"}, "attempts_noticed_by_check"),
        ({"excerpt": "repeat('x', 501)"}, "attempts_excerpt_check"),
        ({"outputs": "'{}'"}, "attempts_outputs_check"),
    ],
    ids=str,
)
async def test_an_attempt_out_of_range_is_refused(
    attacked: Attacked, columns: dict[str, str], words: str
) -> None:
    await attacked.refused(rows.attempt(":running", **{"number": "2", **columns}), Check, words)


REF = {"provider_ref": "'job-1'"}


async def test_two_attempts_do_not_share_an_id_of_their_provider(attacked: Attacked) -> None:
    one = rows.first_is_over() + rows.attempt(":running", number="2", **REF)
    await attacked.refused(
        one + rows.attempt(":retrying", number="2", **REF), Unique, "attempts_provider_ref"
    )
    await attacked.attack(one + rows.attempt(":retrying", number="2", provider="'another'", **REF))


async def test_two_attempts_do_not_share_a_number_or_a_reference(attacked: Attacked) -> None:
    await attacked.refused(rows.attempt(":running"), Unique, "attempts_pkey")
    same = {"number": "2", "reference": "'the same'"}
    await attacked.refused(
        rows.first_is_over() + rows.attempt(":running", **same) + rows.attempt(":retrying", **same),
        Unique,
        "attempts_reference_key",
    )


@pytest.mark.parametrize(
    "ref",
    ["", "a b", "a/b", "../x", "a\nb", "job-1\n", "\njob-1", "ä", "a%00", "x" * 129, "{}", "'", "a\u200b"],
)
async def test_an_id_of_a_provider_with_other_characters_is_refused(attacked: Attacked, ref: str) -> None:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await attacked.connection.execute(
            attacked.rows.fill("UPDATE attempts SET provider_ref = $1 WHERE task_id = :running"), ref
        )
    assert caught.type is Check


@pytest.mark.parametrize("ref", ["x", "0", "a.b_c:d-E9", "x" * 128])
async def test_an_ordinary_id_of_a_provider_is_kept(attacked: Attacked, ref: str) -> None:
    await attacked.attack(f"UPDATE attempts SET provider_ref = '{ref}' WHERE task_id = :running")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE attempts SET provider_ref = $1 WHERE task_id = :running",
        "UPDATE attempts SET excerpt = $1 WHERE task_id = :running",
        "UPDATE tasks SET prompt = $1 WHERE id = :running",
        "UPDATE tasks SET metadata = to_jsonb($1::text) WHERE id = :running",
    ],
)
async def test_a_nul_is_refused_as_such(attacked: Attacked, sql: str) -> None:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await attacked.connection.execute(attacked.rows.fill(sql), "a\x00b")
    assert caught.type is asyncpg.CharacterNotInRepertoireError


async def test_a_callback_is_applied_once_for_an_attempt_and_status(attacked: Attacked) -> None:
    applied = rows.callback(":running")
    await attacked.refused(applied + applied, Unique, "callbacks_applied_once")
    await attacked.attack(applied + rows.callback(":running", status="drawing"))
    await attacked.attack(applied + rows.callback(":review"))
    duplicate = rows.callback(":running", verdict="duplicate")
    await attacked.attack(duplicate + applied + duplicate)


async def test_a_callback_has_a_verdict_that_exists_and_task_and_attempt_or_neither(
    attacked: Attacked,
) -> None:
    await attacked.refused(rows.callback(":running", verdict="lost"), Check, "callbacks_verdict_check")
    await attacked.refused(
        "INSERT INTO callbacks (provider, task_id, verdict, body) VALUES ('lab', :running, 'stale', '')",
        Check,
        "callback_attempt",
    )
    await attacked.refused(
        "INSERT INTO callbacks (provider, attempt, verdict, body) VALUES ('lab', 1, 'stale', '')",
        Check,
        "callback_attempt",
    )


async def test_a_task_has_one_receipt_and_a_key_one_task(attacked: Attacked) -> None:
    again = rows.receipt(":queued").replace("'POST /v1/tasks'", "'another'")
    await attacked.refused(again, Unique, "receipts_task")
    same_key = rows.receipt(":fresh").replace(":fresh::text", ":queued::text")
    await attacked.refused(rows.accepted(":fresh", has_receipt=False) + same_key, Unique, "receipts_pkey")


async def test_a_move_has_one_event_and_a_place_one_picture(attacked: Attacked) -> None:
    await attacked.refused(
        rows.event(":running", State.SUBMITTING), Unique, "task_events_task_id_version_key"
    )
    await attacked.refused(
        rows.asset(":archiving") + rows.asset(":archiving"), Unique, "assets_task_id_position_key"
    )


async def test_there_is_one_clock_and_one_installation(attacked: Attacked) -> None:
    await attacked.refused("INSERT INTO clock DEFAULT VALUES", Unique, "clock_pkey")
    await attacked.refused("INSERT INTO clock (single) VALUES (false)", Check, "clock_single_check")
    bound = "INSERT INTO installation (secret_key_id) VALUES ('a');"
    await attacked.refused(bound + bound, Unique, "installation_pkey")


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(
            f"INSERT INTO api_keys (id, account_id, secret_hash) VALUES ('k', {NOBODY}, sha256('x'))",
            id="a key",
        ),
        pytest.param(rows.accepted(":fresh", columns={"account_id": NOBODY}), id="a task"),
        pytest.param(rows.attempt(NOBODY), id="an attempt"),
        pytest.param(rows.receipt(NOBODY), id="a receipt"),
        pytest.param(
            rows.accepted(":fresh", has_receipt=False) + rows.receipt(":fresh", account=NOBODY),
            id="a receipt of no account",
        ),
        pytest.param(rows.entry("hold", NOBODY, available="-1", held="1"), id="a hold"),
        pytest.param(
            f"INSERT INTO entries (account_id, kind, available_delta, held_delta) VALUES ({NOBODY}, 'grant', 1, 0)",
            id="a grant",
        ),
        pytest.param(rows.resolution(NOBODY), id="a settlement"),
        pytest.param(rows.asset(NOBODY), id="an asset"),
        pytest.param(rows.asset(":archiving", account=NOBODY), id="an asset of no account"),
        pytest.param(
            "INSERT INTO task_events (task_id, account_id, version, target, attempt, cause)"
            f"VALUES ({NOBODY}, :account, 1, 'queued', 0, 'test')",
            id="an event",
        ),
        pytest.param(rows.callback(NOBODY), id="a callback"),
        pytest.param(
            f"INSERT INTO findings (kind, provider, task_id, attempt) VALUES ('contradiction', 'lab', {NOBODY}, 1)",
            id="a finding",
        ),
        pytest.param(
            f"INSERT INTO losses (task_id, attempt, provider, cost, reason) VALUES ({NOBODY}, 1, 'lab', 1, 'x')",
            id="a loss",
        ),
        pytest.param("UPDATE tasks SET id = :fresh WHERE id = :queued", id="a task under another id"),
        pytest.param("DELETE FROM tasks WHERE id = :succeeded", id="a task taken from under its rows"),
        pytest.param("DELETE FROM accounts WHERE id = :account", id="an account taken from under its tasks"),
    ],
)
async def test_no_row_is_an_orphan(attacked: Attacked, sql: str) -> None:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await attacked.attack(sql)
    assert caught.type is Orphan


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(rows.callback(":running", number=9), id="a callback"),
        pytest.param(rows.asset(":archiving", number=9), id="an asset"),
        pytest.param(
            "INSERT INTO findings (kind, provider, task_id, attempt) VALUES ('contradiction', 'lab', :running, 9)",
            id="a finding",
        ),
        pytest.param(
            "INSERT INTO losses (task_id, attempt, provider, cost, reason) VALUES (:running, 9, 'lab', 1, 'x')",
            id="a loss",
        ),
    ],
)
async def test_no_row_belongs_to_an_attempt_that_was_never_made(attacked: Attacked, sql: str) -> None:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await attacked.attack(sql)
    assert caught.type is Orphan


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(rows.asset(":archiving", account=":other"), id="a picture"),
        pytest.param(
            "INSERT INTO task_events (task_id, account_id, version, target, attempt, cause)"
            "VALUES (:running, :other, 99, 'running', 1, 'test')",
            id="an event",
        ),
    ],
)
async def test_what_belongs_to_a_task_belongs_to_its_account(attacked: Attacked, sql: str) -> None:
    await attacked.impossible(sql)


RECEIPT = "INSERT INTO receipts (account_id, route, key, fingerprint, task_id, body, expires_at) VALUES "


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("INSERT INTO accounts (id, name) VALUES (:fresh, '')", "accounts_name_check"),
        (
            "INSERT INTO api_keys (id, account_id, secret_hash) VALUES ('k', :account, 'short')",
            "api_keys_secret_hash_check",
        ),
        ("INSERT INTO gates (name, failures) VALUES ('lab', -1)", "gates_failures_check"),
        (f"{RECEIPT}(:account, 'r', '', sha256('b'), :queued, '', clock_now())", "receipts_key_check"),
        (f"{RECEIPT}(:account, 'r', 'k', 'short', :queued, '', clock_now())", "receipts_fingerprint_check"),
    ],
    ids=["a nameless account", "half a hash", "failures below 0", "an empty key", "half a fingerprint"],
)
async def test_a_row_out_of_range_is_refused(attacked: Attacked, sql: str, words: str) -> None:
    await attacked.refused(sql, Check, words)


async def test_two_accounts_do_not_share_a_name(attacked: Attacked) -> None:
    await attacked.refused(
        "INSERT INTO accounts (id, name) VALUES (:fresh, 'default')", Unique, "accounts_name_key"
    )
