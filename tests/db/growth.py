"""A hundred thousand tasks, or more, as a busy installation has them, made by the server itself in a few seconds."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

TASKS = 100_000
WAITING = 10_000
RUNNING = 2_000
OTHERS = 200
ACCOUNTS = 200

BIG = frozenset(
    {"tasks", "attempts", "entries", "task_events", "callbacks", "receipts", "settlements", "assets"}
)
"""Tables that no statement of the daily work may read whole."""

# Ids are ordered like UUIDv7. The first tasks are `finished`, 87,800 of a hundred thousand; then come 10,000 that
# wait, all of account 1; 2,000 that run upstream; and 50 each of those that wait of other accounts, are copied, are in
# review, and are being submitted. What lies beside a finished task is made for every second one, to save time.
_TASKS = """
CREATE TEMP TABLE plan AS
SELECT i, ('01900000-' || lpad(to_hex(i >> 16), 4, '0') || '-7' || lpad(to_hex((i >> 4) & 4095), 3, '0')
           || '-8000-' || lpad(to_hex(i), 12, '0'))::uuid AS id,
       CASE WHEN i <= {finished}
            THEN CASE WHEN i % 20 = 0 THEN 'failed' WHEN i % 50 = 1 THEN 'blocked' ELSE 'succeeded' END
            WHEN i <= {waiting} THEN CASE WHEN i % 10 = 0 THEN 'retrying' ELSE 'queued' END
            WHEN i <= {running} THEN 'running'
            WHEN i % 4 = 0 THEN 'queued' WHEN i % 4 = 1 THEN 'archiving'
            WHEN i % 4 = 2 THEN 'review' ELSE 'submitting' END AS state,
       CASE WHEN i > {finished} AND i <= {waiting} THEN 1 ELSE 1 + i % {accounts} END AS account,
       (ARRAY['lab-callback', 'lab-callback', 'lab-poll', 'lab-sync'])[1 + i % 4] AS provider,
       clock_now() - make_interval(secs => ({tasks} - i) * 2) AS created
FROM generate_series(1, {tasks}) AS i;
ALTER TABLE plan ADD COLUMN has_all boolean GENERATED ALWAYS AS (i > {finished} OR i % 2 = 0) STORED;
ALTER TABLE plan ADD COLUMN is_ended boolean GENERATED ALWAYS AS (state IN ('succeeded', 'failed', 'blocked')) STORED;
UPDATE plan SET provider = 'lab-callback' WHERE account = 1 AND state IN ('queued', 'retrying');
CREATE TEMP TABLE owner AS SELECT number, gen_random_uuid() AS id FROM generate_series(1, {accounts}) AS number;
INSERT INTO accounts (id, name, available, held, open_tasks)
SELECT owner.id, 'account ' || number, 100000, 2 * count(*) FILTER (WHERE NOT is_ended),
       count(*) FILTER (WHERE NOT is_ended)
FROM owner JOIN plan ON plan.account = number GROUP BY owner.id, number;
INSERT INTO gates (name) VALUES ('lab-callback'), ('lab-poll'), ('lab-sync');
INSERT INTO tasks (id, account_id, model, operation, prompt, n, provider, upstream_model, unit_price, held, state,
                   version, attempt, wake_at, start_by, deadline_s, review_reason, decide_by, failure_class,
                   failure_code, created_at, state_since, finished_at)
SELECT plan.id, owner.id, provider, 'generate', 'a red shoe on white, number ' || i, 2, provider, provider, 1, 2, state,
       3,
       CASE WHEN state = 'queued' THEN 0 ELSE 1 END,
       CASE WHEN state IN ('queued', 'retrying', 'submitting') THEN clock_now() - make_interval(secs => i % 600)
            WHEN NOT is_ended THEN clock_now() + make_interval(secs => i % 1000 - 10) END,
       clock_now() + make_interval(secs => CASE WHEN i % 1000 = 0 THEN -5 ELSE 3000 END),
       3600, CASE WHEN state = 'review' THEN 'deadline' END,
       CASE WHEN state = 'review' THEN clock_now() + interval '1 day' END,
       CASE state WHEN 'failed' THEN 'upstream_fault' WHEN 'blocked' THEN 'content_blocked' END,
       CASE WHEN state IN ('failed', 'blocked') THEN 'generation_failed' END,
       created, created, CASE WHEN is_ended THEN created + interval '20 seconds' END
FROM plan JOIN owner ON owner.number = plan.account ORDER BY i;
"""
_BESIDE = """
INSERT INTO attempts (task_id, number, provider, upstream_model, reference, images, sent_at, answer_by, provider_ref,
                      accepted_at, looked_at, run_s, noticed_by, outcome, ended_at, created_at)
SELECT id, 1, provider, provider, replace(id::text, '-', '') || '-1', 2, created, created + interval '1 minute',
       'job-' || i, CASE WHEN state <> 'submitting' THEN created END, NULL,
       CASE WHEN state = 'succeeded' THEN 5 + i % 20 END,
       CASE WHEN is_ended THEN CASE WHEN i % 5 = 0 THEN 'poll' ELSE 'callback' END END,
       CASE WHEN is_ended THEN state END,
       CASE WHEN is_ended THEN created + interval '20 seconds' END, created
FROM plan WHERE state <> 'queued' AND has_all ORDER BY i;
INSERT INTO receipts (account_id, route, key, fingerprint, task_id, body, created_at, expires_at)
SELECT owner.id, 'POST /v1/tasks', 'key-' || i, sha256('body'), plan.id, '{}', created, created + interval '30 days'
FROM plan JOIN owner ON owner.number = plan.account ORDER BY i;
INSERT INTO entries (account_id, kind, task_id, available_delta, held_delta, created_at)
SELECT owner.id, kind, plan.id, CASE kind WHEN 'hold' THEN -2 ELSE 0 END, CASE kind WHEN 'hold' THEN 2 ELSE -2 END,
       created
FROM plan JOIN owner ON owner.number = plan.account CROSS JOIN unnest(ARRAY['hold', 'settle']) AS kind
WHERE kind = 'hold' OR (is_ended AND has_all) ORDER BY i;
INSERT INTO settlements (task_id, account_id, held, captured, released, created_at)
SELECT plan.id, owner.id, 2, 2, 0, created FROM plan JOIN owner ON owner.number = plan.account
WHERE is_ended AND has_all ORDER BY i;
INSERT INTO assets (id, account_id, task_id, attempt, position, store_key, content_type, width, height, bytes, sha256)
SELECT plan.id, owner.id, plan.id, 1, 0, 'key-' || i, 'image/png', 64, 64, 1000, sha256('picture')
FROM plan JOIN owner ON owner.number = plan.account WHERE state = 'succeeded' AND has_all ORDER BY i;
INSERT INTO task_events (task_id, account_id, version, source, target, attempt, cause, created_at)
SELECT plan.id, owner.id, version, CASE version WHEN 1 THEN NULL ELSE 'running' END, state, 1, 'test', created
FROM plan JOIN owner ON owner.number = plan.account CROSS JOIN unnest(ARRAY[1, 3]) AS version
WHERE version = 1 OR has_all ORDER BY i;
INSERT INTO callbacks (provider, task_id, attempt, provider_ref, upstream_status, verdict, body, received_at)
SELECT provider, id, 1, 'job-' || i, 'done', 'applied', '{}', created FROM plan
WHERE state = 'succeeded' AND has_all ORDER BY i;
INSERT INTO callbacks (provider, provider_ref, upstream_status, verdict, body)
SELECT 'lab-callback', 'early-' || i, 'done', 'unknown', '{}' FROM generate_series(1, 500) AS i;
"""


@dataclass(frozen=True, slots=True)
class Grown:
    """A database of that size, and samples of what is in it."""

    url: str
    samples: dict[str, list[str]]
    busiest_account: str
    ordinary_account: str


async def grow(connection: asyncpg.Connection, url: str, *, tasks: int = TASKS) -> Grown:
    """Fill a migrated, empty database past its triggers, and let the planner know what is there."""
    finished = tasks - WAITING - RUNNING - OTHERS
    waiting = finished + WAITING
    plan = _TASKS.format(
        tasks=tasks, finished=finished, waiting=waiting, running=waiting + RUNNING, accounts=ACCOUNTS
    )
    async with connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute("SET LOCAL synchronous_commit = off")
        await connection.execute(plan)
        await connection.execute(_BESIDE)
    await connection.execute("ANALYZE")
    samples = {
        row["state"]: row["ids"]
        for row in await connection.fetch(
            "SELECT state, (array_agg(id::text ORDER BY i DESC))[:64] AS ids FROM plan GROUP BY state"
        )
    }
    owners = await connection.fetch("SELECT id::text FROM owner WHERE number IN (1, 7) ORDER BY number")
    return Grown(url, samples, owners[0]["id"], owners[1]["id"])
