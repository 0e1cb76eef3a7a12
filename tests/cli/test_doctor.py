"""The doctor: silent about true books, and sure of the row where they are false."""

from __future__ import annotations

import io
import os
from datetime import timedelta

import pytest
from PIL import Image

from safelight.assets.store import new_key, staging_key
from safelight.db import audit
from safelight.db.auditlog import write_line
from safelight.db.database import Database
from safelight.domain.audit import Actor
from safelight.lifecycle.checks import CHECKS
from safelight.lifecycle.doctor import Finding, checks
from tests.cli.books import Books, png
from tests.cli.false_books import FALSE_BOOKS, SEEN_AS_WELL


async def test_true_books_have_no_finding(books: Books) -> None:
    assert await books.findings() == []


@pytest.mark.parametrize(("check", "statement", "row", "words"), FALSE_BOOKS)
async def test_a_false_row_is_named_by_its_check_and_by_no_other(
    books: Books, request: pytest.FixtureRequest, check: str, statement: str, row: str, words: str
) -> None:
    subject = "default" if row == "default" else str(getattr(books, row))
    await books.falsify(statement, *([] if row == "default" else [getattr(books, row)]))
    found = await books.findings()
    named = [one for one in found if one.check == check]
    if check != "orphans":  # which speaks of a task that is not there
        assert all(subject in f"{one.subject} {one.detail}" for one in named), found
    assert any(words in one.detail for one in named), found
    assert not any(finding.is_information for finding in named)
    faults = {finding.check for finding in found if not finding.is_information}
    assert faults == {check} | SEEN_AS_WELL.get(request.node.callspec.id, set())


@pytest.mark.parametrize(
    ("disabled", "words"),
    [("NULL", "deliveries that are due since"), ("clock_now()", "is out of use, but 1 deliveries")],
)
async def test_a_delivery_that_nobody_tries_is_named(books: Books, disabled: str, words: str) -> None:
    await books.falsify(
        "WITH endpoint AS ("
        " INSERT INTO webhook_endpoints (id, account_id, url, created_at, disabled_at, disabled_reason)"
        f" SELECT gen_random_uuid(), $1, 'https://shop.example', clock_now(), {disabled},"
        f" CASE WHEN {disabled}::timestamptz IS NULL THEN '' ELSE 'gone' END RETURNING id),"
        " event AS (INSERT INTO webhook_events (account_id, type, body, created_at)"
        " VALUES ($1, 'credits.low', '{}', clock_now()) RETURNING id)"
        " INSERT INTO deliveries (event_id, endpoint_id, account_id, status, due_at, created_at)"
        " SELECT event.id, endpoint.id, $1, 'pending', clock_now() - interval '1 hour', clock_now()"
        " FROM endpoint, event",
        books.account,
    )
    (finding,) = await books.findings()
    assert finding.check == "deliveries"
    assert words in finding.detail


async def test_two_holds_for_a_task_are_named(books: Books) -> None:
    await books.falsify("DROP INDEX entries_once_per_task")
    await books.falsify(
        "INSERT INTO entries (account_id, kind, task_id, available_delta, held_delta)"
        " SELECT account_id, kind, task_id, available_delta, held_delta FROM entries WHERE task_id = $1",
        books.queued,
    )
    assert Finding("entries", f"task {books.queued}", "has 2 holds in the ledger") in await books.findings()


async def test_one_provider_id_for_two_attempts_is_named(books: Books) -> None:
    await books.falsify("DROP INDEX attempts_provider_ref")
    await books.falsify("UPDATE attempts SET provider_ref = 'ref-1'")
    (finding,) = await books.findings("provider_refs")
    assert finding.subject == "lab-callback ref-1"
    assert str(books.submitting) in finding.detail


async def test_a_callback_applied_twice_is_named(books: Books) -> None:
    await books.falsify("DROP INDEX callbacks_applied_once")
    await books.falsify(
        "INSERT INTO callbacks (provider, task_id, attempt, upstream_status, verdict, body)"
        " SELECT 'lab-callback', $1, 1, 'done', 'applied', '' FROM generate_series(1, 2)",
        books.succeeded,
    )
    (finding,) = await books.findings("callbacks")
    assert finding.subject == f"task {books.succeeded}"
    assert "2 callbacks with status done" in finding.detail


async def test_an_attempt_left_open_behind_a_later_one_is_named(books: Books) -> None:
    await books.falsify("UPDATE tasks SET attempt = 2 WHERE id = $1", books.submitting)
    await books.falsify(
        "INSERT INTO attempts (task_id, number, provider, upstream_model, reference, images, answer_by)"
        " VALUES ($1, 2, 'lab-callback', 'callback', 'another', 2, clock_now())",
        books.submitting,
    )
    (finding,) = await books.findings("attempts")
    assert finding.detail == "made attempt 2 while attempt 1 was open"


async def test_a_missing_receipt_is_fine_once_its_key_has_expired(books: Books) -> None:
    await books.falsify("DELETE FROM receipts WHERE task_id = $1", books.succeeded)
    assert len(await books.findings("receipts")) == 1
    await books.database.shift_clock(timedelta(days=31))
    assert await books.findings("receipts") == []


async def test_an_open_task_has_its_receipt_however_old_it_is(books: Books) -> None:
    await books.falsify("DELETE FROM receipts WHERE task_id = $1", books.queued)
    await books.database.shift_clock(timedelta(days=31))
    (finding,) = await books.findings("receipts")
    assert finding.subject == f"task {books.queued}"


async def test_a_waiting_task_may_wait_long_for_capacity(books: Books) -> None:
    await books.falsify(
        "UPDATE tasks SET wake_at = clock_now() - interval '50 minutes' WHERE id = $1", books.queued
    )
    assert await books.findings("overdue") == []


async def test_a_review_is_told_with_its_reason_and_is_no_finding(books: Books) -> None:
    await books.falsify(
        "UPDATE tasks SET state = 'review', review_reason = 'no_progress',"
        " decide_by = clock_now() + interval '1 day' WHERE id = $1",
        books.submitting,
    )
    (told,) = await books.findings("reviews")
    assert told.is_information
    assert told.subject == f"task {books.submitting}"
    assert "no_progress" in told.detail


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("clock_now() + interval '1 minute', 'funds', 4", "after 4 failures in a row: funds"),
        ("clock_now() + interval '1 minute', 'rate_limited', 0", "is closed until"),
        ("NULL, 'faults', 2", "one task at a time"),
    ],
)
async def test_a_gate_that_keeps_tasks_away_is_told_and_is_no_finding(
    books: Books, values: str, words: str
) -> None:
    await books.falsify(
        f"INSERT INTO gates (name, closed_until, reason, failures) VALUES ('fal-2', {values})"
    )
    (told,) = await books.findings("gates")
    assert told.is_information
    assert told.subject == "gate fal-2"
    assert words in told.detail


async def test_a_task_that_stands_at_another_provider_than_its_attempt_is_named(books: Books) -> None:
    await books.falsify("UPDATE tasks SET provider = 'other' WHERE id = $1", books.submitting)
    (finding,) = await books.findings("attempts")
    assert str(books.submitting) in finding.subject
    assert "stands at other" in finding.detail


async def test_a_lost_picture_is_named(books: Books) -> None:
    await books.store.delete(books.picture)
    (finding,) = await books.findings()
    assert finding.check == "assets"
    assert str(books.succeeded) in finding.subject
    assert "missing" in finding.detail


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (png()[:-20], "bytes instead of"),
        (png(16).ljust(200, b"\0"), "bytes instead of"),
        (b"x" * len(png()), "not_an_image"),
    ],
)
async def test_changed_bytes_are_named(books: Books, data: bytes, words: str) -> None:
    await books.store.put(books.picture, data)
    (finding,) = await books.findings()
    assert finding.check == "assets"
    assert words in finding.detail


async def test_other_bytes_of_the_same_length_are_named(books: Books) -> None:
    other = io.BytesIO()
    Image.new("RGB", (8, 8), (30, 200, 30)).save(other, "PNG")
    assert len(other.getvalue()) == len(png())
    await books.store.put(books.picture, other.getvalue())
    (finding,) = await books.findings()
    assert "has the hash" in finding.detail


async def test_a_size_or_type_that_the_row_only_claims_is_named(books: Books) -> None:
    await books.falsify("UPDATE assets SET width = 9")
    (finding,) = await books.findings()
    assert finding.detail == "is 8x8 instead of 9x8"
    await books.falsify("UPDATE assets SET width = 8, content_type = 'image/webp'")
    (finding,) = await books.findings()
    assert finding.detail == "is image/png instead of image/webp"


async def test_bytes_are_left_alone_when_told_so(books: Books) -> None:
    await books.store.delete(books.picture)
    assert await books.findings(with_bytes=False) == []
    assert len(checks(with_bytes=False)) == len(CHECKS) - 1


async def test_bytes_without_an_owner_are_strays_after_two_days(books: Books) -> None:
    kept = [books.picture, staging_key(books.submitting, 1, 0)]
    strays = [new_key(books.account, suffix="png"), staging_key(books.failed, 1, 0)]
    for key in (kept[1], *strays):
        await books.store.put(key, b"x")
    assert await books.findings("strays") == []
    for key in (*kept, *strays):
        _age(books, key, days=3)
    found = await books.findings("strays")
    assert {finding.subject for finding in found} == {f"object {key}" for key in strays}


async def test_a_thousand_pictures_are_read_in_batches(books: Books) -> None:
    await books.falsify(
        "INSERT INTO assets SELECT gen_random_uuid(), account_id, task_id, attempt, number, 'a/' || number,"
        " content_type, width, height, bytes, sha256 FROM assets, generate_series(1, 450) AS number"
    )
    batches = [batch async for batch in audit.asset_batches(books.database, room=200)]
    assert [len(batch) for batch in batches] == [200, 200, 51]
    assert len({row.id for batch in batches for row in batch}) == 451


async def test_a_long_list_of_findings_is_counted_to_its_end_and_told_in_part(books: Books) -> None:
    await books.falsify(
        "INSERT INTO attempts (task_id, number, provider, upstream_model, reference, images, answer_by)"
        " SELECT gen_random_uuid(), 1, 'elsewhere', 'm', 'r' || number, 1, clock_now()"
        " FROM generate_series(1, 1200) AS number"
    )
    await books.falsify("DROP INDEX attempts_provider_ref")
    await books.falsify(
        "UPDATE attempts SET provider_ref = 'ref-' || ltrim(reference, 'r')::integer / 2"
        " WHERE provider = 'elsewhere' AND reference <> 'r1200'"
    )
    outcome = await books.outcome("provider_refs", shown=7)
    assert (len(outcome.findings), outcome.more, outcome.rows) == (7, 592, 1199)


async def test_two_attempts_under_one_reference_are_named(books: Books) -> None:
    await books.falsify("ALTER TABLE attempts DROP CONSTRAINT attempts_reference_key")
    try:
        await books.falsify("UPDATE attempts SET reference = 'one'")
        (finding,) = await books.findings("references")
        assert finding.subject == "reference one"
        assert str(books.submitting) in finding.detail
    finally:
        await books.falsify("DELETE FROM attempts")
        await books.falsify("ALTER TABLE attempts ADD CONSTRAINT attempts_reference_key UNIQUE (reference)")


async def test_an_attempt_after_one_that_delivered_is_named_unless_a_person_wanted_it(books: Books) -> None:
    await books.falsify(
        "INSERT INTO attempts (task_id, number, provider, upstream_model, reference, images, answer_by)"
        " VALUES ($1, 2, 'lab-callback', 'callback', 'another', 2, clock_now())",
        books.succeeded,
    )
    await books.falsify("UPDATE tasks SET attempt = 2 WHERE id = $1", books.succeeded)
    (finding,) = await books.findings("attempts")
    assert finding.detail == "made attempt 2 although attempt 1 had delivered"
    await books.falsify(
        "INSERT INTO decisions (task_id, attempt, version, review_reason, decision, reason_code, note, decided_by)"
        " VALUES ($1, 1, 3, 'archive_stuck', 'resubmit', 'risk_accepted', 'the bytes are lost', 'os:me')",
        books.succeeded,
    )
    assert await books.findings("attempts") == []


async def test_due_tasks_that_no_job_wakes_are_named(books: Books) -> None:
    await books.falsify(
        "UPDATE tasks SET wake_at = clock_now() - interval '10 minutes' WHERE id = $1", books.queued
    )
    assert await books.findings("wakeups") == []  # the job of its submit stands
    await books.falsify("DELETE FROM pgqueuer.pgqueuer; DELETE FROM pgqueuer.pgqueuer_log")
    (finding,) = await books.findings("wakeups")
    assert finding.subject == "lab-callback"
    assert "1 tasks that wait since" in finding.detail


async def test_due_tasks_behind_a_closed_gate_are_waited_for(books: Books) -> None:
    await books.falsify(
        "UPDATE tasks SET wake_at = clock_now() - interval '10 minutes' WHERE state = 'queued'"
    )
    await books.falsify("DELETE FROM pgqueuer.pgqueuer; DELETE FROM pgqueuer.pgqueuer_log")
    await books.falsify(
        "INSERT INTO gates (name, closed_until, reason)"
        " VALUES ('lab-callback', clock_now() + interval '1 minute', 'funds')"
    )
    assert await books.findings("wakeups") == []


async def test_a_gate_that_nobody_tries_again_is_named(books: Books) -> None:
    await books.falsify(
        "UPDATE tasks SET wake_at = clock_now() - interval '30 minutes' WHERE state = 'queued'"
    )
    await books.falsify(
        "INSERT INTO gates (name, closed_until, reason, failures)"
        " VALUES ('lab-callback', clock_now() - interval '20 minutes', 'faults', 3)"
    )
    (finding,) = await books.findings("gates")
    assert not finding.is_information
    assert "nobody does" in finding.detail


async def test_open_tasks_at_a_provider_that_is_not_in_use_are_named(books: Books) -> None:
    assert (await books.outcome("unattended", providers=["lab-callback"])).is_ok
    outcome = await books.outcome("unattended", providers=["elsewhere"])
    (finding,) = outcome.findings
    assert finding.subject == "provider lab-callback"
    assert "2 open tasks" in finding.detail


@pytest.mark.parametrize(
    ("breach", "mend", "subject", "words"),
    [
        (
            "ALTER TABLE entries DISABLE TRIGGER entries_append_only",
            "ALTER TABLE entries ENABLE TRIGGER entries_append_only",
            "rule entries_append_only",
            "of entries is switched off",
        ),
        (
            "ALTER TABLE settlements DROP CONSTRAINT settlement_sum",
            "ALTER TABLE settlements ADD CONSTRAINT settlement_sum CHECK (captured + released = held)",
            "rule settlement_sum",
            "is missing",
        ),
        ("DROP INDEX entries_once_per_task", "", "rule entries_once_per_task", "is missing"),
    ],
)
async def test_a_rule_that_is_not_in_force_is_named(
    books: Books, breach: str, mend: str, subject: str, words: str
) -> None:
    await books.falsify(breach)
    try:
        found = await books.findings()
    finally:
        if mend:
            await books.falsify(mend)
    assert found == [Finding("guards", subject, words)]


async def test_every_trigger_and_unique_index_of_the_schema_is_looked_for(database: Database) -> None:
    async with database.connection() as connection:
        rows = await connection.fetch(
            "SELECT tgname AS name FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
            " WHERE relnamespace = 'safelight'::regnamespace AND NOT tgisinternal"
            " UNION SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
            " WHERE relnamespace = 'safelight'::regnamespace AND indisunique"
            " AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)"
        )
    assert {row["name"] for row in rows} <= set(audit.guards())


async def test_a_changed_line_of_the_audit_log_is_named(books: Books) -> None:
    async with books.database.transaction() as connection:
        for number in range(3):
            await write_line(connection, Actor("os:me"), "test", f"thing:{number}")
    assert (await books.outcome("audit_log")).rows == 3
    await books.falsify("UPDATE audit_lines SET actor = 'os:you' WHERE id = 2")
    (finding,) = await books.findings()
    assert (finding.check, finding.subject) == ("audit_log", "line 2")


async def test_a_check_that_cannot_be_made_is_no_clean_bill(books: Books) -> None:
    await books.falsify("ALTER TABLE losses RENAME TO mislaid")
    try:
        outcome = await books.outcome("orphans")
    finally:
        await books.falsify("ALTER TABLE mislaid RENAME TO losses")
    assert not outcome.is_ok
    assert "losses" in outcome.trouble


async def test_every_check_looks_at_rows(books: Books) -> None:
    seen = {outcome.check.name: outcome.rows for outcome in await books.outcomes()}
    assert seen["entries"] == 4
    assert seen["balances"] == 1
    assert seen["overdue"] == 2
    assert seen["assets"] == 1
    assert seen["strays"] == 1


def test_every_statement_of_a_check_says_what_it_finds() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(check.invariant.endswith(".") for check in CHECKS)


def _age(books: Books, key: str, *, days: int) -> None:
    path = books.store._root / key
    modified = path.stat().st_mtime - days * 86_400
    os.utime(path, (modified, modified))
