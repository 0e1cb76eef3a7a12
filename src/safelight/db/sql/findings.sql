-- name: insert_findings
-- Keep differences once each; only new ones come back.
INSERT INTO findings (kind, provider, task_id, attempt, provider_ref, detail, cost, created_at)
SELECT item.kind, item.provider, item.task_id, item.attempt, item.provider_ref, item.detail, item.cost, clock_now()
FROM json_to_recordset(:items::json) AS item (
    kind text, provider text, task_id uuid, attempt smallint, provider_ref text, detail jsonb, cost numeric)
ON CONFLICT DO NOTHING
RETURNING kind, task_id;
