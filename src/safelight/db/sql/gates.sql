-- name: ensure_gate!
-- A gate exists from its first use.
INSERT INTO gates (name) VALUES (:name) ON CONFLICT DO NOTHING;

-- name: lock_gate^
-- The lock under which a provider's capacity is counted and claimed.
SELECT coalesce(closed_until > clock_now(), false) AS is_closed, failures, reason
FROM gates WHERE name = :name FOR NO KEY UPDATE;

-- name: close_gate!
-- Nobody passes for a while; a longer wait that is already set stays.
INSERT INTO gates (name, closed_until, reason, failures)
VALUES (:name, clock_now() + make_interval(secs => :for_s), :reason, :failures)
ON CONFLICT (name) DO UPDATE
SET closed_until = greatest(gates.closed_until, EXCLUDED.closed_until), reason = EXCLUDED.reason,
    failures = gates.failures + EXCLUDED.failures;

-- name: open_gate!
-- A success forgets the failures before it.
UPDATE gates SET closed_until = NULL, reason = '', failures = 0 WHERE name = :name AND failures > 0;

-- name: gate_failures$
-- Failures in a row.
SELECT failures FROM gates WHERE name = :name;

-- name: closed_gates
-- Which gates are closed, and why.
SELECT name, reason, failures FROM gates WHERE closed_until > clock_now() ORDER BY name;
