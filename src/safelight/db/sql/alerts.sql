-- What the operator has not been told yet.

-- name: claim_alerts
-- Untold alerts, if nobody told any within `gap_s` seconds: whoever sets the clock tells them.
WITH turn AS (
    UPDATE alert_clock SET told_at = clock_now()
    WHERE EXISTS (SELECT FROM alerts)
      AND (told_at IS NULL OR told_at NOT BETWEEN clock_now() - make_interval(secs => :gap_s) AND clock_now())
    RETURNING told_at
)
SELECT untold.*, turn.told_at FROM turn CROSS JOIN LATERAL (
    SELECT id, kind, reason, provider, task_id, created_at FROM alerts ORDER BY id LIMIT :room
) AS untold ORDER BY untold.id;

-- name: drop_told!
-- These have arrived.
DELETE FROM alerts WHERE id = ANY(:ids::bigint[]);

-- name: drop_alerts!
-- Nobody wants to hear what is older than `keep_s` seconds.
DELETE FROM alerts WHERE created_at <= clock_now() - make_interval(secs => :keep_s);
