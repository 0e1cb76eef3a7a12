-- Read-only questions of the doctor that are asked once: of what is open, of the rules, and of ids that must be unique.
-- Each returns a row (subject, detail) for what it finds; a row may say that it is no fault (is_information).
-- Beside each stands how many rows it looks at.

-- name: provider_refs
-- I12: No two attempts share an id of their provider.
SELECT format('%s %s', provider, provider_ref) AS subject,
       format('belongs to %s attempts, of tasks %s', count(*), left(string_agg(DISTINCT task_id::text, ', '), 200)) AS detail
FROM attempts WHERE provider_ref IS NOT NULL
GROUP BY provider, provider_ref HAVING count(*) > 1;

-- name: count_provider_refs$
-- Attempts with an id of their provider.
SELECT count(*) FROM attempts WHERE provider_ref IS NOT NULL;

-- name: references
-- I12: No two attempts share a reference.
SELECT format('reference %s', reference) AS subject,
       format('belongs to %s attempts, of tasks %s', count(*), left(string_agg(DISTINCT task_id::text, ', '), 200)) AS detail
FROM attempts GROUP BY reference HAVING count(*) > 1;

-- name: count_references$
-- All attempts.
SELECT count(*) FROM attempts;

-- name: inputs
-- I15: The inputs of open tasks are there.
SELECT 'task ' || tasks.id AS subject, format('needs upload %s, which is gone', input.id) AS detail
FROM tasks CROSS JOIN LATERAL unnest(array_append(images, mask)) AS input (id)
LEFT JOIN uploads ON uploads.id = input.id AND uploads.account_id = tasks.account_id AND uploads.doomed_at IS NULL
WHERE tasks.finished_at IS NULL AND images <> '{}' AND input.id IS NOT NULL AND uploads.id IS NULL;

-- name: count_inputs$
-- Open tasks with inputs.
SELECT count(*) FROM tasks WHERE finished_at IS NULL AND images <> '{}';

-- name: overdue
-- I19: Every open task is woken in time. A waiting one may wait for capacity, but not past its start.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now)
SELECT * FROM (
    SELECT 'task ' || id AS subject,
           CASE WHEN state IN ('queued', 'retrying') AND start_by < now - make_interval(secs => :late_s) THEN
                    format('is %s, but had to start by %s', state, date_trunc('second', start_by))
                WHEN state = 'review' AND decide_by < now - make_interval(secs => :late_s) THEN
                    format('is in review, but had to be decided by %s', date_trunc('second', decide_by))
                WHEN state IN ('submitting', 'uncertain', 'running')
                     AND deadline_at < now - make_interval(secs => :late_s) THEN
                    format('is %s, but had to be done by %s', state, date_trunc('second', deadline_at))
                WHEN state NOT IN ('queued', 'retrying') AND wake_at < now - make_interval(secs => :unwoken_s) THEN
                    format('is %s, and nothing woke it at %s', state, date_trunc('second', wake_at)) END AS detail
    FROM tasks CROSS JOIN moment WHERE finished_at IS NULL
) AS judged WHERE detail IS NOT NULL;

-- name: count_overdue$
-- Open tasks.
SELECT count(*) FROM tasks WHERE finished_at IS NULL;

-- name: wakeups
-- I19: What is due has a job that wakes it, or had one a moment ago. The queue has its own clock, that nobody moves.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now, clock_now() - (SELECT shift FROM clock) AS real_now),
recent AS MATERIALIZED (
    SELECT entrypoint FROM pgqueuer.pgqueuer
    UNION
    SELECT entrypoint FROM (SELECT entrypoint, created FROM pgqueuer.pgqueuer_log ORDER BY id DESC LIMIT 5000) AS last, moment
    WHERE created > real_now - make_interval(secs => :unattended_s)
),
due AS (
    SELECT 'submit' AS entrypoint, provider, count(*) AS tasks, min(wake_at) AS since
    FROM tasks CROSS JOIN moment
    WHERE state IN ('queued', 'retrying') AND wake_at < now - make_interval(secs => :unattended_s) AND start_by > now
      AND provider NOT IN (SELECT name FROM gates WHERE closed_until > now OR failures > 0)
    GROUP BY provider
    UNION ALL
    SELECT 'archive', 'the store', count(*), min(wake_at) FROM tasks CROSS JOIN moment
    WHERE state = 'archiving' AND wake_at < now - make_interval(secs => :unattended_s) HAVING count(*) > 0
)
SELECT provider AS subject,
       format('has %s tasks that wait since %s, and no job wakes them', tasks, date_trunc('second', since)) AS detail
FROM due
WHERE entrypoint NOT IN (SELECT entrypoint FROM recent)
  AND NOT EXISTS (SELECT FROM gates, moment WHERE name = 'storage' AND closed_until > now);

-- name: count_wakeups$
-- Tasks that wait for a job.
SELECT count(*) FROM tasks WHERE state IN ('queued', 'retrying', 'archiving');

-- name: reviews
-- I20: What waits for a person has a reason and a day: no fault then, but somebody should know.
SELECT 'task ' || id AS subject,
       CASE WHEN review_reason IS NULL OR decide_by IS NULL THEN 'waits for a person, without a reason or a day'
            ELSE format('waits for a person since %s: %s; decide by %s', date_trunc('second', state_since),
                        review_reason, date_trunc('second', decide_by)) END AS detail,
       review_reason IS NOT NULL AND decide_by IS NOT NULL AS is_information
FROM tasks WHERE state = 'review' ORDER BY decide_by;

-- name: count_reviews$
-- Tasks in review.
SELECT count(*) FROM tasks WHERE state = 'review';

-- name: gates
-- I19: What keeps tasks from a provider key, or from all, passes: nothing stays closed for a day, or is never tried again.
SELECT 'gate ' || name AS subject,
       CASE WHEN failures = 0 THEN format('is closed until %s: %s', date_trunc('second', closed_until), reason)
            WHEN closed_until > now THEN
                format('is closed until %s after %s failures in a row: %s', date_trunc('second', closed_until),
                       failures, reason)
            WHEN is_stuck THEN format('could be tried since %s after %s failures in a row, and nobody does: %s',
                                      date_trunc('second', closed_until), failures, reason)
            ELSE format('lets one task at a time through after %s failures in a row: %s', failures, reason) END AS detail,
       NOT is_stuck AS is_information
FROM (SELECT gates.*, now,
             coalesce(closed_until > now + interval '24 hours', false)
             OR (failures > 0 AND coalesce(closed_until < now - make_interval(secs => :stuck_s), false)
                 AND EXISTS (SELECT FROM tasks WHERE provider = gates.name AND state IN ('queued', 'retrying')
                             AND wake_at < now - make_interval(secs => :stuck_s))) AS is_stuck
      FROM gates CROSS JOIN (SELECT clock_now() AS now) AS moment) AS judged
WHERE closed_until > now OR failures > 0 ORDER BY name;

-- name: count_gates$
-- All gates.
SELECT count(*) FROM gates;

-- name: batches
-- I19: A batch lets its parked items go as others end, no more at once than it may, and ends with the last one.
SELECT 'batch ' || id AS subject,
       CASE WHEN state = 'finished' THEN format('is finished, but %s of its items are not', parked + at_work)
            WHEN state = 'accepting' THEN format('was begun at %s, and never handed in to its end', date_trunc('second', created_at))
            WHEN parked + at_work = 0 THEN 'has no open item, but is not finished'
            WHEN at_work > at_once THEN format('has %s items at work, and may have %s', at_work, at_once)
            ELSE format('lets %s items wait, although %s of %s are at work', parked, at_work, at_once) END AS detail
FROM batches CROSS JOIN (SELECT clock_now() AS now) AS moment
CROSS JOIN LATERAL (SELECT count(*) AS parked FROM tasks
                    WHERE batch_id = batches.id AND state = 'queued' AND wake_at = 'infinity') AS resting
CROSS JOIN LATERAL (SELECT count(*) AS at_work FROM tasks
                    WHERE batch_id = batches.id AND finished_at IS NULL AND wake_at < 'infinity') AS working
WHERE (state = 'finished' AND parked + at_work > 0)
   OR (state = 'accepting' AND created_at < now - interval '1 hour' - make_interval(secs => :unattended_s))
   OR (state = 'open' AND (parked + at_work = 0 OR at_work > at_once
                           OR (canceled_at IS NULL AND parked > 0 AND at_work < at_once)));

-- name: count_batches$
-- All batches.
SELECT count(*) FROM batches;

-- name: unattended
-- I19: Open tasks are at providers that this installation uses.
SELECT 'provider ' || provider AS subject,
       format('has %s open tasks, but is not in use: nothing can be asked for or sent', count(*)) AS detail
FROM tasks WHERE finished_at IS NULL AND provider <> ALL (:providers::text[]) GROUP BY provider;

-- name: count_unattended$
-- Open tasks.
SELECT count(*) FROM tasks WHERE finished_at IS NULL;

-- name: guards
-- I5, I7, I10: Every rule that makes a violation impossible is in force.
SELECT 'rule ' || wanted.name AS subject, 'is missing' AS detail
FROM unnest(:guards::text[]) AS wanted (name)
WHERE to_regclass(wanted.name) IS NULL
  AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = wanted.name)
  AND NOT EXISTS (SELECT FROM pg_constraint
                  WHERE conname = wanted.name AND connamespace = 'safelight'::regnamespace)
UNION ALL
SELECT 'rule ' || tgname, format('of %s is switched off', tgrelid::regclass)
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = 'safelight'::regnamespace AND tgenabled NOT IN ('O', 'A')
UNION ALL
SELECT 'index ' || indexrelid::regclass, format('of %s is not valid', indrelid::regclass)
FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
WHERE relnamespace = 'safelight'::regnamespace AND NOT indisvalid
UNION ALL
SELECT 'rule ' || conname, format('of %s does not hold for every row', conrelid::regclass)
FROM pg_constraint WHERE connamespace = 'safelight'::regnamespace AND NOT convalidated;

-- name: count_guards$
-- Rules that are looked for.
SELECT cardinality(:guards::text[]);

-- name: deliveries
-- I18, I19: What is due to customers is tried in time; nothing is on its way to an endpoint that is out of use.
SELECT 'endpoint ' || endpoint.id AS subject,
       CASE WHEN endpoint.disabled_at IS NOT NULL OR endpoint.deleted_at IS NOT NULL
            THEN format('is out of use, but %s deliveries to it are pending', count(*))
            ELSE format('has %s deliveries that are due since %s', count(*),
                        date_trunc('second', min(deliveries.due_at))) END AS detail
FROM deliveries JOIN webhook_endpoints AS endpoint ON endpoint.id = deliveries.endpoint_id
WHERE deliveries.status = 'pending'
  AND (endpoint.disabled_at IS NOT NULL OR endpoint.deleted_at IS NOT NULL
       -- One that failed last is tried more rarely, and rests in between.
       OR (endpoint.failures = 0 AND deliveries.due_at < clock_now() - make_interval(secs => :late_s)))
GROUP BY endpoint.id;

-- name: count_deliveries$
-- Deliveries on their way.
SELECT count(*) FROM deliveries WHERE status = 'pending';
