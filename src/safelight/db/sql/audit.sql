-- Read-only questions of the doctor: each returns a row (subject, detail) for what it finds, and none if all is well.

-- name: balances
-- An account has what its entries add up to, and nothing is overdrawn.
SELECT 'account ' || accounts.name AS subject,
       format('has %s available and %s held, but its entries add up to %s and %s', accounts.available, accounts.held,
              coalesce(posted.available, 0), coalesce(posted.held, 0)) AS detail
FROM accounts
LEFT JOIN (SELECT account_id, sum(available_delta) AS available, sum(held_delta) AS held
           FROM entries GROUP BY account_id) AS posted ON posted.account_id = accounts.id
WHERE (accounts.available, accounts.held) IS DISTINCT FROM (coalesce(posted.available, 0), coalesce(posted.held, 0))
   OR accounts.available < 0 OR accounts.held < 0;

-- name: holds
-- What an account has held is the sum of the holds of its open tasks.
SELECT 'account ' || accounts.name AS subject,
       format('has %s held, but its open tasks hold %s', accounts.held, coalesce(open.held, 0)) AS detail
FROM accounts
LEFT JOIN (SELECT account_id, sum(held) AS held FROM tasks WHERE finished_at IS NULL GROUP BY account_id) AS open
       ON open.account_id = accounts.id
WHERE accounts.held <> coalesce(open.held, 0);

-- name: open_tasks
-- An account counts its open tasks rightly.
SELECT 'account ' || accounts.name AS subject,
       format('counts %s open tasks, but has %s', accounts.open_tasks, coalesce(open.tasks, 0)) AS detail
FROM accounts
LEFT JOIN (SELECT account_id, count(*) AS tasks FROM tasks WHERE finished_at IS NULL GROUP BY account_id) AS open
       ON open.account_id = accounts.id
WHERE accounts.open_tasks <> coalesce(open.tasks, 0);

-- name: entries
-- A task has exactly one hold, as large as its price says, and at most one settling entry.
SELECT * FROM (
    SELECT 'task ' || tasks.id AS subject,
           CASE WHEN coalesce(posted.holds, 0) = 0 THEN 'has no hold in the ledger'
                WHEN posted.holds > 1 THEN format('has %s holds in the ledger', posted.holds)
                WHEN posted.held <> tasks.held THEN
                    format('holds %s, but the ledger holds %s for it', tasks.held, posted.held)
                WHEN posted.settled > 1 THEN format('was settled %s times in the ledger', posted.settled)
                WHEN posted.account_id <> tasks.account_id THEN 'is paid for by another account' END AS detail
    FROM tasks
    LEFT JOIN (SELECT task_id, count(*) FILTER (WHERE kind = 'hold') AS holds,
                      sum(held_delta) FILTER (WHERE kind = 'hold') AS held,
                      count(*) FILTER (WHERE kind = 'settle') AS settled,
                      CASE WHEN min(account_id::text) = max(account_id::text)
                           THEN min(account_id::text)::uuid END AS account_id
               FROM entries WHERE task_id IS NOT NULL GROUP BY task_id) AS posted ON posted.task_id = tasks.id
) AS judged WHERE detail IS NOT NULL;

-- name: settlements
-- A task that has ended has exactly one settlement, that adds up and was posted; an open one has none.
SELECT * FROM (
    SELECT 'task ' || tasks.id AS subject,
           CASE WHEN tasks.finished_at IS NULL AND settlements.task_id IS NOT NULL THEN
                    format('is %s, but has a settlement', tasks.state)
                WHEN tasks.finished_at IS NULL AND settle.task_id IS NOT NULL THEN
                    format('is %s, but was settled in the ledger', tasks.state)
                WHEN tasks.finished_at IS NULL THEN NULL
                WHEN settlements.task_id IS NULL THEN format('has ended as %s without a settlement', tasks.state)
                WHEN settlements.held <> tasks.held OR settlements.captured + settlements.released <> tasks.held THEN
                    format('held %s, but captured %s and released %s', tasks.held, settlements.captured,
                           settlements.released)
                WHEN settlements.account_id <> tasks.account_id THEN 'was settled with another account'
                WHEN (settle.available_delta, settle.held_delta)
                     IS DISTINCT FROM (settlements.released, -settlements.held) THEN
                    format('released %s of %s, but the ledger says %s of %s', settlements.released, settlements.held,
                           coalesce(settle.available_delta, 0), coalesce(-settle.held_delta, 0)) END AS detail
    FROM tasks
    LEFT JOIN settlements ON settlements.task_id = tasks.id
    LEFT JOIN entries AS settle ON settle.task_id = tasks.id AND settle.kind = 'settle'
) AS judged WHERE detail IS NOT NULL;

-- name: captures
-- What was captured is the price of the pictures; a task without success has captured and kept nothing.
SELECT * FROM (
    SELECT 'task ' || tasks.id AS subject,
           CASE WHEN tasks.state <> 'succeeded' AND coalesce(kept.pictures, 0) > 0 THEN
                    format('is %s, but has %s pictures', tasks.state, kept.pictures)
                WHEN tasks.state <> 'succeeded' AND coalesce(settlements.captured, 0) > 0 THEN
                    format('is %s, but captured %s', tasks.state, settlements.captured)
                WHEN tasks.state <> 'succeeded' THEN NULL
                WHEN coalesce(kept.pictures, 0) = 0 THEN 'has succeeded without a picture'
                WHEN kept.pictures > tasks.n THEN format('has %s pictures of %s', kept.pictures, tasks.n)
                WHEN settlements.captured <> tasks.unit_price * kept.pictures THEN
                    format('captured %s for %s pictures at %s', settlements.captured, kept.pictures,
                           tasks.unit_price) END AS detail
    FROM tasks
    LEFT JOIN settlements ON settlements.task_id = tasks.id
    LEFT JOIN (SELECT task_id, count(*) AS pictures FROM assets GROUP BY task_id) AS kept ON kept.task_id = tasks.id
) AS judged WHERE detail IS NOT NULL;

-- name: history
-- The history of a task is a path along the arrows, one version a step, and ends where the row stands.
WITH arrow AS MATERIALIZED (SELECT * FROM unnest(:sources::text[], :targets::text[]) AS arrow (source, target)),
step AS (
    SELECT task_id, version, source, target, lag(version) OVER path AS version_before,
           lag(target) OVER path AS target_before, lead(version) OVER path IS NULL AS is_last
    FROM task_events WINDOW path AS (PARTITION BY task_id ORDER BY version)
),
judged AS (
    SELECT tasks.id,
           CASE WHEN step.task_id IS NULL THEN 'has no history'
                WHEN step.version_before IS NULL AND (step.version, step.target) <> (1, 'queued') THEN
                    format('its history begins with version %s, %s', step.version, step.target)
                WHEN step.version <> step.version_before + 1 THEN
                    format('its history jumps from version %s to %s', step.version_before, step.version)
                WHEN step.source IS DISTINCT FROM step.target_before THEN
                    format('version %s leaves %s, but stood at %s', step.version, step.source, step.target_before)
                WHEN step.source IS NOT NULL AND arrow.source IS NULL THEN
                    format('version %s goes from %s to %s, where no arrow goes', step.version, step.source,
                           step.target)
                WHEN step.is_last AND (step.version, step.target) <> (tasks.version, tasks.state) THEN
                    format('is %s at version %s, but its history ends with %s at version %s', tasks.state,
                           tasks.version, step.target, step.version) END AS detail
    FROM tasks
    LEFT JOIN step ON step.task_id = tasks.id
    LEFT JOIN arrow ON arrow.source = step.source AND arrow.target = step.target
)
SELECT 'task ' || id AS subject, detail FROM judged WHERE detail IS NOT NULL;

-- name: endings
-- A task ends once, and an open one has not ended.
SELECT 'task ' || tasks.id AS subject,
       format('is %s, but ended %s times', tasks.state, coalesce(ended.times, 0)) AS detail
FROM tasks
LEFT JOIN (SELECT task_id, count(*) AS times FROM task_events WHERE target = ANY(:terminal::text[]) GROUP BY task_id)
       AS ended ON ended.task_id = tasks.id
WHERE coalesce(ended.times, 0) <> CASE WHEN tasks.finished_at IS NULL THEN 0 ELSE 1 END;

-- name: receipts
-- A task was accepted under one key, whose stored answer names it; expired keys may be gone.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now)
SELECT * FROM (
    SELECT 'task ' || tasks.id AS subject,
           CASE WHEN count(receipts.task_id) > 1 THEN format('has %s receipts', count(receipts.task_id))
                WHEN count(receipts.task_id) = 0 AND tasks.created_at > now - make_interval(secs => :keep_s) THEN
                    'has no receipt'
                WHEN bool_or(receipts.account_id <> tasks.account_id) THEN 'has a receipt of another account'
                WHEN bool_or(position(convert_to(tasks.id::text, 'UTF8') IN receipts.body) = 0) THEN
                    'has a receipt that names another task' END AS detail
    FROM moment CROSS JOIN tasks LEFT JOIN receipts ON receipts.task_id = tasks.id
    GROUP BY tasks.id, now
) AS judged WHERE detail IS NOT NULL;

-- name: attempts
-- Attempts are numbered from 1 to the current one; a call in flight has its intent; only the current one is open.
SELECT * FROM (
    SELECT 'task ' || tasks.id AS subject,
           CASE WHEN coalesce(made.attempts, 0) <> tasks.attempt
                     OR (tasks.attempt > 0 AND (made.first, made.last) <> (1, tasks.attempt)) THEN
                    format('is at attempt %s, but has %s', tasks.attempt, coalesce(made.numbers, 'none'))
                WHEN tasks.state = 'submitting' AND made.open IS DISTINCT FROM tasks.attempt THEN
                    format('is being submitted, but attempt %s has ended', tasks.attempt)
                WHEN made.earliest_open < tasks.attempt THEN
                    format('made attempt %s while attempt %s was open', tasks.attempt, made.earliest_open) END AS detail
    FROM tasks
    LEFT JOIN (SELECT task_id, count(*) AS attempts, min(number) AS first, max(number) AS last,
                      max(number) FILTER (WHERE ended_at IS NULL) AS open,
                      min(number) FILTER (WHERE ended_at IS NULL) AS earliest_open,
                      string_agg(number::text, ', ' ORDER BY number) AS numbers
               FROM attempts GROUP BY task_id) AS made ON made.task_id = tasks.id
) AS judged WHERE detail IS NOT NULL;

-- name: provider_refs
-- No two attempts share an id of their provider.
SELECT format('%s %s', provider, provider_ref) AS subject,
       format('belongs to %s attempts, of tasks %s', count(*), string_agg(DISTINCT task_id::text, ', ')) AS detail
FROM attempts WHERE provider_ref IS NOT NULL
GROUP BY provider, provider_ref HAVING count(*) > 1;

-- name: callbacks
-- A callback was applied once for each status, and only to an attempt that was made at its provider.
SELECT 'task ' || task_id AS subject,
       format('%s callbacks with status %s were applied to attempt %s', count(*), upstream_status, attempt) AS detail
FROM callbacks WHERE verdict = 'applied' AND task_id IS NOT NULL
GROUP BY task_id, attempt, upstream_status HAVING count(*) > 1
UNION ALL
SELECT 'callback ' || callbacks.id,
       format('of %s was applied to attempt %s of task %s, which was not made there', callbacks.provider,
              coalesce(callbacks.attempt::text, '?'), coalesce(callbacks.task_id::text, '?'))
FROM callbacks
LEFT JOIN attempts ON attempts.task_id = callbacks.task_id AND attempts.number = callbacks.attempt
                  AND attempts.provider = callbacks.provider
WHERE callbacks.verdict = 'applied' AND attempts.task_id IS NULL;

-- name: overdue
-- Every open task is woken in time. A waiting one may wait for capacity, but not past its start.
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

-- name: reviews
-- What waits for a person: no fault, but somebody should know.
SELECT 'task ' || id AS subject,
       format('waits for a person since %s: %s; decide by %s', date_trunc('second', state_since), review_reason,
              date_trunc('second', decide_by)) AS detail
FROM tasks WHERE state = 'review' ORDER BY decide_by;

-- name: asset_batch
-- Pictures by id, a batch at a time, so that no transaction is open while their bytes are read.
SELECT id, task_id, store_key, content_type, width, height, bytes, sha256
FROM assets WHERE id > :after ORDER BY id LIMIT :room;

-- name: ownerless_keys
-- Which of these keys no row owns; what is staged belongs to its task while that is open.
SELECT wanted.key
FROM (SELECT key, CASE WHEN key ~ '^staging/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/'
                       THEN split_part(key, '/', 2)::uuid END AS staged_for
      FROM unnest(:keys::text[]) AS key) AS wanted
LEFT JOIN assets ON assets.store_key = wanted.key
LEFT JOIN tasks ON tasks.id = wanted.staged_for AND tasks.finished_at IS NULL
WHERE assets.id IS NULL AND tasks.id IS NULL;

-- name: attempts_of
-- Every attempt of one task, oldest first.
SELECT number, provider, upstream_model, reference, provider_ref, sends, throttled, upstream_status, sent_at, accepted_at,
       looked_at, ended_at, run_s, noticed_by, outcome, failure_class, failure_code, excerpt
FROM attempts WHERE task_id = :task_id ORDER BY number;
