-- Batches: their rows, what they let go to work, and what became of their items.

-- name: find_batch^
-- The batch of an idempotency key.
SELECT id, fingerprint, state, canceled_at FROM batches WHERE account_id = :account_id AND key = :key;

-- name: insert_batch$
-- A batch whose items are still to be accepted.
INSERT INTO batches (id, account_id, name, key, fingerprint, items, at_once, start_in_s)
VALUES (:id, :account_id, :name, :key, :fingerprint, :items, :at_once, :start_in_s) RETURNING id;

-- name: insert_refusals!
-- Items that become no task.
INSERT INTO batch_refusals (batch_id, position, code, detail)
SELECT :batch_id, position, code, detail
FROM unnest(:positions::integer[], :codes::text[], :details::text[]) AS refused (position, code, detail)
ON CONFLICT DO NOTHING;

-- name: refused_positions
-- Which items became no task.
SELECT position FROM batch_refusals WHERE batch_id = :batch_id;

-- name: lock_batch^
-- After its account.
SELECT id, account_id, state, canceled_at FROM batches
WHERE id = :id AND account_id = :account_id FOR NO KEY UPDATE;

-- name: accepting
-- Those of these batches that take items still.
SELECT id FROM batches WHERE id = ANY(:ids::uuid[]) AND state = 'accepting';

-- name: open_batch!
-- All of it is accepted: its first items may go to work.
UPDATE batches SET state = 'open' WHERE id = :id AND state = 'accepting';

-- name: cancel_batch!
-- No further item goes to work; where it came to nothing, its key is free again.
UPDATE batches
SET canceled_at = coalesce(canceled_at, clock_now()), state = CASE WHEN state = 'accepting' THEN 'open' ELSE state END,
    key = CASE WHEN :is_key_free THEN NULL ELSE key END
WHERE id = :id AND finished_at IS NULL;

-- name: release_next
-- Let so many parked items go to work as others have left room for. The accounts are locked, so nobody else counts.
WITH room AS MATERIALIZED (
    SELECT batches.id, batches.start_in_s, batches.at_once - (
        SELECT count(*) FROM tasks WHERE batch_id = batches.id AND finished_at IS NULL AND wake_at < 'infinity') AS free
    FROM batches WHERE id = ANY(:ids::uuid[]) AND state = 'open' AND canceled_at IS NULL
),
next AS MATERIALIZED (
    SELECT item.id, room.start_in_s FROM room CROSS JOIN LATERAL (
        SELECT id FROM tasks WHERE batch_id = room.id AND state = 'queued' AND wake_at = 'infinity'
        ORDER BY batch_position LIMIT greatest(room.free, 0) FOR NO KEY UPDATE SKIP LOCKED
    ) AS item
),
task AS (
    UPDATE tasks SET wake_at = clock_now(), start_by = clock_now() + make_interval(secs => next.start_in_s)
    FROM next WHERE tasks.id = next.id RETURNING tasks.provider
)
SELECT DISTINCT provider FROM task ORDER BY provider;

-- name: finish_batches!
-- Those of which every item has ended.
UPDATE batches SET state = 'finished', finished_at = clock_now()
WHERE id = ANY(:ids::uuid[]) AND state = 'open'
  AND NOT EXISTS (SELECT FROM tasks WHERE batch_id = batches.id AND finished_at IS NULL);

-- name: waiting_items
-- Items that can be canceled at once.
SELECT id FROM tasks WHERE batch_id = :id AND state IN ('queued', 'retrying') ORDER BY id LIMIT :room;

-- name: request_cancels!
-- The providers of the others are asked by their next look.
UPDATE tasks
SET cancel_requested_at = clock_now(), wake_at = CASE WHEN state = 'running' THEN clock_now() ELSE wake_at END
WHERE batch_id = :id AND state IN ('submitting', 'uncertain', 'running') AND cancel_requested_at IS NULL;

-- name: batches_to_tend
-- Unfinished batches with something left to do: room for parked items, or items to cancel, or nobody who hands in the rest.
SELECT id, account_id, state = 'accepting' AS is_abandoned, canceled_at IS NOT NULL AS is_canceled
FROM batches
WHERE finished_at IS NULL AND id > :after
  AND (state = 'open' OR created_at < clock_now() - make_interval(secs => :abandoned_s))
ORDER BY id LIMIT :room;

-- name: read_batch^
-- A batch of an account, with what became of its items.
SELECT batches.id, batches.name, batches.items, batches.at_once, batches.state, batches.created_at, batches.canceled_at,
       batches.finished_at, refused.items AS refused, counted.*
FROM batches
CROSS JOIN LATERAL (SELECT count(*) AS items FROM batch_refusals WHERE batch_id = batches.id) AS refused
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE tasks.finished_at IS NULL) AS processing,
           count(*) FILTER (WHERE tasks.finished_at IS NULL AND wake_at < 'infinity') AS at_work,
           count(*) FILTER (WHERE tasks.state = 'succeeded') AS ready,
           count(*) FILTER (WHERE tasks.state IN ('failed', 'blocked', 'canceled')) AS failed,
           coalesce(sum(tasks.held), 0)::bigint AS price,
           coalesce(sum(tasks.held) FILTER (WHERE tasks.finished_at IS NULL), 0)::bigint AS held,
           coalesce(sum(settlements.captured), 0)::bigint AS captured,
           coalesce(sum(settlements.released), 0)::bigint AS released
    FROM tasks LEFT JOIN settlements ON settlements.task_id = tasks.id WHERE tasks.batch_id = batches.id
) AS counted
WHERE batches.account_id = :account_id AND batches.id = :id;

-- name: list_batches
-- Ids of an account's batches, newest first, older than `before`.
SELECT id FROM batches
WHERE account_id = :account_id AND id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
ORDER BY id DESC LIMIT :room;

-- name: list_items
-- Ids of a batch's tasks with their places, and items that became none, in order.
SELECT item.position, item.task_id, item.code, item.detail
FROM (
    (SELECT batch_position AS position, id AS task_id, NULL AS code, NULL AS detail FROM tasks
     WHERE batch_id = :id AND account_id = :account_id AND batch_position > :after
     ORDER BY batch_position LIMIT :room)
    UNION ALL
    (SELECT batch_refusals.position, NULL, batch_refusals.code, batch_refusals.detail
     FROM batch_refusals JOIN batches ON batches.id = batch_refusals.batch_id
     WHERE batch_id = :id AND account_id = :account_id AND batch_refusals.position > :after
     ORDER BY batch_refusals.position LIMIT :room)
) AS item
ORDER BY item.position LIMIT :room;

-- name: forget_batches!
-- Keys of batches that ended long ago become new, as those of tasks do.
UPDATE batches SET key = NULL
WHERE key IS NOT NULL AND finished_at < clock_now() - make_interval(days => :keep_days);

-- name: drop_refusals!
-- Why items were refused goes with what the others said.
DELETE FROM batch_refusals USING batches
WHERE batches.id = batch_refusals.batch_id AND batches.finished_at < clock_now() - make_interval(days => :keep_days);
