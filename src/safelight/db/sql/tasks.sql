-- name: find_receipts
-- Which of these (account, key) pairs were accepted before, and with what answer.
-- Lateral, so that each key is one probe of the primary key however many receipts the account has.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now)
SELECT receipt.account_id, receipt.key, receipt.fingerprint, receipt.body, receipt.task_id,
       -- A key becomes new again when its days are over, and never before its task has ended for a day.
       receipt.expires_at <= moment.now
       AND EXISTS (SELECT FROM tasks WHERE id = receipt.task_id AND finished_at <= moment.now - interval '24 hours')
       AS is_expired
FROM moment CROSS JOIN unnest(:account_ids::uuid[], :keys::text[]) AS wanted (account_id, key)
CROSS JOIN LATERAL (
    SELECT * FROM receipts
    WHERE account_id = wanted.account_id AND route = :route AND key = wanted.key LIMIT 1
) AS receipt;

-- name: forget_receipts!
-- Make room for keys that have expired, so that they count as new.
DELETE FROM receipts
USING unnest(:account_ids::uuid[], :keys::text[]) AS expired (account_id, key)
WHERE receipts.account_id = expired.account_id AND receipts.route = :route AND receipts.key = expired.key;

-- name: insert_accepted!
-- T1: tasks, holds, receipts and first events, together or not at all.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now),
item AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:items::json) AS item (
        id uuid, account_id uuid, model text, operation text, prompt text, n integer, size text,
        aspect_ratio text, images uuid[], mask uuid, options jsonb, metadata jsonb, priority smallint, provider text,
        upstream_model text, unit_price bigint, held bigint, start_in_s double precision,
        deadline_s double precision, route text, key text, fingerprint text, body text, keep_s double precision,
        batch_id uuid, batch_position integer)
),
task AS (
    INSERT INTO tasks (id, account_id, model, operation, prompt, n, size, aspect_ratio, images, mask, options, metadata,
                       priority, provider, upstream_model, unit_price, held, wake_at, start_by, deadline_s,
                       created_at, state_since, batch_id, batch_position)
    SELECT id, account_id, model, operation, prompt, n, size, aspect_ratio, images, mask, options, metadata,
           priority, provider, upstream_model, unit_price, held,
           -- An item of a batch is parked: it neither wakes nor has to start until its batch lets it go.
           CASE WHEN batch_id IS NULL THEN now ELSE 'infinity' END,
           CASE WHEN batch_id IS NULL THEN now + make_interval(secs => start_in_s) ELSE 'infinity' END,
           deadline_s, now, now, batch_id, batch_position
    FROM item, moment
),
entry AS (
    INSERT INTO entries (account_id, kind, task_id, available_delta, held_delta, created_at)
    SELECT account_id, 'hold', id, -held, held, now FROM item, moment
),
receipt AS (
    INSERT INTO receipts (account_id, route, key, fingerprint, task_id, body, created_at, expires_at)
    SELECT account_id, route, key, decode(fingerprint, 'hex'), id, convert_to(body, 'UTF8'), now,
           now + make_interval(secs => keep_s)
    FROM item, moment
)
INSERT INTO task_events (task_id, account_id, version, source, target, attempt, cause, created_at)
SELECT id, account_id, 1, NULL, 'queued', 0, 'accepted', now FROM item, moment;

-- name: capacity_taken^
-- What a provider's calls and active tasks take of its limits right now, and the submits of its rate's window.
SELECT count(*) FILTER (WHERE state = 'submitting') AS calls, count(*) AS tasks, coalesce(sum(n), 0)::bigint AS images,
       (SELECT count(*) FROM attempts
        WHERE attempts.provider = :provider AND sent_at > clock_now() - make_interval(secs => :window_s)) AS sent
FROM tasks
WHERE provider = :provider AND state IN ('submitting', 'uncertain', 'running');

-- name: claim_fairest
-- T2: take the fairest due tasks that fit, commit their attempt (the intent) and lease them until answer_by.
-- Fairest: the account with the fewest in flight, then priority within the account, then age.
WITH RECURSIVE moment AS MATERIALIZED (SELECT clock_now() AS now),
waiting_account AS (
    (SELECT account_id FROM tasks
     WHERE provider = :provider AND state IN ('queued', 'retrying') AND wake_at < 'infinity'
     ORDER BY account_id LIMIT 1)
    UNION ALL
    SELECT (SELECT tasks.account_id FROM tasks
            WHERE provider = :provider AND state IN ('queued', 'retrying') AND wake_at < 'infinity'
              AND tasks.account_id > waiting_account.account_id
            ORDER BY tasks.account_id LIMIT 1)
    FROM waiting_account WHERE waiting_account.account_id IS NOT NULL
),
in_flight AS (
    SELECT account_id, count(*) AS taken FROM tasks
    WHERE provider = :provider AND state IN ('submitting', 'uncertain', 'running') GROUP BY account_id
),
ranked AS (
    SELECT due.id, due.n,
           coalesce(in_flight.taken, 0)
           + row_number() OVER (PARTITION BY waiting_account.account_id ORDER BY due.priority DESC, due.id) AS turn
    FROM waiting_account CROSS JOIN moment
    CROSS JOIN LATERAL (
        SELECT id, n, priority FROM tasks
        WHERE provider = :provider AND account_id = waiting_account.account_id AND state IN ('queued', 'retrying')
          AND wake_at < 'infinity' AND wake_at <= moment.now AND start_by > moment.now AND cancel_requested_at IS NULL
          AND upstream_model <> ALL (:retired::text[])
        ORDER BY priority DESC, id LIMIT :calls_free
    ) AS due
    LEFT JOIN in_flight ON in_flight.account_id = waiting_account.account_id
    WHERE waiting_account.account_id IS NOT NULL
),
in_turn AS (
    SELECT id, row_number() OVER (ORDER BY turn, id) AS place, sum(n) OVER (ORDER BY turn, id) AS images
    FROM ranked
),
claimed AS MATERIALIZED (
    SELECT tasks.id, tasks.attempt, tasks.state AS source,
           coalesce(attempts.ended_at IS NULL AND attempts.number IS NOT NULL, false) AS is_same_attempt
    FROM in_turn JOIN tasks ON tasks.id = in_turn.id
    LEFT JOIN attempts ON attempts.task_id = tasks.id AND attempts.number = tasks.attempt
    WHERE place <= :calls_free AND (in_turn.images <= :images_free OR (place = 1 AND :is_idle))
      AND tasks.state IN ('queued', 'retrying') AND tasks.provider = :provider
    ORDER BY tasks.id FOR NO KEY UPDATE OF tasks SKIP LOCKED
),
task AS (
    UPDATE tasks
    SET state = 'submitting', version = tasks.version + 1,
        attempt = CASE WHEN is_same_attempt THEN tasks.attempt ELSE tasks.attempt + 1 END,
        wake_at = now + make_interval(secs => :answer_in_s), looks = 0,
        deadline_at = now + make_interval(secs => tasks.deadline_s)
    FROM claimed, moment WHERE tasks.id = claimed.id
    RETURNING tasks.*, claimed.source
),
attempt AS (
    INSERT INTO attempts (task_id, number, provider, upstream_model, reference, images, sent_at, answer_by, created_at)
    SELECT id, attempt, provider, upstream_model, replace(id::text, '-', '') || '-' || attempt, n, now,
           now + make_interval(secs => :answer_in_s), now
    FROM task, moment
    ON CONFLICT (task_id, number) DO UPDATE
    SET sends = attempts.sends + 1, sent_at = EXCLUDED.sent_at, answer_by = EXCLUDED.answer_by
    RETURNING *
),
event AS (
    INSERT INTO task_events (task_id, account_id, version, source, target, attempt, cause, created_at)
    SELECT task.id, task.account_id, task.version, task.source, 'submitting', task.attempt, 'claimed', now
    FROM task, moment
)
SELECT task.*, moment.now, attempt.number, attempt.reference, attempt.sends, attempt.throttled, attempt.provider_ref,
       attempt.upstream_status, attempt.accepted_at, attempt.looked_at, attempt.outputs, attempt.outcome,
       attempt.sent_at, attempt.answer_by, attempt.links, attempt.provider AS attempt_provider,
       attempt.upstream_model AS attempt_model
FROM task JOIN attempt ON attempt.task_id = task.id CROSS JOIN moment
ORDER BY task.id;

-- name: lock_tasks
-- Lock tasks in the one order (after their accounts).
SELECT tasks.*, clock_now() AS now FROM tasks WHERE id = ANY(:ids::uuid[]) ORDER BY id FOR NO KEY UPDATE;

-- name: accounts_of_tasks
-- Whose tasks these are; an account never changes, so no lock is needed.
SELECT id, account_id FROM tasks WHERE id = ANY(:ids::uuid[]);

-- name: read_attempts
-- Every attempt of locked tasks.
SELECT attempts.*, attempts.provider AS attempt_provider, attempts.upstream_model AS attempt_model
FROM attempts WHERE task_id = ANY(:task_ids::uuid[]) ORDER BY task_id, number;

-- name: attempt_of_provider_ref^
-- Which attempt a provider's own id belongs to.
SELECT task_id, number FROM attempts WHERE provider = :provider AND provider_ref = :provider_ref;

-- name: read_task^
-- One task without a lock, with its current attempt.
SELECT tasks.*, clock_now() AS now, attempts.number, attempts.reference, attempts.sends, attempts.throttled,
       attempts.provider_ref, attempts.upstream_status, attempts.accepted_at, attempts.looked_at, attempts.outputs,
       attempts.outcome, attempts.sent_at, attempts.answer_by, attempts.links, attempts.provider AS attempt_provider,
       attempts.upstream_model AS attempt_model
FROM tasks LEFT JOIN attempts ON attempts.task_id = tasks.id AND attempts.number = tasks.attempt
WHERE tasks.id = :id;

-- name: move
-- Conditional one-way moves with their history; an item whose state or version has changed moves nothing.
-- A move that stays in its state takes a waiting task to another provider.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now),
item AS (
    SELECT * FROM json_to_recordset(:items::json) AS item (
        id uuid, version integer, source text, target text, cause text, detail text, wake_in_s double precision,
        review_reason text, decide_in_s double precision, copy_within_s double precision, provider text,
        upstream_model text, deadline_s double precision)
),
moved AS (
    UPDATE tasks
    SET state = item.target, version = tasks.version + 1, wake_at = now + make_interval(secs => item.wake_in_s),
        review_reason = item.review_reason, decide_by = now + make_interval(secs => item.decide_in_s), looks = 0,
        copy_by = now + make_interval(secs => item.copy_within_s), provider = coalesce(item.provider, tasks.provider),
        upstream_model = coalesce(item.upstream_model, tasks.upstream_model),
        deadline_s = coalesce(item.deadline_s, tasks.deadline_s)
    FROM item, moment
    WHERE tasks.id = item.id AND tasks.version = item.version AND tasks.state = item.source
    RETURNING tasks.id, tasks.account_id, tasks.version, tasks.attempt, item.source, item.target, item.cause, item.detail
)
INSERT INTO task_events (task_id, account_id, version, source, target, attempt, cause, detail, created_at)
SELECT id, account_id, version, source, target, attempt, cause, coalesce(detail, ''), now FROM moved, moment
RETURNING task_id;

-- name: note_progress!
-- Hints for a progress bar, which never go backwards, and when to look next.
UPDATE tasks
SET percent = greatest(tasks.percent, item.percent), position = least(tasks.position, item.position),
    looks = coalesce(item.looks, tasks.looks),
    wake_at = coalesce(clock_now() + make_interval(secs => item.wake_in_s), tasks.wake_at)
FROM json_to_recordset(:items::json) AS item (
    id uuid, version integer, percent smallint, position integer, looks integer, wake_in_s double precision)
WHERE tasks.id = item.id AND tasks.version = item.version AND tasks.finished_at IS NULL;

-- name: patch_attempts!
-- What is learned about attempts; what is already known is never overwritten by nothing.
-- Run time: the provider's own; else ours where it told us by itself; a success that a look found counts with
-- the look before, or not at all, so that lost callbacks cannot push the threshold up.
-- Cost: the latest that was told while it ran; what an attempt that has ended is known to have cost stays.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now),
item AS (
    SELECT * FROM json_to_recordset(:items::json) AS item (
        task_id uuid, number smallint, provider_ref text, upstream_status text, is_accepted boolean, is_looked boolean,
        throttled smallint, noticed_by text, outputs jsonb, links jsonb, run_s double precision, cost numeric, outcome text,
        failure_class text, failure_code text, excerpt text)
)
UPDATE attempts
SET provider_ref = coalesce(attempts.provider_ref, item.provider_ref),
    upstream_status = coalesce(item.upstream_status, attempts.upstream_status),
    accepted_at = CASE WHEN item.is_accepted THEN coalesce(attempts.accepted_at, now) ELSE attempts.accepted_at END,
    looked_at = CASE WHEN item.is_looked THEN now ELSE attempts.looked_at END,
    throttled = attempts.throttled + coalesce(item.throttled, 0),
    noticed_by = CASE WHEN item.outcome IS NULL THEN attempts.noticed_by
                      ELSE coalesce(attempts.noticed_by, item.noticed_by) END,
    outputs = coalesce(item.outputs, attempts.outputs),
    links = attempts.links || coalesce(item.links, '{}'),
    run_s = CASE
        WHEN item.outcome IS DISTINCT FROM 'succeeded' THEN attempts.run_s
        -- A person who decides says nothing about how long it took.
        WHEN item.noticed_by = 'decision' THEN attempts.run_s
        WHEN item.run_s >= 0 THEN item.run_s
        -- A clock that was set back gives no time at all.
        WHEN coalesce(attempts.accepted_at, attempts.sent_at)
             > CASE WHEN item.noticed_by IN ('callback', 'answer') THEN now ELSE attempts.looked_at END THEN NULL
        WHEN item.noticed_by IN ('callback', 'answer')
            THEN extract(epoch FROM now - coalesce(attempts.accepted_at, attempts.sent_at))
        ELSE extract(epoch FROM attempts.looked_at - coalesce(attempts.accepted_at, attempts.sent_at)) END,
    cost = CASE WHEN attempts.outcome IS NULL THEN coalesce(item.cost, attempts.cost)
                ELSE coalesce(attempts.cost, item.cost) END,
    outcome = coalesce(attempts.outcome, item.outcome),
    failure_class = coalesce(attempts.failure_class, item.failure_class),
    failure_code = coalesce(attempts.failure_code, item.failure_code),
    excerpt = coalesce(nullif(item.excerpt, ''), attempts.excerpt),
    ended_at = CASE WHEN attempts.outcome IS NULL AND item.outcome IS NOT NULL THEN now ELSE attempts.ended_at END
FROM item, moment
WHERE attempts.task_id = item.task_id AND attempts.number = item.number;

-- name: taken_provider_refs
-- Provider ids that already belong to an attempt.
SELECT attempts.provider, attempts.provider_ref, attempts.task_id, attempts.number
FROM unnest(:providers::text[], :refs::text[]) AS wanted (provider, provider_ref)
JOIN attempts ON attempts.provider = wanted.provider AND attempts.provider_ref = wanted.provider_ref;

-- name: claim_looks
-- Take tasks of one provider whose look is due; pushing wake_at forward is the lease.
WITH due AS MATERIALIZED (
    SELECT id FROM tasks
    WHERE provider = :provider AND state IN ('submitting', 'uncertain', 'running', 'review')
      AND wake_at <= clock_now()
    ORDER BY wake_at LIMIT :room FOR NO KEY UPDATE SKIP LOCKED
),
leased AS (
    UPDATE tasks SET wake_at = clock_now() + make_interval(secs => :lease_s)
    FROM due WHERE tasks.id = due.id RETURNING tasks.*
)
SELECT leased.*, clock_now() AS now, attempts.number, attempts.reference, attempts.sends, attempts.throttled,
       attempts.provider_ref, attempts.upstream_status, attempts.accepted_at, attempts.looked_at, attempts.outputs,
       attempts.outcome, attempts.sent_at, attempts.answer_by, attempts.links, attempts.provider AS attempt_provider,
       attempts.upstream_model AS attempt_model
FROM leased JOIN attempts ON attempts.task_id = leased.id AND attempts.number = leased.attempt
ORDER BY leased.id;

-- name: claim_copies
-- Take archiving tasks whose copy is due, those whose results die first at the front.
WITH due AS MATERIALIZED (
    SELECT id FROM tasks WHERE state = 'archiving' AND wake_at <= clock_now()
    ORDER BY copy_by LIMIT :room FOR NO KEY UPDATE SKIP LOCKED
),
leased AS (
    UPDATE tasks SET wake_at = clock_now() + make_interval(secs => :lease_s), copies = copies + 1
    FROM due WHERE tasks.id = due.id RETURNING tasks.*
)
SELECT leased.*, clock_now() AS now, attempts.number, attempts.reference, attempts.sends, attempts.throttled,
       attempts.provider_ref, attempts.upstream_status, attempts.accepted_at, attempts.looked_at, attempts.outputs,
       attempts.outcome, attempts.sent_at, attempts.answer_by, attempts.links, attempts.provider AS attempt_provider,
       attempts.upstream_model AS attempt_model
FROM leased JOIN attempts ON attempts.task_id = leased.id AND attempts.number = leased.attempt
ORDER BY leased.copy_by, leased.id;

-- name: claim_copy
-- Take one archiving task, due or not.
WITH leased AS (
    UPDATE tasks SET wake_at = clock_now() + make_interval(secs => :lease_s), copies = copies + 1
    WHERE id = :id AND state = 'archiving' RETURNING tasks.*
)
SELECT leased.*, clock_now() AS now, attempts.number, attempts.reference, attempts.sends, attempts.throttled,
       attempts.provider_ref, attempts.upstream_status, attempts.accepted_at, attempts.looked_at, attempts.outputs,
       attempts.outcome, attempts.sent_at, attempts.answer_by, attempts.links, attempts.provider AS attempt_provider,
       attempts.upstream_model AS attempt_model
FROM leased JOIN attempts ON attempts.task_id = leased.id AND attempts.number = leased.attempt;

-- name: renew_copies!
-- These are still being copied.
UPDATE tasks SET wake_at = clock_now() + make_interval(secs => :lease_s)
WHERE id = ANY(:ids::uuid[]) AND state = 'archiving';

-- name: has_due_copies$
-- Whether a copy is due, and for a while.
SELECT EXISTS (
    SELECT FROM tasks
    WHERE state = 'archiving' AND wake_at <= clock_now() - make_interval(secs => :overdue_s)
);

-- name: note_decode!
-- Counted before decoding, so that a picture that kills the worker is known at the third try.
UPDATE tasks SET decode_tries = decode_tries + 1 WHERE id = ANY(:ids::uuid[]) AND state = 'archiving';

-- name: forget_decode!
-- The pictures decoded without harm.
UPDATE tasks SET decode_tries = 0 WHERE id = :id AND state = 'archiving' AND decode_tries > 0;

-- name: past_start
-- Waiting tasks that did not start in time, or whose customer canceled meanwhile.
SELECT id FROM tasks
WHERE state IN ('queued', 'retrying') AND start_by <= clock_now()
ORDER BY start_by LIMIT :room;

-- name: request_cancel^
-- Note the wish of the customer; the provider is asked by the next look, which comes at once.
UPDATE tasks
SET cancel_requested_at = coalesce(cancel_requested_at, clock_now()),
    wake_at = CASE WHEN state = 'running' THEN clock_now() ELSE wake_at END
WHERE id = :id RETURNING state;

-- name: run_times^
-- P95 and median of the last succeeded attempts over all keys of a provider, seconds.
SELECT count(*) AS samples,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY run_s) AS p95_s,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY run_s) AS median_s
FROM (
    SELECT one.run_s FROM unnest(:providers::text[]) AS key (provider)
    CROSS JOIN LATERAL (
        SELECT run_s, ended_at FROM attempts
        WHERE attempts.provider = key.provider AND upstream_model = :upstream_model
          AND outcome = 'succeeded' AND run_s IS NOT NULL
        ORDER BY ended_at DESC LIMIT 500
    ) AS one
    ORDER BY one.ended_at DESC LIMIT 500
) AS latest;

-- name: callback_share^
-- How many of the last ended tasks of a provider were first noticed by a callback.
SELECT count(*) AS tasks, count(*) FILTER (WHERE noticed_by = 'callback') AS called_back
FROM (
    SELECT one.noticed_by FROM unnest(:providers::text[]) AS key (provider)
    CROSS JOIN LATERAL (
        SELECT noticed_by, ended_at FROM attempts
        WHERE attempts.provider = key.provider AND outcome IN ('succeeded', 'failed', 'blocked')
          AND noticed_by IS NOT NULL AND accepted_at IS NOT NULL
        ORDER BY ended_at DESC LIMIT 20
    ) AS one
    ORDER BY one.ended_at DESC LIMIT 20
) AS latest;

-- name: bring_look_forward!
-- A hint: look now, but at most every `gap_s` seconds.
UPDATE tasks SET wake_at = least(wake_at, clock_now())
FROM attempts
WHERE tasks.id = ANY(:ids::uuid[]) AND tasks.state IN ('uncertain', 'running', 'review')
  AND attempts.task_id = tasks.id AND attempts.number = tasks.attempt
  AND (attempts.looked_at IS NULL OR attempts.looked_at <= clock_now() - make_interval(secs => :gap_s));

-- name: provider_of_attempt$
-- Which provider an attempt went to.
SELECT provider FROM attempts WHERE task_id = :task_id AND number = :number;

-- name: note_send$
-- The same attempt is sent again under its key: counted before the call, leased until answer_by.
-- No row if the task has moved on: then nothing may be sent.
WITH task AS (
    UPDATE tasks SET wake_at = clock_now() + make_interval(secs => :answer_in_s)
    WHERE id = :task_id AND attempt = :number AND state = 'uncertain' RETURNING id
)
UPDATE attempts
SET sends = sends + 1, sent_at = clock_now(), answer_by = clock_now() + make_interval(secs => :answer_in_s)
FROM task WHERE attempts.task_id = task.id AND attempts.number = :number RETURNING sends;

-- name: stuck_share^
-- How many of a provider's running tasks have used up their looks.
SELECT count(*) AS running, count(*) FILTER (WHERE looks >= :looks) AS stuck
FROM tasks WHERE provider = :provider AND state = 'running';

-- name: staged_outputs
-- What a settled task may have left in the staging area.
SELECT attempts.outputs FROM tasks JOIN attempts ON attempts.task_id = tasks.id
WHERE tasks.id = :task_id AND tasks.finished_at IS NOT NULL;

-- name: loads
-- How much each provider key has to do: what is upstream, and what waits (counted no further than is of interest).
SELECT key.provider, upstream.calls, upstream.tasks, waiting.tasks AS waiting
FROM unnest(:providers::text[]) AS key (provider)
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks, count(*) FILTER (WHERE state = 'submitting') AS calls FROM tasks
    WHERE tasks.provider = key.provider AND state IN ('submitting', 'uncertain', 'running')
) AS upstream
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks FROM (
        SELECT FROM tasks WHERE tasks.provider = key.provider AND state IN ('queued', 'retrying') LIMIT :most
    ) AS few
) AS waiting;

-- name: lock_waiting
-- Lock waiting tasks of one provider key, the longest due first, so that they can be moved elsewhere.
SELECT tasks.*, clock_now() AS now FROM tasks
WHERE provider = :provider AND state IN ('queued', 'retrying') AND upstream_model = ANY(:upstream_models::text[])
  AND wake_at <= clock_now() - make_interval(secs => :overdue_s)
  AND (wake_at, id) > (coalesce(:after_at::timestamptz, '-infinity'), :after_id::uuid)
  AND start_by > clock_now() AND cancel_requested_at IS NULL
ORDER BY wake_at, id LIMIT :room FOR NO KEY UPDATE SKIP LOCKED;
