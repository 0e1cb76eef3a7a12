-- name: providers_with_due_tasks
-- Which providers have a waiting task whose time has come, and for a while.
SELECT provider
FROM unnest(:providers::text[]) AS provider
WHERE EXISTS (
    SELECT FROM tasks
    WHERE tasks.provider = provider.provider
      AND state IN ('queued', 'retrying')
      AND wake_at <= clock_now() - make_interval(secs => :overdue_s)
);

-- name: waiting_providers
-- Which providers have a waiting task at all: one probe of the index for each.
WITH RECURSIVE found AS (
    (SELECT provider FROM tasks WHERE state IN ('queued', 'retrying') ORDER BY provider LIMIT 1)
    UNION ALL
    SELECT (SELECT tasks.provider FROM tasks
            WHERE state IN ('queued', 'retrying') AND tasks.provider > found.provider
            ORDER BY tasks.provider LIMIT 1)
    FROM found WHERE found.provider IS NOT NULL
)
SELECT provider FROM found WHERE provider IS NOT NULL;

-- name: prune_log!
-- The queue's log grows by three rows a job.
DELETE FROM pgqueuer.pgqueuer_log WHERE created < clock_now() - make_interval(days => :keep_days);

-- name: prune_statistics!
-- Aggregated counts are read for a few days only.
DELETE FROM pgqueuer.pgqueuer_statistics WHERE created < clock_now() - make_interval(days => :keep_days);
