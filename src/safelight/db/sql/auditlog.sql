-- The audit log: append-only, without gaps, each line chained to the one before.

-- name: lock_head^
-- The end of the chain, locked until the commit: one writer at a time, and always the last lock of a transaction.
SELECT id, hash, clock_now() AS now FROM audit_head FOR UPDATE;

-- name: append!
-- The next line, and the head that names it.
WITH line AS (
    INSERT INTO audit_lines (id, actor, address, request_id, action, object, account_id, outcome, detail, created_at, hash)
    VALUES (:id, :actor, :address, :request_id, :action, :object, :account_id, :outcome, :detail, :created_at, :hash)
    RETURNING id, hash
)
UPDATE audit_head SET id = line.id, hash = line.hash FROM line;

-- name: read_line^
-- What a line says in detail, if it is the one that is meant and not too old.
SELECT detail FROM audit_lines
WHERE id = :id AND actor = :actor AND action = :action AND object = :object
  AND created_at > clock_now() - make_interval(secs => :within_s);

-- name: read_head^
-- The end of the chain.
SELECT id, hash FROM audit_head;

-- name: lines_after
-- Lines in order, up to the head that was read before.
SELECT id, actor, address, request_id, action, object, account_id, outcome, detail, created_at, hash
FROM audit_lines WHERE id > :after AND id <= :until ORDER BY id LIMIT :room;
