-- What operators change: their keys, findings that they resolve, and the answers to their changes by idempotency key.

-- name: insert_admin_key!
-- A new key; only the keyed hash of its secret is kept.
INSERT INTO admin_keys (id, name, secret_hash) VALUES (:id, :name, :secret_hash);

-- name: read_admin_key^
-- Whether this key counts.
SELECT name, secret_hash, revoked_at FROM admin_keys WHERE id = :id;

-- name: revoke_admin_key^
-- End a key; its first end is the one that counts.
UPDATE admin_keys SET revoked_at = coalesce(revoked_at, clock_now()) WHERE id = :id RETURNING revoked_at;

-- name: list_admin_keys
-- Keys without anything secret, oldest first.
SELECT id, name, created_at, revoked_at FROM admin_keys ORDER BY created_at, id;

-- name: lock_receipt!
-- One at a time for one idempotency key; the first lock that a change takes.
SELECT pg_advisory_xact_lock(hashtextextended(:route || ' ' || :key, 0));

-- name: find_admin_receipt^
-- The answer that was given to this key.
SELECT fingerprint, body FROM admin_receipts WHERE route = :route AND key = :key AND expires_at > clock_now();

-- name: insert_admin_receipt!
-- Keep an answer; one that has expired makes room.
INSERT INTO admin_receipts (route, key, fingerprint, body, created_at, expires_at)
VALUES (:route, :key, :fingerprint, :body, clock_now(), clock_now() + make_interval(secs => :keep_s))
ON CONFLICT (route, key) DO UPDATE
SET fingerprint = EXCLUDED.fingerprint, body = EXCLUDED.body, created_at = EXCLUDED.created_at,
    expires_at = EXCLUDED.expires_at;

-- name: drop_admin_receipts!
-- Forget expired keys.
DELETE FROM admin_receipts WHERE expires_at <= clock_now();

-- name: resolve_finding^
-- Somebody has looked into it; the first word counts. `is_new` tells whether it was this one.
WITH found AS (
    SELECT id, task_id, resolved_at IS NULL AS is_new FROM findings WHERE id = :id FOR UPDATE
),
resolved AS (
    UPDATE findings SET resolved_at = clock_now(), resolved_by = :resolved_by, resolution = :resolution
    FROM found WHERE findings.id = found.id AND found.is_new
)
SELECT id, task_id, is_new FROM found;
