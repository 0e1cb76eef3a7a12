-- Webhook endpoints and their secrets. Whoever changes one holds the lock of its account, or of its row.

-- name: count_endpoints$
-- How many an account has.
SELECT count(*) FROM webhook_endpoints WHERE account_id = :account_id AND deleted_at IS NULL;

-- name: insert_endpoint!
-- A new endpoint, enabled.
INSERT INTO webhook_endpoints (id, account_id, url, description, types, created_at)
VALUES (:id, :account_id, :url, :description, :types, clock_now());

-- name: insert_secret!
-- A further secret, in force at once.
INSERT INTO webhook_secrets (id, endpoint_id, sealed, key_id, created_at)
VALUES (:id, :endpoint_id, :sealed, :key_id, clock_now());

-- name: retire_secrets!
-- The secrets in force end after `overlap_s` seconds, or when they would have anyway.
UPDATE webhook_secrets
SET expires_at = least(expires_at, clock_now() + make_interval(secs => :overlap_s))
WHERE endpoint_id = :endpoint_id AND (expires_at IS NULL OR expires_at > clock_now());

-- name: drop_expired_secrets!
-- Secrets that are no longer in force.
DELETE FROM webhook_secrets WHERE endpoint_id = :endpoint_id AND expires_at <= clock_now();

-- name: drop_secrets!
-- All secrets of an endpoint.
DELETE FROM webhook_secrets WHERE endpoint_id = :endpoint_id;

-- name: list_secrets
-- Secrets in force, the newest first.
SELECT id, endpoint_id, sealed, key_id, created_at, expires_at FROM webhook_secrets
WHERE endpoint_id = ANY(:endpoint_ids::uuid[]) AND (expires_at IS NULL OR expires_at > clock_now())
ORDER BY endpoint_id, created_at DESC, id DESC;

-- name: lock_endpoint^
-- An account's endpoint, locked: nobody else changes it, and no try of it is claimed or recorded meanwhile.
SELECT id, account_id, url, disabled_at IS NOT NULL AS is_disabled FROM webhook_endpoints
WHERE id = :id AND account_id = :account_id AND deleted_at IS NULL FOR NO KEY UPDATE;

-- name: change_endpoint!
-- What is named changes. A new address starts with a clean record.
UPDATE webhook_endpoints
SET description = coalesce(:description, description), types = coalesce(:types::text[], types),
    url = coalesce(:url, url),
    failures = CASE WHEN :url <> url THEN 0 ELSE failures END,
    failing_since = CASE WHEN :url <> url THEN NULL ELSE failing_since END,
    concurrency = CASE WHEN :url <> url THEN 10 ELSE concurrency END,
    rest_until = CASE WHEN :url <> url THEN '-infinity' ELSE rest_until END
WHERE id = :id;

-- name: enable_endpoint!
-- Back in use, with a clean record.
UPDATE webhook_endpoints
SET disabled_at = NULL, disabled_reason = '', failures = 0, failing_since = NULL, concurrency = 10,
    rest_until = '-infinity'
WHERE id = :id;

-- name: disable_endpoint^
-- Out of use, unless it is already; for `failing` only while its clock has run out.
UPDATE webhook_endpoints
SET disabled_at = clock_now(), disabled_reason = :reason, wake_at = 'infinity'
WHERE id = :id AND disabled_at IS NULL AND deleted_at IS NULL
  AND (:reason <> 'failing' OR failing_since <= clock_now() - make_interval(secs => :after_s))
RETURNING account_id, url, failures, disabled_at, failing_since;

-- name: delete_endpoint!
-- Gone for its owner; the row goes with its last event.
UPDATE webhook_endpoints SET deleted_at = clock_now(), wake_at = 'infinity' WHERE id = :id;

-- name: end_pending!
-- What was on its way to this endpoint ends here.
UPDATE deliveries SET status = :status, reason = :reason, is_claimed = false, ended_at = clock_now()
WHERE endpoint_id = :endpoint_id AND status = 'pending';

-- name: set_low_credits!
-- From which balance on an account wants to be told; none means never.
UPDATE accounts SET low_credits = :low_credits, low_told_at = NULL WHERE id = :account_id;
