-- Retention: small batches, oldest first; money, audit and the skeleton of a task stay.

-- name: lease$
-- Take the lease of a policy, unless another worker holds it.
UPDATE retention SET leased_until = clock_now() + make_interval(secs => :lease_s)
WHERE kind = :kind AND leased_until <= clock_now() RETURNING kind;

-- name: free!
-- Give the lease back.
UPDATE retention SET leased_until = '-infinity' WHERE kind = :kind;

-- name: take_due
-- The next tasks that ended before the policy's days; they count as done when this commits.
WITH place AS MATERIALIZED (
    SELECT done_at, done_id, clock_now() - make_interval(days => :keep_days) AS until
    FROM retention WHERE kind = :kind FOR UPDATE
),
due AS MATERIALIZED (
    SELECT id, finished_at FROM tasks
    WHERE finished_at IS NOT NULL
      AND (finished_at, id) > ((SELECT done_at FROM place), (SELECT done_id FROM place))
      AND finished_at < (SELECT until FROM place)
    ORDER BY finished_at, id LIMIT :room
),
done AS (
    UPDATE retention SET done_at = last.finished_at, done_id = last.id
    FROM (SELECT finished_at, id FROM due ORDER BY finished_at DESC, id DESC LIMIT 1) AS last
    WHERE kind = :kind
)
SELECT id FROM due ORDER BY id;

-- name: let_histories_go!
-- For this transaction alone: deleting a history is meant.
SELECT set_config('safelight.retention', 'on', true);

-- name: drop_histories$
-- The moves of these tasks go, and their rows say so.
WITH gone AS (DELETE FROM task_events WHERE task_id = ANY(:ids::uuid[]) RETURNING id),
said AS (
    UPDATE tasks SET history_dropped_at = clock_now()
    WHERE id = ANY(:ids::uuid[]) AND finished_at IS NOT NULL AND history_dropped_at IS NULL
)
SELECT count(*) FROM gone;

-- name: drop_callbacks$
-- What providers told us about these tasks.
WITH gone AS (DELETE FROM callbacks WHERE task_id = ANY(:ids::uuid[]) RETURNING id)
SELECT count(*) FROM gone;

-- name: doom_assets$
-- From this commit on nobody gets these pictures any more; their bytes go next.
WITH doomed AS (
    UPDATE assets SET doomed_at = clock_now() WHERE task_id = ANY(:ids::uuid[]) AND doomed_at IS NULL RETURNING id
)
SELECT count(*) FROM doomed;

-- name: erase_tasks$
-- What these finished tasks said goes: prompt, inputs, options, metadata, and what providers answered. Amounts stay.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now),
wanted AS MATERIALIZED (
    SELECT id, account_id, images, mask FROM tasks
    WHERE id = ANY(:ids::uuid[]) AND finished_at IS NOT NULL AND erased_at IS NULL ORDER BY id FOR NO KEY UPDATE
),
task AS (
    UPDATE tasks SET prompt = '', options = '{}', metadata = '{}', images = '{}', mask = NULL, erased_at = now
    FROM wanted, moment WHERE tasks.id = wanted.id RETURNING tasks.id
),
attempt AS (
    UPDATE attempts SET outputs = '[]', links = '{}', excerpt = '' FROM wanted WHERE attempts.task_id = wanted.id
),
callback AS (
    UPDATE callbacks SET body = '' FROM wanted WHERE callbacks.task_id = wanted.id
),
finding AS (
    UPDATE findings SET detail = detail - 'outputs' FROM wanted WHERE findings.task_id = wanted.id
),
input AS (
    -- The upload's own end of life: it is deleted as any that expires, and kept while another open task needs it.
    UPDATE uploads SET expires_at = least(expires_at, now) FROM wanted, moment
    WHERE uploads.account_id = wanted.account_id AND uploads.doomed_at IS NULL
      AND (uploads.id = ANY(wanted.images) OR uploads.id = wanted.mask)
)
SELECT count(*) FROM task;

-- name: doomed_assets
-- Doomed pictures whose bytes may still be there, oldest first.
SELECT id, store_key FROM assets
WHERE doomed_at IS NOT NULL AND deleted_at IS NULL AND (:ids::uuid[] IS NULL OR task_id = ANY(:ids::uuid[]))
ORDER BY doomed_at, id LIMIT :room;

-- name: note_deleted!
-- Their bytes are gone; the row stays as the record.
UPDATE assets SET deleted_at = clock_now() WHERE id = ANY(:ids::uuid[]) AND doomed_at IS NOT NULL AND deleted_at IS NULL;

-- name: drop_receipts$
-- Receipts of keys that have expired, a day after their task has ended at the earliest.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now),
due AS MATERIALIZED (
    SELECT receipts.account_id, receipts.route, receipts.key
    FROM moment CROSS JOIN receipts JOIN tasks ON tasks.id = receipts.task_id
    WHERE receipts.expires_at <= now AND receipts.created_at <= now - make_interval(days => :keep_days)
      AND tasks.finished_at <= now - interval '24 hours'
    ORDER BY receipts.expires_at LIMIT :room
),
gone AS (
    DELETE FROM receipts USING due
    WHERE receipts.account_id = due.account_id AND receipts.route = due.route AND receipts.key = due.key
    RETURNING receipts.task_id
)
SELECT count(*) FROM gone;

-- name: restored_tasks$
-- This database was restored: whatever may have been sent since the backup is looked for before it is sent.
WITH due AS MATERIALIZED (
    SELECT id FROM tasks WHERE finished_at IS NULL AND look_until < attempt + :attempts ORDER BY id LIMIT :room
    FOR NO KEY UPDATE
),
task AS (
    UPDATE tasks SET look_until = tasks.attempt + :attempts FROM due WHERE tasks.id = due.id RETURNING tasks.id
)
SELECT count(*) FROM task;
