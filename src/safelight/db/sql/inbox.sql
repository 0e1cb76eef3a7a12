-- name: applied_before
-- State changes that a callback of the same attempt and status already made.
SELECT callbacks.task_id, callbacks.attempt, callbacks.upstream_status
FROM unnest(:task_ids::uuid[], :attempts::smallint[], :upstream_statuses::text[])
     AS wanted (task_id, attempt, upstream_status)
JOIN callbacks USING (task_id, attempt, upstream_status)
WHERE callbacks.verdict = 'applied';

-- name: insert_callbacks!
-- Keep callbacks in order with their verdict; per attempt only so many bodies, the rest is counted elsewhere.
INSERT INTO callbacks (provider, task_id, attempt, provider_ref, upstream_status, verdict, body, received_at)
SELECT item.provider, item.task_id, item.attempt, item.provider_ref, item.upstream_status, item.verdict,
       decode(item.body, 'base64'), clock_now()
FROM json_to_recordset(:items::json) AS item (
    provider text, task_id uuid, attempt smallint, provider_ref text, upstream_status text, verdict text, body text)
WHERE item.verdict = 'applied' OR item.task_id IS NULL
   OR (SELECT count(*) FROM callbacks
       WHERE callbacks.task_id = item.task_id AND callbacks.attempt = item.attempt) < :cap;

-- name: unmatched
-- Genuine callbacks that came before we knew the provider's id.
SELECT wanted.place, callback.body
FROM unnest(:providers::text[], :refs::text[]) WITH ORDINALITY AS wanted (provider, provider_ref, place)
CROSS JOIN LATERAL (
    SELECT id, body FROM callbacks
    WHERE provider = wanted.provider AND provider_ref = wanted.provider_ref
      AND verdict = 'unknown' AND task_id IS NULL
    ORDER BY id LIMIT 20
) AS callback
ORDER BY wanted.place, callback.id;

-- name: count_unmatched$
-- How many are waiting; they are bounded.
SELECT count(*) FROM callbacks WHERE verdict = 'unknown' AND task_id IS NULL;

-- name: drop_unmatched!
-- Nobody claimed them within a day.
DELETE FROM callbacks
WHERE verdict = 'unknown' AND task_id IS NULL AND received_at < clock_now() - interval '24 hours';
