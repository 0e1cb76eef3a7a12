"""Mutants of what is remembered: accepting, ending, the ledger, commits and clocks."""

from __future__ import annotations

from tests.proof.mutants_form import Edit, Mutant

ACCEPT = "tests/lifecycle/test_accept.py::"
AT_ONE_ROW = "tests/races/test_two_at_one_row.py::"
MONEY = "tests/db/test_money.py::"
GROUP = "db/group.py"
SCHEMA = "db/migrations/versions/0001_first.sql"

OF_BOOKS: tuple[Mutant, ...] = (
    Mutant(
        "settles-from-any-state",
        "a task ends once, from the state it was decided in",
        (
            Edit(
                "lifecycle/settle.py",
                "if row is None or row.attempt != ending.attempt or changes.state_of(row.id) not in ending.sources:",
                "if row is None:",
            ),
        ),
        (f"{AT_ONE_ROW}test_the_same_settlement_twice_captures_once",),
        seen_as="(AssertionError|assert |safelight.errors.LedgerError: no arrow)",
    ),
    Mutant(
        "settles-without-a-lock",
        "a task is locked before it is judged",
        (
            Edit(
                "db/sql/tasks.sql",
                "FROM tasks WHERE id = ANY(:ids::uuid[]) ORDER BY id FOR NO KEY UPDATE;",
                "FROM tasks WHERE id = ANY(:ids::uuid[]) ORDER BY id;",
            ),
        ),
        (f"{AT_ONE_ROW}test_a_cancel_that_waits_for_a_claim_becomes_a_wish",),
    ),
    Mutant(
        "no-unique-resolution",
        "a hold is resolved by one settlement",
        (
            Edit(
                SCHEMA,
                "CREATE TABLE settlements (\n    task_id uuid PRIMARY KEY,",
                "CREATE TABLE settlements (\n    task_id uuid NOT NULL,",
            ),
        ),
        (f"{MONEY}test_a_task_is_settled_once",),
    ),
    Mutant(
        "late-news-tells-the-cost",
        "what an attempt that has ended cost stays in the books",
        (
            Edit(
                "lifecycle/advance.py",
                "if not is_over or decision.verdict is Verdict.DUPLICATE:",
                "if update.status is not UpdateStatus.HINT:",
            ),
            Edit(
                "db/sql/tasks.sql",
                "CASE WHEN attempts.outcome IS NULL THEN coalesce(item.cost, attempts.cost)",
                "CASE WHEN true THEN coalesce(item.cost, attempts.cost)",
            ),
        ),
        ("tests/lifecycle/test_costs.py::test_late_callbacks_do_not_change_what_an_attempt_cost",),
    ),
    Mutant(
        "no-sum-of-a-settlement",
        "captured and released make up what was held",
        (
            Edit(
                SCHEMA,
                "    CONSTRAINT settlement_sum CHECK (captured + released = held)",
                "    CONSTRAINT settlement_sum CHECK (captured + released >= 0)",
            ),
        ),
        (f"{MONEY}test_a_settlement_adds_up",),
    ),
    Mutant(
        "captures-what-was-not-delivered",
        "a part of the pictures costs a part of the price",
        (
            Edit(
                "lifecycle/changes.py",
                "unit_price=row.unit_price, delivered=len(assets))",
                "unit_price=row.unit_price, delivered=row.n if assets else 0)",
            ),
        ),
        (
            "tests/lifecycle/test_archive.py::test_some_of_several_pictures_are_delivered_and_the_rest_is_released",
        ),
        seen_as="asyncpg.exceptions.IntegrityConstraintViolationError: task .* captured",
    ),
    Mutant(
        "answers-before-the-commit",
        "who has read an answer finds its task after any crash",
        (
            Edit(
                GROUP,
                "results = await self._transact([item for item, _ in taken])",
                "results = await self._transact([item for item, _ in taken], taken)",
            ),
            Edit(GROUP, "(self, items: list[ItemT])", "(self, items: list[ItemT], taken)"),
            Edit(
                GROUP,
                "                    return results\n",
                "                    for (_, future), result in zip(taken, results):\n"
                "                        _resolve(future, result)\n"
                "                    await asyncio.sleep(0.2)\n"
                "                    return results\n",
            ),
        ),
        ("tests/db/test_group.py::test_a_call_alone_is_committed_when_it_returns",),
    ),
    Mutant(
        "hold-outside-the-accept",
        "task, hold and receipt exist together or not at all",
        (
            Edit(
                "db/sql/tasks.sql",
                "SELECT account_id, 'hold', id, -held, held, now FROM item, moment",
                "SELECT account_id, 'hold', id, -held, held, now FROM item, moment WHERE false",
            ),
        ),
        (f"{ACCEPT}test_an_accepted_task_has_its_hold_receipt_event_and_permit_together",),
        seen_as="asyncpg.exceptions",
    ),
    Mutant(
        "accepts-without-its-parts",
        "the database refuses a task without hold and receipt",
        (
            Edit(
                SCHEMA,
                "CREATE CONSTRAINT TRIGGER tasks_accepted_whole AFTER INSERT ON tasks DEFERRABLE",
                "CREATE CONSTRAINT TRIGGER tasks_accepted_whole AFTER DELETE ON tasks DEFERRABLE",
            ),
        ),
        (f"{MONEY}test_a_task_is_accepted_whole_and_by_one_account",),
    ),
    Mutant(
        "job-outside-the-accept",
        "the job is enqueued in the same commit as the task",
        (
            Edit(
                "lifecycle/accept.py",
                "            await enqueue_permits(connection, sorted(due))\n",
                "",
            ),
        ),
        (f"{ACCEPT}test_an_accepted_task_has_its_hold_receipt_event_and_permit_together",),
    ),
    Mutant(
        "key-takes-any-body",
        "a key stands for one body",
        (Edit("lifecycle/accept.py", "if receipt.fingerprint != fingerprint:", "if False:"),),
        (f"{ACCEPT}test_another_body_under_a_used_key_is_refused_and_changes_nothing",),
    ),
    Mutant(
        "key-forgotten",
        "one key makes one task",
        (
            Edit(
                "lifecycle/accept.py",
                "                receipt = receipts.get((wish.account_id, wish.key))\n",
                "                receipt = None\n",
            ),
        ),
        (f"{ACCEPT}test_fifty_submits_at_once_with_one_key_make_one_task",),
    ),
    Mutant(
        "spends-what-is-not-there",
        "no account is overdrawn",
        (Edit("lifecycle/accept.py", "if account.available < held:", "if account.available < 0:"),),
        (f"{ACCEPT}test_too_few_credits_leave_nothing_and_the_key_stays_free",),
        seen_as="asyncpg.exceptions",
    ),
    Mutant(
        "cancel-undoes-a-success",
        "what has ended stays as it ended",
        (Edit("lifecycle/accept.py", "            if row.state in WAITING:\n", "            if True:\n"),),
        (f"{ACCEPT}test_archiving_review_and_ended_tasks_cannot_be_canceled",),
        seen_as="safelight.errors.LedgerError: no arrow",
    ),
    Mutant(
        "history-can-be-rewritten",
        "ledger and history are append-only",
        (
            Edit(
                SCHEMA,
                "CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE ON entries",
                "CREATE TRIGGER entries_append_only BEFORE DELETE ON entries",
            ),
        ),
        (f"{MONEY}test_the_ledger_and_the_history_are_append_only",),
    ),
    Mutant(
        "lease-by-another-clock",
        "leases end by the one clock",
        (
            Edit(
                "db/sql/tasks.sql",
                "AND wake_at <= clock_now()\n    ORDER BY wake_at LIMIT :room",
                "AND wake_at <= now()\n    ORDER BY wake_at LIMIT :room",
            ),
        ),
        ("tests/db/test_clock.py::test_a_lease_ends_with_the_clock",),
    ),
    Mutant(
        "drain-takes-what-came-later",
        "only what nobody claimed in a day is forgotten",
        (
            Edit(
                "db/sql/inbox.sql",
                "DELETE FROM callbacks\nWHERE verdict = 'unknown' AND task_id IS NULL "
                "AND received_at < clock_now() - interval '24 hours';",
                "DELETE FROM callbacks WHERE id <= (SELECT max(id) FROM callbacks WHERE task_id IS NULL);",
            ),
        ),
        ("tests/lifecycle/test_receive.py::test_tidying_takes_the_old_and_unclaimed_alone",),
    ),
)
