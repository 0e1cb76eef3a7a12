-- What callbacks are worth: counts for the report of a provider, and whether they still come.

-- name: count_callbacks!
-- Callbacks of which nothing else is kept, by the UTC day.
INSERT INTO callback_counts (provider, day, kind, callbacks)
SELECT item.provider, (clock_now() AT TIME ZONE 'UTC')::date, item.kind, item.callbacks
FROM unnest(:providers::text[], :kinds::text[], :counts::bigint[]) AS item (provider, kind, callbacks)
ON CONFLICT (provider, day, kind) DO UPDATE SET callbacks = callback_counts.callbacks + EXCLUDED.callbacks;

-- name: verdicts
-- The kept callbacks of some days, by what became of them.
SELECT verdict, count(*) AS callbacks, count(*) FILTER (WHERE is_early) AS early
FROM callbacks
WHERE provider = ANY(:providers::text[]) AND received_at >= clock_now() - make_interval(days => :days)
GROUP BY verdict ORDER BY verdict;

-- name: counts
-- Those that were only counted.
SELECT kind, sum(callbacks)::bigint AS callbacks FROM callback_counts
WHERE provider = ANY(:providers::text[])
  AND day > ((clock_now() - make_interval(days => :days)) AT TIME ZONE 'UTC')::date
GROUP BY kind ORDER BY kind;

-- name: finished_attempts^
-- Attempts that ended upstream in some days: how they were noticed, and when a callback told of the end.
-- Delays are seconds from the moment when a look (or any other way) found the end: below zero the callback was sooner.
WITH ended AS MATERIALIZED (
    SELECT task_id, number, ended_at, noticed_by FROM attempts
    WHERE provider = ANY(:providers::text[]) AND noticed_by IS NOT NULL AND accepted_at IS NOT NULL
      AND outcome IN ('succeeded', 'failed', 'blocked')
      AND ended_at >= clock_now() - make_interval(days => :days)
      AND ended_at < clock_now() - make_interval(secs => :grace_s)
),
told AS (
    SELECT ended.noticed_by, heard.any_at,
           extract(epoch FROM coalesce(heard.end_at, heard.hint_at) - ended.ended_at)::float8 AS delay_s
    FROM ended
    CROSS JOIN LATERAL (
        SELECT min(received_at) AS any_at,
               min(received_at) FILTER (WHERE (verdict = 'would_apply' AND would_be <> 'running')
                                           OR (verdict = 'duplicate' AND received_at >= ended.ended_at)) AS end_at,
               max(received_at) FILTER (WHERE verdict = 'hint') AS hint_at
        FROM callbacks WHERE callbacks.task_id = ended.task_id AND callbacks.attempt = ended.number
    ) AS heard
)
SELECT count(*) AS finished, count(*) FILTER (WHERE any_at IS NULL) AS never_came,
       count(*) FILTER (WHERE noticed_by = 'callback') AS by_callback,
       count(*) FILTER (WHERE noticed_by = 'reconciliation') AS by_reconciliation,
       count(delay_s) FILTER (WHERE noticed_by <> 'callback') AS compared,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY delay_s) FILTER (WHERE noticed_by <> 'callback') AS median_delay_s,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY delay_s) FILTER (WHERE noticed_by <> 'callback') AS p95_delay_s,
       count(*) FILTER (WHERE noticed_by <> 'callback' AND delay_s < 0) AS sooner,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY -delay_s)
           FILTER (WHERE noticed_by <> 'callback' AND delay_s < 0) AS median_gain_s,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY -delay_s)
           FILTER (WHERE noticed_by <> 'callback' AND delay_s < 0) AS p95_gain_s
FROM told;

-- name: shares
-- Of each provider's last finished attempts, those of which any callback told: the latest ones, and the ones before.
SELECT key.provider,
       count(*) FILTER (WHERE place <= :recent) AS recent, count(*) FILTER (WHERE place <= :recent AND is_told) AS recent_told,
       count(*) FILTER (WHERE place > :recent) AS earlier, count(*) FILTER (WHERE place > :recent AND is_told) AS earlier_told
FROM unnest(:providers::text[]) AS key (provider)
LEFT JOIN LATERAL (
    SELECT row_number() OVER (ORDER BY ended_at DESC) AS place, told.is_told
    FROM (
        SELECT task_id, number, ended_at FROM attempts
        WHERE attempts.provider = key.provider AND noticed_by IS NOT NULL AND accepted_at IS NOT NULL
          AND outcome IN ('succeeded', 'failed', 'blocked')
          AND ended_at >= clock_now() - make_interval(days => :days)
          AND ended_at < clock_now() - make_interval(secs => :grace_s)
        ORDER BY ended_at DESC LIMIT :most
    ) AS one
    LEFT JOIN LATERAL (
        SELECT true AS is_told FROM callbacks
        WHERE callbacks.task_id = one.task_id AND callbacks.attempt = one.number LIMIT 1
    ) AS told ON true
) AS latest ON true
GROUP BY key.provider ORDER BY key.provider;

-- name: alarms
-- Providers whose callbacks have stopped coming.
SELECT provider, expected, received, raised_at FROM callback_alarms ORDER BY provider;

-- name: raise_alarm$
-- The first that notices raises it.
INSERT INTO callback_alarms (provider, expected, received) VALUES (:provider, :expected, :received)
ON CONFLICT (provider) DO NOTHING RETURNING provider;

-- name: clear_alarm$
-- They come again; the first that notices says so.
DELETE FROM callback_alarms WHERE provider = :provider RETURNING provider;
