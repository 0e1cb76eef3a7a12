-- The outbox: events, their deliveries and each try. The rows are the truth; a job only makes somebody look.

-- name: insert_event^
-- An event that is about no task; its deliveries follow by trigger.
INSERT INTO webhook_events (account_id, type, endpoint_id, body, created_at)
VALUES (:account_id, :type, :endpoint_id, :body, clock_now()) RETURNING id;

-- name: delivery_of_event^
-- The delivery of an event to one endpoint.
SELECT id FROM deliveries WHERE event_id = :event_id AND endpoint_id = :endpoint_id;

-- name: is_due$
-- Whether an endpoint with failures, or one without, has something due.
-- That it is below infinity is said for the index, which holds no sleepers.
SELECT EXISTS (
    SELECT FROM webhook_endpoints
    WHERE wake_at <= clock_now() AND wake_at < 'infinity' AND (failures > 0) = :is_failing
);

-- name: lock_claims!
-- One claims at a time, so that what is in flight is counted rightly; held for milliseconds.
SELECT pg_advisory_xact_lock(hashtext('safelight deliveries'));

-- name: ready_endpoints
-- Endpoints with something due, the healthiest first; one that is being changed is left for the next time.
SELECT id FROM webhook_endpoints
WHERE wake_at <= clock_now() AND wake_at < 'infinity' AND (failures > 0) = :is_failing
ORDER BY failures >= :degraded, wake_at LIMIT :room FOR NO KEY UPDATE SKIP LOCKED;

-- name: claim
-- The fairest of what is due: accounts in turn, within each its endpoints in turn, and never more to one endpoint than
-- it bears, nor than `each`. Claiming pushes `due_at` forward: that is the lease.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now),
busy AS MATERIALIZED (
    SELECT deliveries.endpoint_id, deliveries.account_id, count(*) AS tries
    FROM deliveries CROSS JOIN moment WHERE is_claimed AND due_at > now GROUP BY 1, 2
),
ready AS MATERIALIZED (
    SELECT endpoint.id, endpoint.account_id, endpoint.failures, coalesce(busy.tries, 0) AS in_flight,
           greatest(0, CASE WHEN endpoint.failures >= :degraded THEN 1 ELSE least(endpoint.concurrency, :each) END
                       - coalesce(busy.tries, 0)) AS free
    FROM webhook_endpoints AS endpoint LEFT JOIN busy ON busy.endpoint_id = endpoint.id
    WHERE endpoint.id = ANY(:endpoint_ids::uuid[])
),
due AS MATERIALIZED (
    SELECT waiting.id, waiting.due_at, ready.account_id, ready.failures,
           ready.in_flight + row_number() OVER (PARTITION BY ready.id ORDER BY waiting.due_at, waiting.id) AS place
    FROM ready CROSS JOIN moment CROSS JOIN LATERAL (
        SELECT id, due_at FROM deliveries
        WHERE endpoint_id = ready.id AND status = 'pending' AND due_at <= now
        ORDER BY due_at, id LIMIT ready.free
    ) AS waiting
),
turns AS (
    SELECT due.*, coalesce(account.tries, 0)
           + row_number() OVER (PARTITION BY due.account_id ORDER BY place, failures, due_at, due.id) AS turn
    FROM due LEFT JOIN (SELECT account_id, sum(tries) AS tries FROM busy GROUP BY account_id) AS account
      ON account.account_id = due.account_id
),
chosen AS (
    SELECT id FROM turns ORDER BY failures >= :degraded, turn, place, failures, due_at, id LIMIT :room
)
UPDATE deliveries SET is_claimed = true, due_at = now + make_interval(secs => :lease_s)
FROM chosen CROSS JOIN moment WHERE deliveries.id = chosen.id AND deliveries.status = 'pending'
RETURNING deliveries.id;

-- name: pace
-- When each of these endpoints is looked at next: with a free place when its next delivery is due, without one when a
-- lease ends at the latest. Says whether that is now.
UPDATE webhook_endpoints AS endpoint
SET wake_at = CASE
    WHEN disabled_at IS NOT NULL OR deleted_at IS NOT NULL THEN 'infinity'
    WHEN (SELECT count(*) FROM deliveries AS flying
          WHERE flying.endpoint_id = endpoint.id AND flying.is_claimed AND flying.due_at > clock_now())
         >= CASE WHEN failures >= :degraded THEN 1 ELSE concurrency END
    THEN (SELECT min(flying.due_at) FROM deliveries AS flying
          WHERE flying.endpoint_id = endpoint.id AND flying.is_claimed AND flying.due_at > clock_now())
    ELSE greatest(rest_until, coalesce((SELECT min(waiting.due_at) FROM deliveries AS waiting
          WHERE waiting.endpoint_id = endpoint.id AND waiting.status = 'pending'), 'infinity'))
END
WHERE endpoint.id = ANY(:endpoint_ids::uuid[])
RETURNING endpoint.id, endpoint.wake_at <= clock_now() AS is_due;

-- name: claimed
-- What is to be sent, and where to.
SELECT deliveries.id, deliveries.endpoint_id, deliveries.account_id, deliveries.event_id, deliveries.tries,
       deliveries.step, event.type, event.body, event.created_at AS event_at, endpoint.url,
       endpoint.failures >= :degraded AS is_degraded, clock_now() AS now
FROM deliveries JOIN webhook_events AS event ON event.id = deliveries.event_id
JOIN webhook_endpoints AS endpoint ON endpoint.id = deliveries.endpoint_id
WHERE deliveries.id = ANY(:ids::bigint[]) ORDER BY deliveries.id;

-- name: lock_delivery^
-- A delivery whose try has ended, and its endpoint, if the try is still its next one.
SELECT endpoint.id FROM webhook_endpoints AS endpoint
WHERE endpoint.id = (SELECT endpoint_id FROM deliveries WHERE id = :id) FOR NO KEY UPDATE;

-- name: end_try^
-- Note how a try ended and what follows: the end of the delivery, or its next try. A try that somebody else recorded,
-- or whose delivery ended meanwhile, changes nothing.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now),
delivery AS (
    UPDATE deliveries
    SET tries = tries + 1, step = least(step + 1, 10), is_claimed = false, last_status = :status,
        status = :becomes, reason = :why,
        due_at = CASE WHEN :gap_s::float8 IS NULL THEN due_at ELSE now + make_interval(secs => :gap_s) END,
        ended_at = CASE WHEN :becomes = 'pending' THEN NULL ELSE now END
    FROM moment WHERE id = :id AND deliveries.status = 'pending' AND tries + 1 = :number
    RETURNING id
)
INSERT INTO tries (delivery_id, number, endpoint_id, url, headers, status, reason, detail, answer, started_at, ended_at)
SELECT id, :number, :endpoint_id, :url, :headers::jsonb, :status, :reason, :detail, :answer, :started_at, now
FROM delivery CROSS JOIN moment RETURNING number;

-- name: note_success!
-- Any success makes an endpoint a healthy one; it bears one more at a time.
UPDATE webhook_endpoints
SET failures = 0, failing_since = NULL, succeeded_at = clock_now(), rest_until = '-infinity',
    concurrency = least(concurrency + 1, 10)
WHERE id = :id;

-- name: note_failure^
-- A failure more in a row. The clock of the disable rule starts with the first that makes so many, so far apart, within
-- a day; says whether it has run out.
UPDATE webhook_endpoints AS endpoint
SET failures = failures + 1,
    concurrency = CASE WHEN :is_throttled THEN greatest(concurrency / 2, 1) ELSE concurrency END,
    rest_until = CASE WHEN failures + 1 >= :degraded
                 THEN clock_now() + make_interval(secs => :rest_s) ELSE rest_until END,
    failing_since = coalesce(failing_since, (
        SELECT CASE WHEN count(*) >= :enough AND max(ended_at) - min(ended_at) >= make_interval(secs => :spread_s)
               THEN clock_now() END
        FROM tries
        WHERE tries.endpoint_id = endpoint.id AND ended_at > clock_now() - make_interval(secs => :within_s)
          AND ended_at > coalesce(endpoint.succeeded_at, '-infinity')
          AND (tries.status IS NULL OR tries.status NOT BETWEEN 200 AND 299)))
WHERE id = :id
RETURNING failures, coalesce(failing_since <= clock_now() - make_interval(secs => :after_s), false) AS is_over;

-- name: redeliver$
-- An ended delivery of this endpoint begins anew: due now, with the whole schedule before it.
UPDATE deliveries
SET status = 'pending', reason = '', step = 0, due_at = clock_now(), ended_at = NULL, is_claimed = false
WHERE id = :id AND endpoint_id = :endpoint_id AND status <> 'pending' RETURNING id;

-- name: find_delivery^
-- A delivery of this endpoint, whatever became of it.
SELECT id, status FROM deliveries WHERE id = :id AND endpoint_id = :endpoint_id;

-- name: recover
-- What failed since a moment begins anew, oldest first, a little apart; so many at once.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now),
lost AS MATERIALIZED (
    SELECT deliveries.id, row_number() OVER (ORDER BY deliveries.id) - 1 AS place FROM deliveries
    JOIN webhook_events AS event ON event.id = deliveries.event_id
    WHERE deliveries.endpoint_id = :endpoint_id AND deliveries.status = 'failed' AND event.created_at >= :since
      AND event.type <> 'endpoint.test'
    ORDER BY deliveries.id LIMIT :room
)
UPDATE deliveries
SET status = 'pending', reason = '', step = 0, ended_at = NULL, due_at = now + make_interval(secs => place * :apart_s)
FROM lost CROSS JOIN moment WHERE deliveries.id = lost.id RETURNING deliveries.id;

-- name: mend_wakes
-- Endpoints that sleep although something of theirs is due: none, unless somebody changed rows by hand.
SELECT endpoint.id FROM webhook_endpoints AS endpoint
WHERE endpoint.disabled_at IS NULL AND endpoint.deleted_at IS NULL
  AND greatest(endpoint.wake_at, endpoint.rest_until) > clock_now() + make_interval(secs => :slack_s)
  AND EXISTS (SELECT FROM deliveries WHERE deliveries.endpoint_id = endpoint.id AND status = 'pending'
              AND NOT is_claimed AND due_at <= clock_now())
LIMIT :room;

-- name: drop_events$
-- Events of a month ago go with their deliveries and tries; what is still on its way stays.
WITH due AS MATERIALIZED (
    SELECT id FROM webhook_events
    WHERE created_at < clock_now() - make_interval(days => :keep_days)
      AND NOT EXISTS (SELECT FROM deliveries WHERE event_id = webhook_events.id AND status = 'pending')
    ORDER BY created_at, id LIMIT :room
), gone AS (
    DELETE FROM webhook_events USING due WHERE webhook_events.id = due.id RETURNING webhook_events.id
)
SELECT count(*) FROM gone;

-- name: drop_endpoints!
-- Deleted endpoints of which no event speaks any more.
DELETE FROM webhook_endpoints AS endpoint
WHERE deleted_at < clock_now() - make_interval(days => :keep_days)
  AND NOT EXISTS (SELECT FROM deliveries WHERE endpoint_id = endpoint.id)
  AND NOT EXISTS (SELECT FROM webhook_events WHERE endpoint_id = endpoint.id);
