-- name: ensure_gate!
-- A gate exists from its first use.
INSERT INTO gates (name) VALUES (:name) ON CONFLICT DO NOTHING;

-- name: lock_gate^
-- The lock under which a provider's capacity is counted and claimed.
SELECT coalesce(closed_until > clock_now(), false) AS is_closed, failures, faults, reason, clock_now() AS now
FROM gates WHERE name = :name FOR NO KEY UPDATE;

-- name: close_gate!
-- Nobody passes for a while; a longer wait that is already set stays. Calls that were under way when a gate closed
-- may fail one after the other: together they count as one failure.
INSERT INTO gates (name, closed_until, reason, failures)
VALUES (:name, clock_now() + make_interval(secs => :for_s), :reason, :failures)
ON CONFLICT (name) DO UPDATE
SET closed_until = greatest(gates.closed_until, EXCLUDED.closed_until), reason = EXCLUDED.reason,
    failures = CASE WHEN gates.closed_until > clock_now() AND gates.failures > 0 THEN gates.failures
                    ELSE gates.failures + EXCLUDED.failures END;

-- name: open_gate$
-- A success forgets the failures and faults before it; a wait that was asked for stays. Whether there were failures.
WITH was AS (
    SELECT failures FROM gates WHERE name = :name AND (failures > 0 OR faults > 0) FOR NO KEY UPDATE
)
UPDATE gates
SET closed_until = CASE WHEN was.failures > 0 THEN NULL ELSE closed_until END,
    reason = CASE WHEN was.failures > 0 THEN '' ELSE reason END, failures = 0, faults = 0
FROM was
WHERE name = :name
RETURNING was.failures > 0;

-- name: count_fault^
-- One more call in a row that failed upstream.
INSERT INTO gates (name, faults) VALUES (:name, 1)
ON CONFLICT (name) DO UPDATE SET faults = gates.faults + 1
RETURNING faults, failures;

-- name: gate_failures$
-- Failures in a row.
SELECT failures FROM gates WHERE name = :name;

-- name: closed_gates
-- Which gates are closed, and why.
SELECT name, reason, failures FROM gates WHERE closed_until > clock_now() ORDER BY name;

-- name: gate_states
-- How every gate stands that is closed or has failures behind it.
SELECT name, reason, failures,
       coalesce(greatest(extract(epoch FROM closed_until - clock_now()), 0), 0)::float8 AS closed_for_s
FROM gates WHERE closed_until > clock_now() OR failures > 0;

-- name: looks_free$
-- How many looks of a provider's quota are free now. The gate stays locked, so that workers take turns.
-- At most a second's worth (or one) is saved up.
SELECT floor(:per_s::float8 * extract(epoch FROM clock_now() - greatest(
           coalesce(looks_from, '-infinity'), clock_now() - make_interval(secs => greatest(1.0, 1.0 / :per_s::float8)))))::integer
FROM gates WHERE name = :name FOR NO KEY UPDATE;

-- name: take_looks!
-- So many looks of the quota are used up.
UPDATE gates
SET looks_from = greatest(coalesce(looks_from, '-infinity'),
                          clock_now() - make_interval(secs => greatest(1.0, 1.0 / :per_s::float8)))
                 + make_interval(secs => :count::integer / :per_s::float8)
WHERE name = :name;
