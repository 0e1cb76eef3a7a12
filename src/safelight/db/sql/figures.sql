-- Figures for the operator: over the tasks that were accepted since a moment, found by their ids, which begin with it.

-- name: states
-- How many tasks stand where.
SELECT state, count(*) AS tasks FROM tasks WHERE id >= :since_id GROUP BY state ORDER BY state;

-- name: endings
-- What became of them, by the time they were accepted.
SELECT date_trunc(:step, created_at, 'UTC') AS accepted_at, model, provider, state, failure_class, count(*) AS tasks
FROM tasks WHERE id >= :since_id AND finished_at IS NOT NULL
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5;

-- name: waits
-- How long customers waited for what became ready, in seconds from the submit.
SELECT model, count(*) AS tasks,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (
           ORDER BY extract(epoch FROM finished_at - created_at)) AS quantiles
FROM tasks WHERE id >= :since_id AND state = 'succeeded' GROUP BY model ORDER BY model;

-- name: runs
-- How long attempts that succeeded ran upstream, in seconds.
SELECT tasks.model, attempts.provider, attempts.upstream_model, count(*) AS runs,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY attempts.run_s) AS quantiles
FROM attempts JOIN tasks ON tasks.id = attempts.task_id
WHERE attempts.task_id >= :since_id AND attempts.outcome = 'succeeded' AND attempts.run_s IS NOT NULL
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- name: since
-- The moment some hours ago, by the database's clock.
SELECT clock_now() - make_interval(hours => :hours) AS since_at;
