-- name: applied_before
-- State changes that a callback of the same attempt and status already made.
SELECT callbacks.task_id, callbacks.attempt, callbacks.upstream_status
FROM unnest(:task_ids::uuid[], :attempts::smallint[], :upstream_statuses::text[])
     AS wanted (task_id, attempt, upstream_status)
JOIN callbacks USING (task_id, attempt, upstream_status)
WHERE callbacks.verdict = 'applied';

-- name: observed_before
-- What observed callbacks of these attempts would have done, in order.
SELECT callbacks.task_id, callbacks.attempt, callbacks.upstream_status, callbacks.would_be
FROM unnest(:task_ids::uuid[], :attempts::smallint[]) AS wanted (task_id, attempt)
JOIN callbacks USING (task_id, attempt)
WHERE callbacks.verdict = 'would_apply'
ORDER BY callbacks.id;

-- name: insert_callbacks!
-- Keep callbacks in order with their verdict; per attempt only so many bodies, the rest is counted elsewhere.
INSERT INTO callbacks (provider, task_id, attempt, provider_ref, upstream_status, verdict, body, is_early, would_be,
                       received_at)
SELECT item.provider, item.task_id, item.attempt, item.provider_ref, item.upstream_status, item.verdict,
       decode(item.body, 'base64'), coalesce(item.is_early, false), item.would_be, clock_now()
FROM json_to_recordset(:items::json) AS item (
    provider text, task_id uuid, attempt smallint, provider_ref text, upstream_status text, verdict text, body text,
    is_early boolean, would_be text)
WHERE item.verdict IN ('applied', 'would_apply') OR item.task_id IS NULL
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
