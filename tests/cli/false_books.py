"""Rows that lie, and what the doctor must say of each."""

from __future__ import annotations

import pytest

FALSE_BOOKS = [
    pytest.param(
        "balances", "UPDATE accounts SET available = available + 1", "default", "available", id="a balance"
    ),
    pytest.param(
        "holds",
        "UPDATE tasks SET held = 3, n = 1 WHERE state = 'queued'",
        "default",
        "open tasks hold",
        id="a hold",
    ),
    pytest.param(
        "open_tasks", "UPDATE accounts SET open_tasks = 9", "default", "counts 9", id="a count of tasks"
    ),
    pytest.param(
        "entries", "DELETE FROM entries WHERE task_id = $1", "queued", "has no hold", id="a missing entry"
    ),
    pytest.param(
        "entries",
        "UPDATE entries SET available_delta = -1, held_delta = 1 WHERE task_id = $1",
        "queued",
        "holds 6, but the ledger holds 1",
        id="an entry of another amount",
    ),
    pytest.param(
        "settlements",
        "DELETE FROM settlements WHERE task_id = $1",
        "succeeded",
        "without a settlement",
        id="a missing settlement",
    ),
    pytest.param(
        "settlements",
        "INSERT INTO settlements SELECT id, account_id, held, 0, held FROM tasks WHERE id = $1",
        "queued",
        "is queued, but has a settlement",
        id="a settlement too early",
    ),
    pytest.param(
        "settlements",
        "UPDATE settlements SET captured = 1, released = 0, held = 1 WHERE task_id = $1",
        "succeeded",
        "held 6, but captured 1",
        id="a settlement that does not add up",
    ),
    pytest.param(
        "settlements",
        "DELETE FROM entries WHERE kind = 'settle' AND task_id = $1",
        "failed",
        "the ledger says 0 of 0",
        id="a settlement that was not posted",
    ),
    pytest.param(
        "captures",
        "UPDATE settlements SET captured = 6, released = 0 WHERE task_id = $1",
        "succeeded",
        "captured 6 for 1 pictures at 3",
        id="a capture without pictures for it",
    ),
    pytest.param(
        "captures",
        "DELETE FROM assets WHERE task_id = $1",
        "succeeded",
        "has succeeded without a picture",
        id="a success without a picture",
    ),
    pytest.param(
        "captures",
        "UPDATE settlements SET captured = 1, released = 5 WHERE task_id = $1",
        "failed",
        "is failed, but captured 1",
        id="a failure that was paid for",
    ),
    pytest.param(
        "history",
        "UPDATE tasks SET version = 9 WHERE id = $1",
        "queued",
        "is queued at version 9, but its history ends with queued at version 1",
        id="a version without its move",
    ),
    pytest.param(
        "history", "DELETE FROM task_events WHERE task_id = $1", "queued", "has no history", id="no history"
    ),
    pytest.param(
        "history",
        "DELETE FROM task_events WHERE version = 2 AND task_id = $1",
        "succeeded",
        "jumps from version 1 to 3",
        id="a hole in a history",
    ),
    pytest.param(
        "history",
        "UPDATE task_events SET target = 'running' WHERE version = 2 AND task_id = $1",
        "failed",
        "goes from queued to running, where no arrow goes",
        id="a move without an arrow",
    ),
    pytest.param(
        "history",
        "UPDATE task_events SET source = 'running' WHERE version = 3 AND task_id = $1",
        "succeeded",
        "leaves running, but stood at submitting",
        id="a move from elsewhere",
    ),
    pytest.param(
        "endings",
        "INSERT INTO task_events (task_id, account_id, version, source, target, attempt, cause)"
        " SELECT id, account_id, 9, 'queued', 'failed', 0, 'test' FROM tasks WHERE id = $1",
        "succeeded",
        "ended 2 times",
        id="a second ending",
    ),
    pytest.param(
        "receipts", "DELETE FROM receipts WHERE task_id = $1", "queued", "has no receipt", id="no receipt"
    ),
    pytest.param(
        "receipts",
        "UPDATE receipts SET body = '{}' WHERE task_id = $1",
        "queued",
        "names another task",
        id="a receipt for something else",
    ),
    pytest.param(
        "attempts",
        "DELETE FROM attempts WHERE task_id = $1",
        "succeeded",
        "is at attempt 1, but has none",
        id="a call without its intent",
    ),
    pytest.param(
        "attempts",
        "UPDATE attempts SET outcome = 'failed', ended_at = clock_now() WHERE task_id = $1",
        "submitting",
        "attempt 1 has ended",
        id="a call in flight whose intent has ended",
    ),
    pytest.param(
        "attempts",
        "UPDATE attempts SET number = 2 WHERE task_id = $1",
        "submitting",
        "is at attempt 1, but has 2",
        id="a hole in the numbers",
    ),
    pytest.param(
        "overdue",
        "UPDATE tasks SET wake_at = clock_now() - interval '4 minutes' WHERE id = $1",
        "submitting",
        "nothing woke it",
        id="a task that nobody woke",
    ),
    pytest.param(
        "overdue",
        "UPDATE tasks SET start_by = clock_now() - interval '6 minutes' WHERE id = $1",
        "queued",
        "had to start by",
        id="a task past its start",
    ),
    pytest.param(
        "overdue",
        "UPDATE tasks SET deadline_at = clock_now() - interval '6 minutes' WHERE id = $1",
        "submitting",
        "had to be done by",
        id="a task past its deadline",
    ),
    pytest.param(
        "overdue",
        "UPDATE tasks SET state = 'review', review_reason = 'deadline',"
        " decide_by = clock_now() - interval '6 minutes' WHERE id = $1",
        "submitting",
        "had to be decided by",
        id="a review that nobody decided",
    ),
    pytest.param(
        "overdrafts",
        "DELETE FROM entries WHERE kind = 'grant';"
        " INSERT INTO entries (account_id, kind, available_delta, held_delta)"
        " SELECT id, 'grant', 1000, 0 FROM accounts",
        "default",
        "stood at -",
        id="credits that were spent before they came",
    ),
    pytest.param(
        "orphans",
        "UPDATE attempts SET task_id = gen_random_uuid() WHERE task_id = $1",
        "submitting",
        "does not exist, but has attempts",
        id="an attempt of no task",
    ),
    pytest.param(
        "owners",
        "UPDATE settlements SET account_id = gen_random_uuid() WHERE task_id = $1",
        "succeeded",
        "belongs to another account than its settlement",
        id="a settlement of another account",
    ),
    pytest.param(
        "history",
        "UPDATE task_events SET attempt = 9 WHERE version = 2 AND task_id = $1",
        "succeeded",
        "falls back from attempt 9 to 1",
        id="an attempt that falls back",
    ),
    pytest.param(
        "endings",
        "UPDATE tasks SET finished_at = finished_at - interval '1 day' WHERE id = $1",
        "succeeded",
        "but its history says",
        id="an ending at another time",
    ),
    pytest.param(
        "bounds",
        "UPDATE attempts SET sends = 9 WHERE task_id = $1",
        "submitting",
        "was sent 9 times",
        id="a send too many",
    ),
    pytest.param(
        "bounds",
        "INSERT INTO callbacks (provider, task_id, attempt, verdict, body)"
        " SELECT 'lab-callback', $1::uuid, 1, 'duplicate', '' FROM generate_series(1, 100)",
        "succeeded",
        "keeps 100 callbacks",
        id="callbacks that fill the disk",
    ),
    pytest.param(
        "callers",
        "UPDATE task_events SET cause = 'callback' WHERE version = 3 AND task_id = $1",
        "succeeded",
        "a callback that is not in the inbox",
        id="a move by a callback that nobody received",
    ),
    pytest.param(
        "inputs",
        "UPDATE tasks SET images = ARRAY[gen_random_uuid()] WHERE id = $1",
        "queued",
        "which is gone",
        id="an input that is gone",
    ),
    pytest.param(
        "erasures",
        "UPDATE assets SET doomed_at = clock_now() - interval '2 days' WHERE task_id = $1",
        "succeeded",
        "wait to be deleted",
        id="a picture that is never deleted",
    ),
    pytest.param(
        "batches",
        "WITH batch AS (INSERT INTO batches (id, account_id, fingerprint, items, at_once, start_in_s, state)"
        " SELECT $1, account_id, sha256('x'), 1, 5, 60, 'open' FROM tasks WHERE id = $1)"
        " UPDATE tasks SET batch_id = id, batch_position = 0, wake_at = 'infinity' WHERE id = $1",
        "queued",
        "lets 1 items wait, although 0 of 5 are at work",
        id="an item that is never let go",
    ),
    pytest.param(
        "batches",
        "INSERT INTO batches (id, account_id, fingerprint, items, at_once, start_in_s, state)"
        " SELECT $1, account_id, sha256('x'), 1, 5, 60, 'open' FROM tasks WHERE id = $1",
        "queued",
        "has no open item, but is not finished",
        id="a batch without an end",
    ),
    pytest.param(
        "gates",
        "INSERT INTO gates (name, closed_until, reason) VALUES ('default', clock_now() + interval '9 days', 'x')",
        "default",
        "is closed until",
        id="a gate that stays closed",
    ),
    pytest.param(
        "callbacks",
        "INSERT INTO callbacks (provider, task_id, attempt, verdict, body)"
        " VALUES ('lab-callback', $1, 7, 'applied', '')",
        "succeeded",
        "which was not made there",
        id="a callback for an attempt that was never made",
    ),
    pytest.param(
        "events",
        "INSERT INTO webhook_endpoints (id, account_id, url, created_at)"
        " SELECT gen_random_uuid(), account_id, 'https://shop.example', finished_at - interval '1 microsecond'"
        " FROM tasks WHERE id = $1",
        "failed",
        "no event tells of it",
        id="an end that was not told",
    ),
    pytest.param(
        "events",
        "INSERT INTO webhook_events (account_id, type, task_id, body, created_at)"
        ' SELECT account_id, \'task.ready\', id, \'{"data":{"credits":{"captured":0}}}\', finished_at'
        " FROM tasks WHERE id = $1",
        "failed",
        "its event says task.ready",
        id="an event that lies",
    ),
]


SEEN_AS_WELL = {
    # A hold that is not price times count, or an entry that is gone, is also a sum that does not come out.
    "a hold": {"entries"},
    "a missing entry": {"balances"},
    "an entry of another amount": {"balances"},
    "a settlement that was not posted": {"balances"},
    # What a settlement says is compared with the ledger and with the pictures.
    "a settlement that does not add up": {"captures"},
    "a capture without pictures for it": {"settlements"},
    "a failure that was paid for": {"settlements"},
    "a second ending": {"history"},
    "a review that nobody decided": {"history"},
    "an attempt of no task": {"attempts"},
}
"""Which other checks speak of the same lie, because it breaks their invariant too."""
