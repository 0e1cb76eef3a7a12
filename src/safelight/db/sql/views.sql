-- name: read_tasks
-- These tasks, as far as they are the account's, newest first, with their settlements and assets.
SELECT tasks.id, tasks.account_id, tasks.state, tasks.version, tasks.stage, tasks.model, tasks.operation, tasks.prompt,
       tasks.n, tasks.percent, tasks.position, tasks.failure_class, tasks.failure_code, tasks.review_reason, tasks.held, tasks.metadata, tasks.created_at,
       tasks.finished_at, tasks.erased_at, settlements.captured, settlements.released, listed.assets
FROM tasks
LEFT JOIN settlements ON settlements.task_id = tasks.id
CROSS JOIN LATERAL (
    SELECT json_agg(json_build_object(
        'id', assets.id, 'content_type', assets.content_type, 'width', assets.width, 'height', assets.height,
        'bytes', assets.bytes, 'sha256', encode(assets.sha256, 'hex')) ORDER BY assets.position) AS assets
    FROM assets WHERE assets.task_id = tasks.id AND assets.doomed_at IS NULL
) AS listed
WHERE tasks.account_id = :account_id AND tasks.id = ANY(:ids::uuid[])
ORDER BY tasks.id DESC;

-- name: list_tasks
-- Ids of an account's tasks in any of these states, newest first, older than `before`.
SELECT id FROM tasks
WHERE account_id = :account_id AND id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  AND (:states::text[] IS NULL OR state = ANY(:states::text[]))
ORDER BY id DESC LIMIT :room;

-- name: list_changed_tasks
-- The same, of those that were made or have ended since a moment.
SELECT id FROM (
    SELECT id, state FROM tasks WHERE account_id = :account_id AND finished_at >= :since
    UNION ALL
    SELECT id, state FROM tasks WHERE account_id = :account_id AND finished_at IS NULL AND created_at >= :since
) AS changed
WHERE id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  AND (:states::text[] IS NULL OR state = ANY(:states::text[]))
ORDER BY id DESC LIMIT :room;

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
WHERE id = :id AND account_id = :account_id AND doomed_at IS NULL;

-- name: ended_tasks
-- Which of these tasks have ended.
SELECT id FROM tasks WHERE id = ANY(:ids::uuid[]) AND finished_at IS NOT NULL;

-- name: open_tasks_by_state
-- Unfinished tasks, counted from the partial index alone.
SELECT state, count(*) AS tasks FROM tasks WHERE finished_at IS NULL GROUP BY state;

-- name: provider_health
-- How provider keys stand: their gates, what is upstream and what waits.
SELECT key.name, coalesce(gates.closed_until > clock_now(), false) AS is_closed, gates.closed_until,
       coalesce(gates.reason, '') AS reason, coalesce(gates.failures, 0) AS failures, coalesce(gates.faults, 0) AS faults,
       upstream.calls, upstream.tasks, upstream.images, waiting.tasks AS waiting
FROM unnest(:names::text[]) WITH ORDINALITY AS key (name, place)
LEFT JOIN gates ON gates.name = key.name
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'submitting') AS calls, count(*) AS tasks, coalesce(sum(n), 0)::bigint AS images
    FROM tasks WHERE provider = key.name AND state IN ('submitting', 'uncertain', 'running')
) AS upstream
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks FROM tasks WHERE provider = key.name AND state IN ('queued', 'retrying')
) AS waiting
ORDER BY key.place;

-- name: gates
-- Every gate that was ever used.
SELECT name, coalesce(closed_until > clock_now(), false) AS is_closed, failures FROM gates ORDER BY name;

-- name: list_events
-- The moves of one task in order; every account's where none is named.
SELECT version, source, target, attempt, cause, detail, created_at FROM task_events
WHERE task_id = :task_id AND (:account_id::uuid IS NULL OR account_id = :account_id)
ORDER BY version;

-- name: read_upload^
-- An account's upload: what it is, and where its bytes lie.
SELECT id, account_id, store_key, content_type, width, height, bytes AS size_bytes, sha256, created_at, expires_at
FROM uploads WHERE id = :id AND account_id = :account_id AND doomed_at IS NULL;
