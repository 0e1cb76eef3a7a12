-- Read-only questions about webhooks, for their owners and for operators.

-- name: list_endpoints
-- An account's endpoints, or one of them, oldest first.
SELECT endpoint.id, endpoint.url, endpoint.description, endpoint.types, endpoint.created_at, endpoint.disabled_at,
       endpoint.disabled_reason, endpoint.failures, endpoint.failing_since, endpoint.succeeded_at,
       (SELECT count(*) FROM deliveries WHERE deliveries.endpoint_id = endpoint.id AND status = 'pending') AS pending,
       coalesce((SELECT json_agg(json_build_object('created_at', created_at, 'expires_at', expires_at)
                                 ORDER BY created_at DESC)
                 FROM webhook_secrets
                 WHERE webhook_secrets.endpoint_id = endpoint.id
                   AND (expires_at IS NULL OR expires_at > clock_now())), '[]') AS secrets
FROM webhook_endpoints AS endpoint
WHERE endpoint.account_id = :account_id AND endpoint.deleted_at IS NULL
  AND (:id::uuid IS NULL OR endpoint.id = :id)
ORDER BY endpoint.id;

-- name: list_deliveries
-- Deliveries of one endpoint, newest first, older than `before`, with each of their tries.
SELECT deliveries.id, deliveries.event_id, deliveries.status, deliveries.reason, deliveries.created_at,
       deliveries.ended_at, CASE WHEN deliveries.status = 'pending' THEN deliveries.due_at END AS due_at,
       event.type, event.task_id, event.body, made.tries
FROM deliveries JOIN webhook_events AS event ON event.id = deliveries.event_id
CROSS JOIN LATERAL (
    SELECT coalesce(json_agg(json_build_object(
        'number', number, 'url', url, 'headers', headers, 'status', tries.status, 'reason', reason, 'detail', detail,
        'answer', answer, 'started_at', started_at, 'ended_at', ended_at) ORDER BY number), '[]') AS tries
    FROM tries WHERE delivery_id = deliveries.id
) AS made
WHERE deliveries.endpoint_id = :endpoint_id AND deliveries.account_id = :account_id
  AND deliveries.id < coalesce(:before::bigint, 9223372036854775807)
  AND (:status::text IS NULL OR deliveries.status = :status)
  AND (:id::bigint IS NULL OR deliveries.id = :id)
ORDER BY deliveries.id DESC LIMIT :room;

-- name: read_low_credits$
-- From which balance on an account wants to be told.
SELECT low_credits FROM accounts WHERE id = :account_id;

-- name: list_all_endpoints
-- For operators: every account's endpoints, newest first, older than `before`; deleted ones too.
SELECT endpoint.id, endpoint.account_id, accounts.name AS account_name, endpoint.url, endpoint.types,
       endpoint.created_at, endpoint.disabled_at, endpoint.disabled_reason, endpoint.deleted_at, endpoint.failures,
       endpoint.failing_since, endpoint.succeeded_at, endpoint.concurrency,
       (SELECT count(*) FROM deliveries WHERE deliveries.endpoint_id = endpoint.id AND status = 'pending') AS pending
FROM webhook_endpoints AS endpoint JOIN accounts ON accounts.id = endpoint.account_id
WHERE endpoint.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  AND (:account_id::uuid IS NULL OR endpoint.account_id = :account_id)
ORDER BY endpoint.id DESC LIMIT :room;

-- name: list_all_deliveries
-- For operators: deliveries, newest first, older than `before`, with their last try.
SELECT deliveries.id, deliveries.account_id, deliveries.endpoint_id, deliveries.event_id, event.type, event.task_id,
       deliveries.status, deliveries.reason, deliveries.tries, deliveries.last_status, deliveries.created_at,
       deliveries.ended_at, CASE WHEN deliveries.status = 'pending' THEN deliveries.due_at END AS due_at,
       last.reason AS last_reason, last.detail AS last_detail, last.ended_at AS last_try_at
FROM deliveries JOIN webhook_events AS event ON event.id = deliveries.event_id
LEFT JOIN LATERAL (
    SELECT reason, detail, ended_at FROM tries WHERE delivery_id = deliveries.id ORDER BY number DESC LIMIT 1
) AS last ON true
WHERE deliveries.id < coalesce(:before::bigint, 9223372036854775807)
  AND (:endpoint_id::uuid IS NULL OR deliveries.endpoint_id = :endpoint_id)
  AND (:status::text IS NULL OR deliveries.status = :status)
ORDER BY deliveries.id DESC LIMIT :room;
