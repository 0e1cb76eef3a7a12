-- name: read_task^
-- One task of an account with its settlement and its assets.
SELECT tasks.id, tasks.account_id, tasks.state, tasks.model, tasks.operation, tasks.prompt, tasks.n, tasks.percent,
       tasks.position, tasks.failure_class, tasks.failure_code, tasks.review_reason, tasks.held, tasks.metadata, tasks.created_at,
       tasks.finished_at, settlements.captured, settlements.released, listed.assets
FROM tasks
LEFT JOIN settlements ON settlements.task_id = tasks.id
CROSS JOIN LATERAL (
    SELECT json_agg(json_build_object(
        'id', assets.id, 'content_type', assets.content_type, 'width', assets.width, 'height', assets.height,
        'bytes', assets.bytes, 'sha256', encode(assets.sha256, 'hex')) ORDER BY assets.position) AS assets
    FROM assets WHERE assets.task_id = tasks.id
) AS listed
WHERE tasks.account_id = :account_id AND tasks.id = :id;

-- name: list_tasks
-- Tasks of an account in any of these states, newest first, older than `before`.
SELECT tasks.id, tasks.account_id, tasks.state, tasks.model, tasks.operation, tasks.prompt, tasks.n, tasks.percent,
       tasks.position, tasks.failure_class, tasks.failure_code, tasks.review_reason, tasks.held, tasks.metadata, tasks.created_at,
       tasks.finished_at, settlements.captured, settlements.released, listed.assets
FROM tasks
LEFT JOIN settlements ON settlements.task_id = tasks.id
CROSS JOIN LATERAL (
    SELECT json_agg(json_build_object(
        'id', assets.id, 'content_type', assets.content_type, 'width', assets.width, 'height', assets.height,
        'bytes', assets.bytes, 'sha256', encode(assets.sha256, 'hex')) ORDER BY assets.position) AS assets
    FROM assets WHERE assets.task_id = tasks.id
) AS listed
WHERE tasks.account_id = :account_id
  AND tasks.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  AND (:states::text[] IS NULL OR tasks.state = ANY(:states::text[]))
ORDER BY tasks.id DESC LIMIT :room;

-- name: read_balance^
-- What an account may spend and what is held.
SELECT available, held FROM accounts WHERE id = :account_id;

-- name: list_entries
-- Ledger lines of an account, newest first, older than `before`.
SELECT id, kind, task_id, available_delta, held_delta, note, created_at
FROM entries
WHERE account_id = :account_id AND id < coalesce(:before::bigint, 9223372036854775807)
ORDER BY id DESC LIMIT :room;

-- name: read_asset^
-- Where the bytes of an account's asset lie, and what they are.
SELECT id, account_id, store_key, content_type, bytes AS size_bytes, sha256 FROM assets
WHERE id = :id AND account_id = :account_id;

-- name: open_tasks_by_state
-- Unfinished tasks, counted from the partial index alone.
SELECT state, count(*) AS tasks FROM tasks WHERE finished_at IS NULL GROUP BY state;

-- name: list_events
-- The moves of one task in order; every account's where none is named.
SELECT version, source, target, attempt, cause, detail, created_at FROM task_events
WHERE task_id = :task_id AND (:account_id::uuid IS NULL OR account_id = :account_id)
ORDER BY version;
