-- Live events: numbered when they are first read, read in the order of their numbers, dropped after a while.

-- name: number_events$
-- Number what these accounts have committed; how many rows the fullest of them had.
SELECT coalesce(max(number_live_events(account_id, :room)), 0)
FROM (SELECT account_id FROM unnest(:account_ids::uuid[]) AS reader (account_id) ORDER BY account_id) AS reader;

-- name: read_events
-- What came after the number that each reader has seen.
SELECT event.account_id, event.number, event.task_id, event.version, event.status, event.stage, event.percent,
       event.position, event.failure_class, event.failure_code, event.created_at
FROM unnest(:account_ids::uuid[], :after::bigint[]) AS reader (account_id, after)
CROSS JOIN LATERAL (
    SELECT * FROM live_events
    WHERE account_id = reader.account_id AND number > reader.after ORDER BY number LIMIT :room
) AS event
ORDER BY event.account_id, event.number;

-- name: read_events_of_task
-- What came after a number, of one task.
SELECT account_id, number, task_id, version, status, stage, percent, position, failure_class, failure_code, created_at
FROM live_events
WHERE task_id = :task_id AND account_id = :account_id AND number > :after ORDER BY number LIMIT :room;

-- name: last_event_of_task^
-- How a task was last told of.
SELECT account_id, number, task_id, version, status, stage, percent, position, failure_class, failure_code, created_at
FROM live_events
WHERE task_id = :task_id AND account_id = :account_id AND number IS NOT NULL ORDER BY number DESC LIMIT 1;

-- name: read_position^
-- The last number of an account that was given, and the last one whose row may be gone.
SELECT last, dropped FROM live_counters WHERE account_id = :account_id;

-- name: accounts_with_old_events
-- Whose events are the oldest, if they are old enough to go.
SELECT DISTINCT account_id FROM (SELECT account_id, created_at FROM live_events ORDER BY id LIMIT :room) AS oldest
WHERE created_at < clock_now() - make_interval(secs => :keep_s) ORDER BY account_id;

-- name: ensure_counters!
-- So that there is a row to lock.
INSERT INTO live_counters (account_id) SELECT unnest(:account_ids::uuid[]) ON CONFLICT DO NOTHING;

-- name: lock_counters
-- Before any event of theirs, in one order.
SELECT account_id FROM live_counters WHERE account_id = ANY(:account_ids::uuid[]) ORDER BY account_id FOR UPDATE;

-- name: drop_events$
-- The oldest events go. Who has seen less than what went is told so: where rows went that nobody ever numbered, a number
-- is left out, so that every reader of before has seen less.
WITH gone AS (
    DELETE FROM live_events
    WHERE id IN (SELECT id FROM live_events ORDER BY id LIMIT :room)
      AND created_at < clock_now() - make_interval(secs => :keep_s) AND account_id = ANY(:account_ids::uuid[])
    RETURNING account_id, number
),
told AS (
    UPDATE live_counters
    SET last = last + lost.unread,
        dropped = CASE WHEN lost.unread = 1 THEN last + 1 ELSE greatest(dropped, lost.number) END
    FROM (SELECT account_id, max(number) AS number, max((number IS NULL)::integer) AS unread FROM gone GROUP BY 1) AS lost
    WHERE live_counters.account_id = lost.account_id
)
SELECT count(*) FROM gone;

-- name: leap!
-- This database was restored: numbers given after the backup are not given again, and their readers are told to begin anew.
INSERT INTO live_counters (account_id, last, dropped) SELECT id, :by, :by FROM accounts ORDER BY id
ON CONFLICT (account_id) DO UPDATE SET last = live_counters.last + :by, dropped = live_counters.last + :by;

-- name: insert_ticket$
-- A ticket for one stream; when it ends.
INSERT INTO event_tickets (digest, account_id, key_id, expires_at)
VALUES (:digest, :account_id, :key_id, clock_now() + make_interval(secs => :life_s)) RETURNING expires_at;

-- name: take_ticket^
-- Whose ticket this is; it is used up.
DELETE FROM event_tickets WHERE digest = :digest RETURNING account_id, key_id, expires_at > clock_now() AS is_live;

-- name: drop_tickets!
-- Tickets that nobody used in time.
DELETE FROM event_tickets WHERE expires_at <= clock_now();
