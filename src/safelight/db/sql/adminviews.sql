-- Read-only questions of the operator's door: over all accounts, and in our inner words.

-- name: reviews_by_reason
-- How many tasks wait for a person, by reason.
SELECT review_reason, count(*) AS tasks FROM tasks WHERE state = 'review' GROUP BY review_reason;

-- name: list_reviews
-- Tasks in review, oldest first, after `after`.
SELECT tasks.id, tasks.account_id, accounts.name AS account_name, tasks.model, tasks.provider, tasks.version,
       tasks.attempt, tasks.n, tasks.review_reason, tasks.state_since AS review_since, tasks.decide_by, tasks.held,
       tasks.created_at, tasks.cancel_requested_at, attempts.provider_ref, attempts.upstream_status, attempts.excerpt
FROM tasks
JOIN accounts ON accounts.id = tasks.account_id
JOIN attempts ON attempts.task_id = tasks.id AND attempts.number = tasks.attempt
WHERE tasks.state = 'review' AND tasks.id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000')
  AND (:reason::text IS NULL OR tasks.review_reason = :reason)
  AND (:provider::text IS NULL OR tasks.provider = :provider)
ORDER BY tasks.id LIMIT :room;

-- name: list_tasks
-- Tasks of all accounts, newest first, older than `before`.
SELECT tasks.id, tasks.account_id, accounts.name AS account_name, tasks.model, tasks.provider, tasks.operation, tasks.n,
       tasks.state, tasks.version, tasks.attempt, tasks.looks, tasks.review_reason, tasks.failure_class,
       tasks.failure_code, tasks.held, tasks.state_since, tasks.wake_at, tasks.created_at, tasks.finished_at
FROM tasks JOIN accounts ON accounts.id = tasks.account_id
WHERE tasks.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  AND (:state::text IS NULL OR tasks.state = :state) AND (:account_id::uuid IS NULL OR tasks.account_id = :account_id)
  AND (:model::text IS NULL OR tasks.model = :model) AND (:provider::text IS NULL OR tasks.provider = :provider)
  AND (NOT :is_open OR tasks.finished_at IS NULL)
  AND (NOT :is_stuck OR tasks.finished_at IS NULL AND tasks.looks >= 3)
ORDER BY tasks.id DESC LIMIT :room;

-- name: read_whole_task^
-- Everything that a task's own row says, whosever it is, with its settlement.
SELECT tasks.id, tasks.account_id, accounts.name AS account_name, tasks.model, tasks.operation, tasks.prompt, tasks.n,
       tasks.size, tasks.aspect_ratio, tasks.options, tasks.metadata, tasks.priority, tasks.provider,
       tasks.upstream_model, tasks.unit_price, tasks.held, tasks.state, tasks.version, tasks.attempt, tasks.wake_at,
       tasks.start_by, tasks.deadline_at, tasks.review_reason, tasks.decide_by, tasks.cancel_requested_at,
       tasks.looks, tasks.copies, tasks.failure_class, tasks.failure_code, tasks.created_at, tasks.state_since,
       tasks.finished_at, settlements.captured, settlements.released
FROM tasks
JOIN accounts ON accounts.id = tasks.account_id
LEFT JOIN settlements ON settlements.task_id = tasks.id
WHERE tasks.id = :id;

-- name: attempts_of_task
-- Every attempt in order; excerpts were redacted when they were kept.
SELECT number, provider, upstream_model, reference, provider_ref, sends, throttled, upstream_status, sent_at,
       answer_by, accepted_at, looked_at, ended_at, run_s, noticed_by, outcome, failure_class, failure_code, excerpt,
       cost, outputs
FROM attempts WHERE task_id = :id ORDER BY number;

-- name: notices_of_task
-- Its callbacks as they came, the latest first.
SELECT id, provider, task_id, attempt, provider_ref, upstream_status, verdict, length(body) AS size_bytes, received_at
FROM callbacks WHERE task_id = :id ORDER BY id DESC LIMIT :room;

-- name: entries_of_task
-- What it did to the ledger.
SELECT id, kind, task_id, available_delta, held_delta, note, created_at FROM entries WHERE task_id = :id ORDER BY id;

-- name: assets_of_task
-- What was delivered; of a doomed one this record alone is left.
SELECT id, attempt, position, content_type, width, height, bytes AS size_bytes, encode(sha256, 'hex') AS sha256,
       created_at, doomed_at
FROM assets WHERE task_id = :id ORDER BY position;

-- name: inputs_of_task
-- What it started from, the mask at the end; of an upload that has expired its id alone is left.
SELECT input.id, input.position, input.is_mask, uploads.content_type, uploads.width, uploads.height,
       uploads.bytes AS size_bytes, encode(uploads.sha256, 'hex') AS sha256
FROM tasks
CROSS JOIN LATERAL (
    SELECT image.id, image.place - 1 AS position, false AS is_mask
    FROM unnest(tasks.images) WITH ORDINALITY AS image (id, place)
    UNION ALL
    SELECT tasks.mask, cardinality(tasks.images), true WHERE tasks.mask IS NOT NULL
) AS input
LEFT JOIN uploads ON uploads.id = input.id AND uploads.account_id = tasks.account_id AND uploads.doomed_at IS NULL
WHERE tasks.id = :id ORDER BY input.position;

-- name: pictures_of_task
-- Those of its pictures that can still be shown, and where their bytes lie: first what was delivered, then its inputs.
SELECT id, account_id, store_key, content_type, size_bytes, sha256, is_input
FROM (
    SELECT id, account_id, store_key, content_type, bytes AS size_bytes, sha256, false AS is_input, position
    FROM assets WHERE task_id = :id AND doomed_at IS NULL
    UNION ALL
    SELECT uploads.id, uploads.account_id, store_key, content_type, bytes, sha256, true,
           array_position(tasks.images, uploads.id)
    FROM tasks
    JOIN uploads ON uploads.account_id = tasks.account_id
        AND (uploads.id = ANY(tasks.images) OR uploads.id = tasks.mask)
    WHERE tasks.id = :id AND uploads.doomed_at IS NULL
) AS picture
ORDER BY is_input, position NULLS LAST;

-- name: decisions_of_task
-- What people decided about it.
SELECT id, attempt, version, review_reason, decision, reason_code, note, decided_by, created_at
FROM decisions WHERE task_id = :id ORDER BY id;

-- name: losses_of_task
-- What it cost the operator.
SELECT attempt, provider, cost, reason, created_at FROM losses WHERE task_id = :id ORDER BY attempt;

-- name: findings_of_task
-- What was found about it.
SELECT id, kind, provider, task_id, attempt, detail, cost, created_at, resolved_at, resolved_by, resolution
FROM findings WHERE task_id = :id ORDER BY id;

-- name: list_findings
-- Findings, newest first, older than `before`.
SELECT id, kind, provider, task_id, attempt, detail, cost, created_at, resolved_at, resolved_by, resolution
FROM findings
WHERE id < coalesce(:before::bigint, 9223372036854775807)
  AND (:kind::text IS NULL OR kind = :kind) AND (:provider::text IS NULL OR provider = :provider)
ORDER BY id DESC LIMIT :room;

-- name: list_open_findings
-- The same, of those that nobody has resolved.
SELECT id, kind, provider, task_id, attempt, detail, cost, created_at, resolved_at, resolved_by, resolution
FROM findings
WHERE resolved_at IS NULL AND id < coalesce(:before::bigint, 9223372036854775807)
  AND (:kind::text IS NULL OR kind = :kind) AND (:provider::text IS NULL OR provider = :provider)
ORDER BY id DESC LIMIT :room;

-- name: list_notices
-- Callbacks, newest first, older than `before`.
SELECT id, provider, task_id, attempt, provider_ref, upstream_status, verdict, length(body) AS size_bytes, received_at
FROM callbacks
WHERE id < coalesce(:before::bigint, 9223372036854775807) AND (:verdict::text IS NULL OR verdict = :verdict)
ORDER BY id DESC LIMIT :room;

-- name: list_notices_of_provider
-- The same, of one provider key.
SELECT id, provider, task_id, attempt, provider_ref, upstream_status, verdict, length(body) AS size_bytes, received_at
FROM callbacks
WHERE provider = :provider AND id < coalesce(:before::bigint, 9223372036854775807)
  AND (:verdict::text IS NULL OR verdict = :verdict)
ORDER BY id DESC LIMIT :room;

-- name: list_audit
-- Lines of the audit log, newest first, older than `before`.
SELECT id, actor, address, request_id, action, object, account_id, outcome, detail, created_at,
       encode(hash, 'hex') AS hash
FROM audit_lines WHERE id < coalesce(:before::bigint, 9223372036854775807)
ORDER BY id DESC LIMIT :room;

-- name: list_audit_of
-- The same, of one object.
SELECT id, actor, address, request_id, action, object, account_id, outcome, detail, created_at,
       encode(hash, 'hex') AS hash
FROM audit_lines WHERE object = :object AND id < coalesce(:before::bigint, 9223372036854775807)
ORDER BY id DESC LIMIT :room;

-- name: list_accounts_after
-- Accounts with their balances, oldest first, after `after`.
SELECT id, name, available, held, open_tasks, created_at FROM accounts
WHERE id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000') ORDER BY id LIMIT :room;

-- name: read_account^
-- One account with its balance, and what it has: endpoints that are not deleted, keys that are not revoked.
SELECT accounts.id, name, available, held, open_tasks, created_at, endpoints.enabled AS endpoints_enabled,
       endpoints.disabled AS endpoints_disabled, keys.active AS keys_active
FROM accounts
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE disabled_at IS NULL) AS enabled,
           count(*) FILTER (WHERE disabled_at IS NOT NULL) AS disabled
    FROM webhook_endpoints WHERE account_id = accounts.id AND deleted_at IS NULL
) AS endpoints
CROSS JOIN LATERAL (
    SELECT count(*) AS active FROM api_keys WHERE account_id = accounts.id AND revoked_at IS NULL
) AS keys
WHERE accounts.id = :id;
