-- Reconciliation: runs over a provider's day, page by page, and the attempts that its records belong to.

-- name: first_days
-- Since which day (UTC) each provider has attempts; none where it has none.
SELECT key.provider, ((SELECT min(sent_at) FROM attempts WHERE attempts.provider = key.provider)
                      AT TIME ZONE 'UTC')::date AS first_day, clock_now() AS now
FROM unnest(:providers::text[]) AS key (provider);

-- name: add_due!
-- These whole days are due now; one that was planned or done meanwhile is left alone.
INSERT INTO reconciliations (provider, day, until_at, mode, stage, wake_at)
SELECT due.provider, due.day, (due.day + 1)::timestamp AT TIME ZONE 'UTC', due.mode,
       CASE due.mode WHEN 'list' THEN 'theirs' ELSE 'ours' END, clock_now()
FROM unnest(:providers::text[], :days::date[], :modes::text[]) AS due (provider, day, mode)
WHERE NOT EXISTS (
    SELECT FROM reconciliations AS made
    WHERE made.provider = due.provider AND made.day = due.day
      AND made.until_at = (due.day + 1)::timestamp AT TIME ZONE 'UTC')
ON CONFLICT DO NOTHING;

-- name: claim^
-- Take one run that is due, the oldest day first; the lease keeps the others away.
WITH due AS MATERIALIZED (
    SELECT id FROM reconciliations
    WHERE finished_at IS NULL AND wake_at <= clock_now() AND leased_until <= clock_now()
      AND provider = ANY(:providers::text[])
    ORDER BY day, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE reconciliations
SET leased_until = clock_now() + make_interval(secs => :lease_s), version = version + 1,
    started_at = coalesce(started_at, clock_now())
FROM due WHERE reconciliations.id = due.id
RETURNING reconciliations.*, clock_now() AS now;

-- name: begin^
-- Take a day now, whether it is due or not; no row if somebody is at it.
WITH moment AS MATERIALIZED (SELECT clock_now() AS now)
INSERT INTO reconciliations (provider, day, until_at, mode, stage, version, wake_at, leased_until, started_at)
SELECT :provider::text, :day::date, :until_at::timestamptz, :mode::text,
       CASE :mode::text WHEN 'list' THEN 'theirs' ELSE 'ours' END, 1, now, now + make_interval(secs => :lease_s), now
FROM moment
ON CONFLICT (provider, day) WHERE finished_at IS NULL DO UPDATE
SET version = reconciliations.version + 1, leased_until = EXCLUDED.leased_until,
    started_at = coalesce(reconciliations.started_at, EXCLUDED.started_at)
WHERE reconciliations.leased_until <= clock_now()
RETURNING reconciliations.*, clock_now() AS now;

-- name: note_records!
-- What was seen in the provider's list.
INSERT INTO reconciliation_records (reconciliation_id, provider_ref)
SELECT :id, provider_ref FROM unnest(:refs::text[]) AS seen (provider_ref)
ON CONFLICT DO NOTHING;

-- name: seen_records
-- Which of these the list had.
SELECT provider_ref FROM reconciliation_records
WHERE reconciliation_id = :id AND provider_ref = ANY(:refs::text[]);

-- name: turn_page$
-- A page is done; no row if the claim was lost meanwhile.
UPDATE reconciliations
SET stage = :stage, cursor = :cursor, counts = :counts::jsonb, findings = findings || :findings::jsonb,
    is_complete = is_complete AND :is_complete, note = :note,
    leased_until = clock_now() + make_interval(secs => :lease_s)
WHERE id = :id AND version = :version AND finished_at IS NULL
RETURNING id;

-- name: postpone$
-- The provider cannot be asked now: go on later, from the same place or from the beginning of its list.
UPDATE reconciliations
SET tries = tries + 1, note = :note, wake_at = clock_now() + make_interval(secs => :wait_s), leased_until = '-infinity',
    cursor = CASE WHEN :is_from_start THEN NULL ELSE cursor END
WHERE id = :id AND version = :version AND finished_at IS NULL
RETURNING id;

-- name: finish^
-- The run is over, and its row is the report.
WITH finished AS (
    UPDATE reconciliations
    SET finished_at = clock_now(), wake_at = NULL, leased_until = '-infinity', cursor = NULL
    WHERE id = :id AND version = :version AND finished_at IS NULL
    RETURNING *
),
forgotten AS (
    DELETE FROM reconciliation_records WHERE reconciliation_id = (SELECT id FROM finished)
)
SELECT *, clock_now() AS now FROM finished;

-- name: reports
-- Finished runs and those under way, the latest first.
SELECT *, clock_now() AS now FROM reconciliations
WHERE (:provider::text IS NULL OR provider = :provider) AND (:day::date IS NULL OR day = :day)
ORDER BY id DESC LIMIT :room;

-- name: match_records
-- The attempt behind each record: by the provider's id, else by our reference, else by the token in its address.
SELECT wanted.place, attempts.task_id, attempts.number, attempts.provider_ref, attempts.reference,
       attempts.upstream_model, attempts.links, attempts.outcome, attempts.noticed_by, attempts.cost, attempts.sent_at,
       tasks.operation, tasks.state, tasks.attempt AS current
FROM unnest(:refs::text[], :references::text[], :task_ids::uuid[], :numbers::smallint[]) WITH ORDINALITY
     AS wanted (ref, reference, task_id, number, place)
CROSS JOIN LATERAL (
    SELECT task_id, number FROM (
        (SELECT 1 AS rank, one.task_id, one.number FROM attempts AS one
         WHERE one.provider = :provider AND one.provider_ref = wanted.ref)
        UNION ALL
        (SELECT 2, one.task_id, one.number FROM attempts AS one
         WHERE one.reference = wanted.reference AND one.provider = :provider)
        UNION ALL
        (SELECT 3, one.task_id, one.number FROM attempts AS one
         WHERE one.task_id = wanted.task_id AND one.number = wanted.number AND one.provider = :provider)
    ) AS ways
    ORDER BY rank LIMIT 1
) AS found
JOIN attempts ON attempts.task_id = found.task_id AND attempts.number = found.number
JOIN tasks ON tasks.id = found.task_id;

-- name: attempts_of_window
-- A provider's attempts by their start, page by page.
SELECT attempts.task_id, attempts.number, attempts.provider_ref, attempts.reference, attempts.upstream_model,
       attempts.links, attempts.outcome, attempts.noticed_by, attempts.cost, attempts.sent_at, tasks.operation,
       tasks.state, tasks.attempt AS current
FROM attempts JOIN tasks ON tasks.id = attempts.task_id
WHERE attempts.provider = :provider AND attempts.sent_at >= :since AND attempts.sent_at < :until
  AND (attempts.sent_at, attempts.task_id, attempts.number) > (:since, :after_id::uuid, :after_number::smallint)
ORDER BY attempts.sent_at, attempts.task_id, attempts.number LIMIT :room;

-- name: span_of_attempt^
-- Between which times an attempt may have been made upstream, by our clock.
SELECT CASE WHEN attempts.number <= tasks.look_until THEN tasks.created_at ELSE attempts.created_at END AS since,
       attempts.answer_by AS until
FROM attempts JOIN tasks ON tasks.id = attempts.task_id
WHERE attempts.task_id = :task_id AND attempts.number = :number;

-- name: has_rival$
-- Whether another attempt, whose record is not known either, may be behind a record with this prompt of that time.
SELECT EXISTS (
    SELECT FROM attempts JOIN tasks ON tasks.id = attempts.task_id
    WHERE attempts.provider = :provider AND attempts.sent_at <= :until
      AND attempts.sent_at >= :since::timestamptz - interval '1 hour' AND attempts.answer_by >= :since
      AND attempts.provider_ref IS NULL AND attempts.outcome IS DISTINCT FROM 'refused'
      AND attempts.upstream_model = :upstream_model AND tasks.prompt = :prompt
      AND (attempts.task_id, attempts.number) <> (:task_id::uuid, :number::smallint)
);

-- name: unanswered
-- Open attempts of a time whose id at the provider is not known: a record without an owner may be theirs.
SELECT sent_at, answer_by FROM attempts JOIN tasks ON tasks.id = attempts.task_id
WHERE attempts.provider = :provider AND attempts.sent_at <= :until
  AND attempts.sent_at >= :since::timestamptz - interval '1 hour' AND attempts.answer_by >= :since
  AND attempts.provider_ref IS NULL AND attempts.outcome IS NULL AND tasks.finished_at IS NULL
LIMIT 1000;
