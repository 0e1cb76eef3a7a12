-- Decisions of people about tasks in review.

-- name: insert_decision^
-- Keep a decision about a task as it stands, under its lock.
INSERT INTO decisions (task_id, attempt, version, review_reason, decision, reason_code, note, decided_by, created_at)
SELECT id, attempt, version, review_reason, :decision, :reason_code, :note, :decided_by, clock_now()
FROM tasks WHERE id = :task_id AND state = 'review'
RETURNING id, created_at;

-- name: decision_about^
-- What was decided about one version of a task, if anything that moved it was.
SELECT decision, decided_by FROM decisions
WHERE task_id = :task_id AND version = :version AND decision <> 'check_again';

-- name: look_now!
-- The next look comes at once; should it show that the task still runs, it has its time once more.
UPDATE tasks SET wake_at = clock_now(), deadline_at = clock_now() + make_interval(secs => deadline_s)
WHERE id = :task_id AND state = 'review';

-- name: is_check_asked$
-- Whether somebody wanted to have a look at this version.
SELECT EXISTS (
    SELECT FROM decisions WHERE task_id = :task_id AND version = :version AND decision = 'check_again');

-- name: renew_start!
-- A task that is sent again may take as long to start as a new one.
UPDATE tasks SET start_by = clock_now() + make_interval(secs => :start_in_s) WHERE id = :task_id;

-- name: renew_copies!
-- What is copied now has not been tried yet.
UPDATE tasks SET copies = 0, decode_tries = 0 WHERE id = :task_id;

-- name: orphan_outputs
-- What earlier attempts of a task delivered too late.
SELECT detail ->> 'outputs' AS outputs FROM findings
WHERE task_id = :task_id AND kind = 'orphan_result' ORDER BY attempt DESC;

-- name: providers_to_look_at
-- Every provider that has a task to look at, by one step through the index each.
WITH RECURSIVE one AS (
    (SELECT provider FROM tasks WHERE state IN ('submitting', 'uncertain', 'running', 'review')
     ORDER BY provider LIMIT 1)
    UNION ALL
    SELECT (SELECT tasks.provider FROM tasks
            WHERE state IN ('submitting', 'uncertain', 'running', 'review') AND tasks.provider > one.provider
            ORDER BY tasks.provider LIMIT 1)
    FROM one WHERE one.provider IS NOT NULL
)
SELECT provider FROM one WHERE provider IS NOT NULL;
