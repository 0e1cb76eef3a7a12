-- Sessions of people in a browser.

-- name: insert_session$
-- A new session, until when it lasts.
INSERT INTO sessions (digest, key_id, admin_key_id, expires_at)
VALUES (:digest, :key_id, :admin_key_id, clock_now() + make_interval(secs => :life_s)) RETURNING expires_at;

-- name: read_session^
-- Whose session this is, unless it is over, was left alone for too long, or its key is revoked.
SELECT coalesce(sessions.key_id, sessions.admin_key_id) AS key_id, accounts.id AS account_id,
       coalesce(accounts.name, admin_keys.name) AS name, sessions.expires_at,
       sessions.seen_at < clock_now() - interval '1 minute' AS is_stale
FROM sessions
LEFT JOIN api_keys ON api_keys.id = sessions.key_id
LEFT JOIN accounts ON accounts.id = api_keys.account_id
LEFT JOIN admin_keys ON admin_keys.id = sessions.admin_key_id
WHERE sessions.digest = :digest AND sessions.expires_at > clock_now()
  AND sessions.seen_at > clock_now() - make_interval(secs => :idle_s)
  AND coalesce(api_keys.revoked_at, admin_keys.revoked_at) IS NULL;

-- name: touch_session!
-- Somebody is there.
UPDATE sessions SET seen_at = clock_now() WHERE digest = :digest;

-- name: end_session!
-- Signed out.
DELETE FROM sessions WHERE digest = :digest;

-- name: ended_sessions
-- Which of these sessions are over.
SELECT wanted.digest FROM unnest(:digests::bytea[]) AS wanted (digest)
LEFT JOIN sessions ON sessions.digest = wanted.digest AND sessions.expires_at > clock_now()
WHERE sessions.digest IS NULL;

-- name: insert_ticket$
-- A new ticket, until when it opens something.
INSERT INTO session_tickets (digest, key_id, admin_key_id, expires_at)
VALUES (:digest, :key_id, :admin_key_id, clock_now() + make_interval(secs => :life_s)) RETURNING expires_at;

-- name: take_ticket^
-- Use a ticket up; no row if it was used, is too old, or its key is revoked.
WITH taken AS (
    DELETE FROM session_tickets WHERE digest = :digest RETURNING key_id, admin_key_id, expires_at
)
SELECT taken.key_id, taken.admin_key_id
FROM taken
LEFT JOIN api_keys ON api_keys.id = taken.key_id
LEFT JOIN admin_keys ON admin_keys.id = taken.admin_key_id
WHERE taken.expires_at > clock_now() AND coalesce(api_keys.revoked_at, admin_keys.revoked_at) IS NULL;

-- name: drop_expired!
-- What is over tells nobody anything.
WITH sessions_gone AS (DELETE FROM sessions WHERE expires_at < clock_now())
DELETE FROM session_tickets WHERE expires_at < clock_now();
