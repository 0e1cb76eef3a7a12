-- Uploads: pictures that customers handed in, until they expire.

-- name: find_uploads
-- Which of these an account may use, and which of them were not used for a while.
SELECT id, account_id, store_key, content_type, width, height, bytes AS size_bytes, sha256, created_at,
       expires_at, expires_at < clock_now() + make_interval(secs => :keep_s::double precision - :slack_s) AS is_stale
FROM uploads WHERE account_id = :account_id AND id = ANY(:ids::uuid[]) AND doomed_at IS NULL;

-- name: renew_uploads
-- They are used again; locked in one order, since another submit may use the same ones.
WITH used AS MATERIALIZED (
    SELECT id FROM uploads WHERE account_id = :account_id AND id = ANY(:ids::uuid[]) AND doomed_at IS NULL
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE uploads SET expires_at = greatest(expires_at, clock_now() + make_interval(secs => :keep_s))
FROM used WHERE uploads.id = used.id
RETURNING uploads.id, account_id, store_key, content_type, width, height, bytes AS size_bytes, sha256,
          created_at, expires_at;

-- name: space_taken$
-- Bytes of an account's uploads.
SELECT coalesce(sum(bytes), 0)::bigint FROM uploads WHERE account_id = :account_id AND doomed_at IS NULL;

-- name: lock_upload^
-- One upload with its content, doomed or not, under its account's lock.
SELECT store_key, doomed_at IS NOT NULL AS is_doomed FROM uploads
WHERE account_id = :account_id AND id = :id FOR NO KEY UPDATE;

-- name: write_upload^
-- A new upload, or one that was doomed and comes again: then its bytes lie under another key.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now)
INSERT INTO uploads (id, account_id, store_key, content_type, width, height, bytes, sha256, created_at, expires_at)
SELECT :id::uuid, :account_id::uuid, :store_key::text, :content_type::text, :width::integer, :height::integer,
       :size_bytes::bigint, :sha256::bytea, now,
       now + make_interval(secs => :keep_s)
FROM moment
ON CONFLICT (id) DO UPDATE
SET store_key = EXCLUDED.store_key, created_at = EXCLUDED.created_at, expires_at = EXCLUDED.expires_at,
    doomed_at = NULL
RETURNING id, account_id, store_key, content_type, width, height, bytes AS size_bytes, sha256,
          created_at, expires_at;

-- name: claim_expired
-- Doom what has expired, and take up what was doomed before; what an unfinished task needs is kept for longer.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now),
due AS MATERIALIZED (
    SELECT id FROM uploads, moment WHERE expires_at <= now
    ORDER BY expires_at LIMIT :room FOR NO KEY UPDATE OF uploads SKIP LOCKED
),
judged AS (
    SELECT id, EXISTS (SELECT FROM tasks
                       WHERE finished_at IS NULL AND images <> '{}' AND images @> ARRAY[due.id])
               OR EXISTS (SELECT FROM tasks WHERE finished_at IS NULL AND mask = due.id) AS is_needed
    FROM due
)
UPDATE uploads
SET expires_at = now + make_interval(secs => CASE WHEN is_needed THEN :keep_s::double precision ELSE :lease_s END),
    doomed_at = CASE WHEN is_needed THEN NULL ELSE coalesce(doomed_at, now) END
FROM judged, moment WHERE uploads.id = judged.id
RETURNING uploads.id, store_key, doomed_at IS NOT NULL AS is_doomed;

-- name: forget_upload!
-- The bytes under this key are gone; an upload that has come again meanwhile lies under another one.
DELETE FROM uploads WHERE id = :id AND store_key = :store_key AND doomed_at IS NOT NULL;

-- name: read_uploads
-- Where the bytes of a task's inputs lie, expired or not.
SELECT id, account_id, store_key, content_type, width, height, bytes AS size_bytes, sha256, created_at, expires_at
FROM uploads WHERE account_id = :account_id AND id = ANY(:ids::uuid[]) AND doomed_at IS NULL;
