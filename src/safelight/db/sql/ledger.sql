-- name: lock_accounts
-- Lock accounts in the one order (before tasks) and read what they may spend.
SELECT id, available, open_tasks, clock_now() AS now
FROM accounts WHERE id = ANY(:ids::uuid[]) ORDER BY id FOR NO KEY UPDATE;

-- name: settle
-- T5: terminal state, asset rows, settlement, entry and event in one statement; a lost condition settles nothing.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now),
item AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:items::json) AS item (
        id uuid, version integer, source text, target text, captured bigint, released bigint,
        failure_class text, failure_code text, cause text, assets jsonb)
),
ended AS (
    UPDATE tasks
    SET state = item.target, version = tasks.version + 1, wake_at = NULL, finished_at = now,
        failure_class = item.failure_class, failure_code = item.failure_code, review_reason = NULL, decide_by = NULL
    FROM item, moment
    WHERE tasks.id = item.id AND tasks.version = item.version AND tasks.state = item.source
    RETURNING tasks.id, tasks.account_id, tasks.version, tasks.attempt, tasks.held, item.source, item.target,
              item.captured, item.released, item.cause, item.failure_class, item.failure_code, item.assets
),
settlement AS (
    INSERT INTO settlements (task_id, account_id, held, captured, released, created_at)
    SELECT id, account_id, held, captured, released, now FROM ended, moment
),
entry AS (
    INSERT INTO entries (account_id, kind, task_id, available_delta, held_delta, created_at)
    SELECT account_id, 'settle', id, released, -held, now FROM ended, moment
),
asset AS (
    INSERT INTO assets (id, account_id, task_id, attempt, position, store_key, content_type, width, height, bytes,
                        sha256, created_at)
    SELECT asset.id, ended.account_id, ended.id, ended.attempt, asset.position, asset.store_key, asset.content_type,
           asset.width, asset.height, asset.bytes, decode(asset.sha256, 'hex'), now
    FROM ended CROSS JOIN moment CROSS JOIN LATERAL jsonb_to_recordset(ended.assets) AS asset (
        id uuid, position smallint, store_key text, content_type text, width integer, height integer, bytes bigint,
        sha256 text)
),
loss AS (
    -- What the provider charged for attempts that brought the customer nothing is the operator's; where it may have
    -- charged without telling (given up, or known to be done but not delivered) the loss is of unknown size.
    INSERT INTO losses (task_id, attempt, provider, cost, reason, created_at)
    SELECT ended.id, attempts.number, attempts.provider, attempts.cost, ended.target, now
    FROM ended JOIN attempts ON attempts.task_id = ended.id CROSS JOIN moment
    WHERE (attempts.cost > 0 OR (attempts.cost IS NULL AND (
               attempts.outcome IN ('succeeded', 'abandoned')
               OR (attempts.outcome IS NULL AND attempts.number = ended.attempt AND ended.source = 'review'))))
      AND (ended.target <> 'succeeded' OR attempts.number <> ended.attempt)
),
told AS (
    -- What webhooks will say, where somebody listens; a trigger makes the deliveries. Small whatever was drawn: of very
    -- many pictures the first 200 are named.
    INSERT INTO webhook_events (account_id, type, task_id, body, created_at)
    SELECT account_id, CASE target WHEN 'succeeded' THEN 'task.ready' ELSE 'task.failed' END, id,
           convert_to(json_build_object(
               'type', CASE target WHEN 'succeeded' THEN 'task.ready' ELSE 'task.failed' END,
               'timestamp', to_char(now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
               'data', json_build_object(
                   'task_id', id, 'status', CASE target WHEN 'succeeded' THEN 'ready' ELSE 'failed' END,
                   'version', version,
                   'failure', CASE WHEN failure_code IS NOT NULL
                              THEN json_build_object('class', failure_class, 'code', failure_code) END,
                   'assets', (SELECT coalesce(json_agg(asset.id ORDER BY asset.position), '[]')
                              FROM jsonb_to_recordset(assets) AS asset (id uuid, position smallint)
                              WHERE asset.position < 200),
                   'asset_count', jsonb_array_length(assets),
                   'credits', json_build_object('captured', captured, 'released', released))
           )::text, 'UTF8'), now
    FROM ended CROSS JOIN moment
    WHERE EXISTS (SELECT FROM webhook_endpoints AS endpoint
                  WHERE endpoint.account_id = ended.account_id AND endpoint.deleted_at IS NULL)
    ORDER BY id
    RETURNING task_id
)
INSERT INTO task_events (task_id, account_id, version, source, target, attempt, cause, detail, created_at)
SELECT id, account_id, version, source, target, attempt, cause, coalesce(failure_code, ''), now FROM ended, moment
RETURNING task_id, EXISTS (SELECT FROM told WHERE told.task_id = task_events.task_id) AS is_told;

-- name: insert_entry!
-- A grant or an adjustment by an operator; the balance follows by trigger.
INSERT INTO entries (account_id, kind, available_delta, held_delta, note)
VALUES (:account_id, :kind, :amount, 0, :note);
