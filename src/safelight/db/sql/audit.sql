-- Read-only questions of the doctor: each returns a row (subject, detail) for what it finds, and none if all is well.
-- The invariants I1 to I26 are those of docs/operating/doctor.md. Most questions are asked of one range of tasks after
-- the other, `after` < id <= `upto`, so that each is short and sees one moment, however many tasks there are. Every
-- table is told the range: else a join would read it whole for each of them.

-- name: task_range^
-- Where the next tasks end, and how many there are.
SELECT count(*) AS rows, (array_agg(id))[count(*)::integer] AS upto
FROM (SELECT id FROM tasks WHERE id > :after ORDER BY id LIMIT :room) AS next;

-- name: account_range^
-- Where the next accounts end, and how many there are.
SELECT count(*) AS rows, (array_agg(id))[count(*)::integer] AS upto
FROM (SELECT id FROM accounts WHERE id > :after ORDER BY id LIMIT :room) AS next;

-- name: balances
-- I8, I9: An account has what its entries add up to, and is never overdrawn.
SELECT 'account ' || coalesce(accounts.name, posted.account_id::text) AS subject,
       CASE WHEN accounts.id IS NULL THEN 'does not exist, but has entries'
            ELSE format('has %s available and %s held, but its entries add up to %s and %s', accounts.available,
                        accounts.held, coalesce(posted.available, 0), coalesce(posted.held, 0)) END AS detail
FROM (SELECT * FROM accounts WHERE id > :after AND id <= :upto) AS accounts
FULL JOIN (SELECT account_id, sum(available_delta) AS available, sum(held_delta) AS held
           FROM entries WHERE account_id > :after AND account_id <= :upto GROUP BY account_id) AS posted
       ON posted.account_id = accounts.id
WHERE (accounts.available, accounts.held) IS DISTINCT FROM (coalesce(posted.available, 0), coalesce(posted.held, 0))
   OR accounts.available < 0 OR accounts.held < 0;

-- name: overdrafts
-- I9: At no entry was an account overdrawn, or more given back than was held.
SELECT 'account ' || name AS subject, format('stood at %s available and %s held after entry %s', available, held, id) AS detail
FROM (SELECT accounts.name, entries.id,
             sum(available_delta) OVER path AS available, sum(held_delta) OVER path AS held,
             -- Taking credits back waits for the account after it got its number: it may stand before the grant it took from.
             kind = 'adjust' OR lag(kind) OVER path = 'adjust' AS is_adjusted
      FROM entries JOIN accounts ON accounts.id = entries.account_id AND accounts.id > :after AND accounts.id <= :upto
      WHERE account_id > :after AND account_id <= :upto
      WINDOW path AS (PARTITION BY account_id ORDER BY entries.id)) AS posted
WHERE (available < 0 OR held < 0) AND NOT is_adjusted;

-- name: holds
-- I6: What an account has held is the sum of the holds of its open tasks.
SELECT 'account ' || accounts.name AS subject,
       format('has %s held, but its open tasks hold %s', accounts.held, coalesce(open.held, 0)) AS detail
FROM accounts
LEFT JOIN (SELECT account_id, sum(held) AS held FROM tasks
           WHERE finished_at IS NULL AND account_id > :after AND account_id <= :upto GROUP BY account_id) AS open
       ON open.account_id = accounts.id
WHERE accounts.id > :after AND accounts.id <= :upto AND accounts.held <> coalesce(open.held, 0);

-- name: open_tasks
-- I26: An account counts its open tasks rightly.
SELECT 'account ' || accounts.name AS subject,
       format('counts %s open tasks, but has %s', accounts.open_tasks, coalesce(open.tasks, 0)) AS detail
FROM accounts
LEFT JOIN (SELECT account_id, count(*) AS tasks FROM tasks
           WHERE finished_at IS NULL AND account_id > :after AND account_id <= :upto GROUP BY account_id) AS open
       ON open.account_id = accounts.id
WHERE accounts.id > :after AND accounts.id <= :upto AND accounts.open_tasks <> coalesce(open.tasks, 0);

-- name: entries
-- I3, I7: A task has exactly one hold, as large as its price says, and at most one entry that settles it.
SELECT * FROM (
    SELECT 'task ' || tasks.id AS subject,
           CASE WHEN coalesce(posted.holds, 0) = 0 THEN 'has no hold in the ledger'
                WHEN posted.holds > 1 THEN format('has %s holds in the ledger', posted.holds)
                WHEN posted.held <> tasks.held THEN
                    format('holds %s, but the ledger holds %s for it', tasks.held, posted.held)
                WHEN posted.settled > 1 THEN format('was settled %s times in the ledger', posted.settled)
                WHEN tasks.held <> tasks.unit_price * tasks.n THEN
                    format('holds %s, but %s pictures at %s were promised', tasks.held, tasks.n, tasks.unit_price)
                END AS detail
    FROM tasks
    LEFT JOIN (SELECT task_id, count(*) FILTER (WHERE kind = 'hold') AS holds,
                      sum(held_delta) FILTER (WHERE kind = 'hold') AS held,
                      count(*) FILTER (WHERE kind = 'settle') AS settled
               FROM entries WHERE task_id > :after AND task_id <= :upto GROUP BY task_id) AS posted
           ON posted.task_id = tasks.id
    WHERE tasks.id > :after AND tasks.id <= :upto
) AS judged WHERE detail IS NOT NULL;

-- name: orphans
-- I3: Whatever speaks of a task speaks of one that exists.
SELECT 'task ' || speaking.task_id AS subject,
       format('does not exist, but has %s', string_agg(DISTINCT speaking.what, ', ')) AS detail
FROM (SELECT task_id, 'entries' AS what FROM entries WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, 'a settlement' FROM settlements WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, 'a receipt' FROM receipts WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, 'a history' FROM task_events WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, 'attempts' FROM attempts WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, 'pictures' FROM assets WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, 'callbacks' FROM callbacks WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, 'findings' FROM findings WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, 'losses' FROM losses WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, 'decisions' FROM decisions WHERE task_id > :after AND task_id <= :upto) AS speaking
LEFT JOIN tasks ON tasks.id = speaking.task_id AND tasks.id > :after AND tasks.id <= :upto
WHERE tasks.id IS NULL GROUP BY speaking.task_id;

-- name: owners
-- I23: Whatever belongs to a task belongs to its account.
SELECT 'task ' || tasks.id AS subject, format('belongs to another account than its %s', owned.what) AS detail
FROM tasks
JOIN (SELECT task_id, account_id, 'entries' AS what FROM entries WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, account_id, 'settlement' FROM settlements WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, account_id, 'receipt' FROM receipts WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, account_id, 'history' FROM task_events WHERE task_id > :after AND task_id <= :upto
      UNION ALL SELECT task_id, account_id, 'pictures' FROM assets WHERE task_id > :after AND task_id <= :upto) AS owned
     ON owned.task_id = tasks.id AND owned.account_id <> tasks.account_id
WHERE tasks.id > :after AND tasks.id <= :upto GROUP BY tasks.id, owned.what;

-- name: settlements
-- I6, I7: A task that has ended has exactly one settlement, that adds up and was posted; an open one has none.
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
                WHEN (settle.available_delta, settle.held_delta)
                     IS DISTINCT FROM (settlements.released, -settlements.held) THEN
                    format('released %s of %s, but the ledger says %s of %s', settlements.released, settlements.held,
                           coalesce(settle.available_delta, 0), coalesce(-settle.held_delta, 0)) END AS detail
    FROM tasks
    LEFT JOIN settlements ON settlements.task_id = tasks.id AND settlements.task_id > :after AND settlements.task_id <= :upto
    LEFT JOIN (SELECT * FROM entries WHERE kind = 'settle' AND task_id > :after AND task_id <= :upto) AS settle
           ON settle.task_id = tasks.id
    WHERE tasks.id > :after AND tasks.id <= :upto
) AS judged WHERE detail IS NOT NULL;

-- name: captures
-- I6, I11, I15: What was captured is the price of the pictures; a task without success captured and kept nothing.
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
    LEFT JOIN settlements ON settlements.task_id = tasks.id AND settlements.task_id > :after AND settlements.task_id <= :upto
    LEFT JOIN (SELECT task_id, count(*) AS pictures FROM assets
               WHERE task_id > :after AND task_id <= :upto GROUP BY task_id) AS kept ON kept.task_id = tasks.id
    WHERE tasks.id > :after AND tasks.id <= :upto
) AS judged WHERE detail IS NOT NULL;

-- name: history
-- I4, I14: The history of a task is a path along the arrows, one version a step, and ends where the row stands; its
-- attempts only go up.
WITH arrow AS MATERIALIZED (SELECT * FROM unnest(:sources::text[], :targets::text[]) AS arrow (source, target)),
step AS (
    SELECT task_id, version, source, target, attempt, lag(version) OVER path AS version_before,
           lag(target) OVER path AS target_before, lag(attempt) OVER path AS attempt_before,
           lead(version) OVER path IS NULL AS is_last
    FROM task_events WHERE task_id > :after AND task_id <= :upto WINDOW path AS (PARTITION BY task_id ORDER BY version)
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
                WHEN step.attempt < step.attempt_before THEN
                    format('version %s falls back from attempt %s to %s', step.version, step.attempt_before, step.attempt)
                -- A waiting task that goes to another provider stays in its state.
                WHEN step.source = step.target AND step.source IN ('queued', 'retrying') THEN NULL
                WHEN step.source IS NOT NULL AND arrow.source IS NULL THEN
                    format('version %s goes from %s to %s, where no arrow goes', step.version, step.source,
                           step.target)
                WHEN step.is_last AND (step.version, step.target) <> (tasks.version, tasks.state) THEN
                    format('is %s at version %s, but its history ends with %s at version %s', tasks.state,
                           tasks.version, step.target, step.version) END AS detail
    FROM tasks
    LEFT JOIN step ON step.task_id = tasks.id
    LEFT JOIN arrow ON arrow.source = step.source AND arrow.target = step.target
    -- What retention took away, it took away whole.
    WHERE tasks.id > :after AND tasks.id <= :upto AND (tasks.history_dropped_at IS NULL OR step.task_id IS NOT NULL)
)
SELECT 'task ' || id AS subject, detail FROM judged WHERE detail IS NOT NULL;

-- name: endings
-- I5: A task ends once, when its row says, and an open one has not ended.
SELECT * FROM (
    SELECT 'task ' || tasks.id AS subject,
           CASE WHEN coalesce(ended.times, 0) <> CASE WHEN tasks.finished_at IS NULL THEN 0 ELSE 1 END THEN
                    format('is %s, but ended %s times', tasks.state, coalesce(ended.times, 0))
                WHEN abs(extract(epoch FROM tasks.finished_at - ended.at)) > 60 THEN
                    format('ended at %s, but its history says %s', date_trunc('second', tasks.finished_at),
                           date_trunc('second', ended.at)) END AS detail
    FROM tasks
    LEFT JOIN (SELECT task_id, count(*) AS times, max(created_at) AS at FROM task_events
               WHERE target = ANY(:terminal::text[]) AND task_id > :after AND task_id <= :upto
               GROUP BY task_id) AS ended ON ended.task_id = tasks.id
    WHERE tasks.id > :after AND tasks.id <= :upto AND tasks.history_dropped_at IS NULL
) AS judged WHERE detail IS NOT NULL;

-- name: receipts
-- I2, I3, I24: A task was accepted under one key, whose stored answer names it; expired keys may be gone.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now)
SELECT * FROM (
    SELECT 'task ' || tasks.id AS subject,
           CASE WHEN count(receipts.task_id) > 1 THEN format('has %s receipts', count(receipts.task_id))
                WHEN count(receipts.task_id) = 0 AND (tasks.finished_at IS NULL
                     OR tasks.created_at > now - make_interval(secs => :keep_s)) THEN 'has no receipt'
                WHEN bool_or(position(convert_to(tasks.id::text, 'UTF8') IN receipts.body) = 0) THEN
                    'has a receipt that names another task' END AS detail
    FROM moment CROSS JOIN tasks
    LEFT JOIN receipts ON receipts.task_id = tasks.id AND receipts.task_id > :after AND receipts.task_id <= :upto
    WHERE tasks.id > :after AND tasks.id <= :upto
    GROUP BY tasks.id, now
) AS judged WHERE detail IS NOT NULL;

-- name: attempts
-- I12, I13: Attempts are numbered from 1 to the current one; a call in flight has its intent; only the current one is
-- open; none follows one that delivered, unless a person decided so.
SELECT * FROM (
    SELECT 'task ' || tasks.id AS subject,
           CASE WHEN coalesce(made.attempts, 0) <> tasks.attempt
                     OR (tasks.attempt > 0 AND (made.first, made.last) <> (1, tasks.attempt)) THEN
                    format('is at attempt %s, but has %s', tasks.attempt, coalesce(made.numbers, 'none'))
                WHEN tasks.state = 'submitting' AND made.open IS DISTINCT FROM tasks.attempt THEN
                    format('is being submitted, but attempt %s has ended', tasks.attempt)
                WHEN made.earliest_open < tasks.attempt THEN
                    format('made attempt %s while attempt %s was open', tasks.attempt, made.earliest_open)
                WHEN made.delivered < tasks.attempt THEN
                    format('made attempt %s although attempt %s had delivered', made.delivered + 1, made.delivered)
                WHEN tasks.state IN ('submitting', 'uncertain', 'running', 'archiving', 'review')
                     AND (current.provider, current.upstream_model) <> (tasks.provider, tasks.upstream_model) THEN
                    format('stands at %s, but attempt %s is at %s', tasks.provider, tasks.attempt,
                           current.provider) END AS detail
    FROM tasks
    LEFT JOIN attempts AS current ON current.task_id = tasks.id AND current.number = tasks.attempt
                                 AND current.task_id > :after AND current.task_id <= :upto
    LEFT JOIN (SELECT task_id, count(*) AS attempts, min(number) AS first, max(number) AS last,
                      max(number) FILTER (WHERE ended_at IS NULL) AS open,
                      min(number) FILTER (WHERE ended_at IS NULL) AS earliest_open,
                      min(number) FILTER (WHERE outcome IN ('succeeded', 'blocked') AND NOT EXISTS (
                          SELECT FROM decisions WHERE decisions.task_id = attempts.task_id
                          AND decisions.attempt = attempts.number AND decision = 'resubmit')) AS delivered,
                      string_agg(number::text, ', ' ORDER BY number) AS numbers
               FROM attempts WHERE task_id > :after AND task_id <= :upto GROUP BY task_id) AS made
           ON made.task_id = tasks.id
    WHERE tasks.id > :after AND tasks.id <= :upto
) AS judged WHERE detail IS NOT NULL;

-- name: bounds
-- I26: Sends, attempts and kept callbacks stay within their bounds.
SELECT * FROM (
    SELECT 'task ' || made.task_id AS subject,
           CASE WHEN made.sends > :max_sends THEN format('an attempt was sent %s times', made.sends)
                WHEN made.tries > :max_attempts + (SELECT count(*) FROM decisions
                     WHERE decisions.task_id = made.task_id AND decision = 'resubmit') THEN
                    format('had %s attempts', made.tries)
                WHEN told.callbacks > :max_callbacks THEN
                    format('keeps %s callbacks of one attempt', told.callbacks) END AS detail
    FROM (SELECT task_id, max(sends - throttled) AS sends,
                 count(*) FILTER (WHERE sends > throttled OR accepted_at IS NOT NULL) AS tries
          FROM attempts WHERE task_id > :after AND task_id <= :upto GROUP BY task_id) AS made
    LEFT JOIN (SELECT task_id, max(callbacks) AS callbacks
               FROM (SELECT task_id, count(*) AS callbacks FROM callbacks
                     WHERE verdict <> 'applied' AND task_id > :after AND task_id <= :upto
                     GROUP BY task_id, attempt) AS counted
               GROUP BY task_id) AS told ON told.task_id = made.task_id
) AS judged WHERE detail IS NOT NULL;

-- name: callbacks
-- I21, I22: A callback was applied once for each status, and only to an attempt that was made at its provider.
SELECT 'task ' || task_id AS subject,
       format('%s callbacks with status %s were applied to attempt %s', count(*), upstream_status, attempt) AS detail
FROM callbacks WHERE verdict = 'applied' AND task_id > :after AND task_id <= :upto
GROUP BY task_id, attempt, upstream_status HAVING count(*) > 1
UNION ALL
SELECT 'callback ' || callbacks.id,
       format('of %s was applied to attempt %s of task %s, which was not made there', callbacks.provider,
              coalesce(callbacks.attempt::text, '?'), coalesce(callbacks.task_id::text, '?'))
FROM callbacks
LEFT JOIN attempts ON attempts.task_id = callbacks.task_id AND attempts.number = callbacks.attempt
                  AND attempts.provider = callbacks.provider
                  AND attempts.task_id > :after AND attempts.task_id <= :upto
WHERE callbacks.verdict = 'applied' AND attempts.task_id IS NULL
  AND ((callbacks.task_id > :after AND callbacks.task_id <= :upto)
       OR (callbacks.task_id IS NULL AND :after::uuid = '00000000-0000-0000-0000-000000000000'));

-- name: callers
-- I21: What a callback moved was moved by one that is in the inbox.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now)
SELECT 'task ' || event.task_id AS subject,
       format('version %s was brought about by a callback that is not in the inbox', event.version) AS detail
FROM moment CROSS JOIN task_events AS event
JOIN attempts ON attempts.task_id = event.task_id AND attempts.number = event.attempt
             AND attempts.task_id > :after AND attempts.task_id <= :upto
WHERE event.task_id > :after AND event.task_id <= :upto AND event.cause = 'callback'
  -- Older ones may have gone by policy, and callbacks that came before their attempt was known are kept for a day.
  AND event.created_at > now - interval '23 hours'
  AND NOT EXISTS (SELECT FROM callbacks WHERE callbacks.task_id = event.task_id AND callbacks.attempt = event.attempt
                  AND callbacks.task_id > :after AND callbacks.task_id <= :upto)
  AND NOT EXISTS (SELECT FROM callbacks
                  WHERE callbacks.provider = attempts.provider AND callbacks.provider_ref = attempts.provider_ref
                    AND callbacks.verdict = 'unknown' AND callbacks.task_id IS NULL);

-- name: events
-- I17, I18: Where an endpoint was there before a task ended, there is the event of its end, and it tells the truth.
WITH moment AS MATERIALIZED (SELECT clock_now() - make_interval(days => :keep_deliveries_days) AS kept_since)
SELECT 'task ' || tasks.id AS subject,
       CASE WHEN event.id IS NULL THEN 'has ended, but no event tells of it'
            ELSE format('is %s, but its event says %s and %s credits', tasks.state, event.type, told.captured) END AS detail
FROM moment CROSS JOIN tasks
JOIN settlements ON settlements.task_id = tasks.id
LEFT JOIN webhook_events AS event ON event.task_id = tasks.id AND event.task_id > :after AND event.task_id <= :upto
LEFT JOIN LATERAL (
    SELECT convert_from(event.body, 'UTF8')::json #>> '{data,credits,captured}' AS captured
) AS told ON true
WHERE tasks.id > :after AND tasks.id <= :upto
  AND settlements.task_id > :after AND settlements.task_id <= :upto AND tasks.finished_at > kept_since
  AND CASE WHEN event.id IS NULL
      THEN EXISTS (SELECT FROM webhook_endpoints AS endpoint
                   WHERE endpoint.account_id = tasks.account_id AND endpoint.deleted_at IS NULL
                     AND endpoint.created_at < tasks.finished_at)
      ELSE (event.type = 'task.ready') <> (tasks.state = 'succeeded') OR told.captured <> settlements.captured::text END;

-- name: erasures
-- I10: What was erased is gone, and the record of every picture tells what became of its bytes.
SELECT * FROM (
    SELECT 'task ' || tasks.id AS subject,
           CASE WHEN tasks.erased_at IS NOT NULL AND (tasks.prompt <> '' OR tasks.metadata <> '{}') THEN
                    format('was erased at %s, but still says something', date_trunc('second', tasks.erased_at))
                WHEN waiting.since < clock_now() - interval '1 day' THEN
                    format('has pictures that wait to be deleted since %s', date_trunc('second', waiting.since))
                END AS detail
    FROM tasks
    LEFT JOIN (SELECT task_id, min(doomed_at) AS since FROM assets
               WHERE doomed_at IS NOT NULL AND deleted_at IS NULL AND task_id > :after AND task_id <= :upto
               GROUP BY task_id) AS waiting ON waiting.task_id = tasks.id
    WHERE tasks.id > :after AND tasks.id <= :upto AND (tasks.erased_at IS NOT NULL OR waiting.since IS NOT NULL)
) AS judged WHERE detail IS NOT NULL;

-- name: asset_batch
-- Pictures by id, a batch at a time, so that no transaction is open while their bytes are read.
SELECT id, task_id, store_key, content_type, width, height, bytes, sha256
FROM assets WHERE id > :after AND doomed_at IS NULL ORDER BY id LIMIT :room;

-- name: kept_assets
-- Those of these pictures that are not to be deleted.
SELECT id FROM assets WHERE id = ANY(:ids::uuid[]) AND doomed_at IS NULL;

-- name: ownerless_keys
-- Which of these keys no row owns; what is staged belongs to its task while that is open.
SELECT wanted.key
FROM (SELECT key, CASE WHEN key ~ '^staging/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/'
                       THEN split_part(key, '/', 2)::uuid END AS staged_for,
             CASE WHEN key ~ '^thumbnails/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[.]webp$'
                  THEN substr(key, 12, 36)::uuid END AS small_of
      FROM unnest(:keys::text[]) AS key) AS wanted
LEFT JOIN assets ON (assets.store_key = wanted.key OR assets.id = wanted.small_of) AND assets.deleted_at IS NULL
LEFT JOIN uploads ON uploads.store_key = wanted.key
LEFT JOIN tasks ON tasks.id = wanted.staged_for AND tasks.finished_at IS NULL
WHERE assets.id IS NULL AND uploads.id IS NULL AND tasks.id IS NULL;

-- name: attempts_of
-- Every attempt of one task, oldest first.
SELECT number, provider, upstream_model, reference, provider_ref, sends, throttled, upstream_status, sent_at, accepted_at,
       looked_at, ended_at, run_s, noticed_by, outcome, failure_class, failure_code, excerpt
FROM attempts WHERE task_id = :task_id ORDER BY number;
