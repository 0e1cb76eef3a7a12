-- What people decide: decisions on tasks in review, operators' keys, the audit log, and alerts.

ALTER TABLE tasks DROP CONSTRAINT tasks_review_reason_check;
ALTER TABLE tasks ADD CONSTRAINT tasks_review_reason_check CHECK (review_reason IN (
    'submit_uncertain', 'no_progress', 'deadline', 'archive_stuck', 'provider_gone'));
CREATE INDEX tasks_in_review ON tasks (id) WHERE state = 'review';

-- A provider that does not tell what it charged may have charged all the same: NULL is a loss of unknown size.
ALTER TABLE losses ALTER COLUMN cost DROP NOT NULL;

ALTER TABLE findings ADD COLUMN resolved_at timestamptz;
ALTER TABLE findings ADD COLUMN resolved_by text;
ALTER TABLE findings ADD COLUMN resolution text;
ALTER TABLE findings ADD CONSTRAINT finding_resolved_by_somebody CHECK (
    (resolved_at IS NULL) = (resolved_by IS NULL) AND (resolved_at IS NULL) = (resolution IS NULL));
CREATE INDEX findings_open ON findings (id DESC) WHERE resolved_at IS NULL;
CREATE INDEX findings_task ON findings (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX callbacks_provider ON callbacks (provider, id DESC);

-- One row for each decision on a task in review. `version` is the task's when it was decided: of two people who
-- decide about the same version, the index lets one through.
CREATE TABLE decisions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id uuid NOT NULL,
    attempt smallint NOT NULL,
    version integer NOT NULL,
    review_reason text NOT NULL,
    decision text NOT NULL CHECK (decision IN (
        'check_again', 'resubmit', 'attach_result', 'fail_and_release', 'accept_as_done')),
    reason_code text NOT NULL DEFAULT '',
    note text NOT NULL DEFAULT '' CHECK (length(note) <= 2000),
    decided_by text NOT NULL CHECK (decided_by <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    FOREIGN KEY (task_id, attempt) REFERENCES attempts,
    CONSTRAINT decision_has_its_reason CHECK (CASE decision
        WHEN 'resubmit' THEN reason_code IN ('proved_absent', 'provider_confirmed', 'risk_accepted')
                             AND length(btrim(note)) >= 10
        WHEN 'fail_and_release' THEN reason_code IN ('no_result', 'operator_decision')
        ELSE reason_code = '' END)
);
CREATE UNIQUE INDEX decisions_once ON decisions (task_id, version) WHERE decision <> 'check_again';
CREATE INDEX decisions_task ON decisions (task_id, id);
CREATE TRIGGER decisions_append_only BEFORE UPDATE OR DELETE ON decisions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER decisions_never_emptied BEFORE TRUNCATE ON decisions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A further attempt follows one that is over: by the provider's own word, by proof, or by a recorded decision.
CREATE FUNCTION check_attempt_before() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ended text;
BEGIN
    SELECT outcome INTO ended FROM attempts WHERE task_id = NEW.task_id AND number = NEW.number - 1;
    IF ended IS NULL THEN
        RAISE EXCEPTION 'attempt % of task % follows one that is not over', NEW.number, NEW.task_id
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF ended = 'abandoned' AND NOT EXISTS (
        SELECT FROM decisions
        WHERE task_id = NEW.task_id AND attempt = NEW.number - 1 AND decision = 'resubmit') THEN
        RAISE EXCEPTION 'attempt % of task % follows one that nobody gave up', NEW.number, NEW.task_id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER attempts_follow_an_end AFTER INSERT ON attempts FOR EACH ROW
    WHEN (NEW.number > 1) EXECUTE FUNCTION check_attempt_before();

-- Operators' own keys: another kind than customers', in another table, under another pepper.
CREATE TABLE admin_keys (
    id text PRIMARY KEY,
    name text NOT NULL DEFAULT '',
    secret_hash bytea NOT NULL CHECK (length(secret_hash) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    revoked_at timestamptz
);

-- Answers to changes by operators, as bytes, by idempotency key.
CREATE TABLE admin_receipts (
    route text NOT NULL,
    key text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    body bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (route, key)
);
CREATE INDEX admin_receipts_expiry ON admin_receipts (expires_at);

-- The audit log: who did what to what. Each row's hash covers the row and the hash before it (`db/auditlog.py`).
-- Its numbers have no gaps: they are taken from the head, which every writer locks until its commit.
CREATE TABLE audit_lines (
    id bigint PRIMARY KEY CHECK (id >= 1),
    actor text NOT NULL CHECK (actor <> ''),
    address text NOT NULL DEFAULT '',
    request_id text NOT NULL DEFAULT '',
    action text NOT NULL CHECK (action <> ''),
    object text NOT NULL DEFAULT '',
    account_id uuid,
    outcome text NOT NULL CHECK (outcome <> ''),
    detail text NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    hash bytea NOT NULL CHECK (length(hash) = 32)
);
CREATE INDEX audit_lines_object ON audit_lines (object, id DESC);
CREATE TABLE audit_head (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    id bigint NOT NULL CHECK (id >= 0),
    hash bytea NOT NULL CHECK (length(hash) = 32)
);
INSERT INTO audit_head (id, hash) VALUES (0, decode(repeat('00', 32), 'hex'));
CREATE TRIGGER audit_lines_append_only BEFORE UPDATE OR DELETE ON audit_lines
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_lines_never_emptied BEFORE TRUNCATE ON audit_lines
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE FUNCTION guard_audit_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR NEW.id <> OLD.id + 1 THEN
        RAISE EXCEPTION 'the audit log only grows, line by line' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_head_grows BEFORE UPDATE OR DELETE ON audit_head
    FOR EACH ROW EXECUTE FUNCTION guard_audit_head();

-- What the operator has not been told yet. Written with the change itself, whoever makes it; `alert_clock` spaces
-- the calls of all processes together.
CREATE TABLE alerts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('review', 'finding')),
    reason text NOT NULL,
    provider text NOT NULL,
    task_id uuid,
    created_at timestamptz NOT NULL DEFAULT clock_now()
);
CREATE TABLE alert_clock (single boolean PRIMARY KEY DEFAULT true CHECK (single), told_at timestamptz);
INSERT INTO alert_clock DEFAULT VALUES;

CREATE FUNCTION alert_review() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO alerts (kind, reason, provider, task_id) VALUES ('review', NEW.review_reason, NEW.provider, NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER tasks_alert_review AFTER UPDATE OF state ON tasks FOR EACH ROW
    WHEN (NEW.state = 'review' AND OLD.state <> 'review') EXECUTE FUNCTION alert_review();

CREATE FUNCTION alert_finding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO alerts (kind, reason, provider, task_id) VALUES ('finding', NEW.kind, NEW.provider, NEW.task_id);
    RETURN NULL;
END $$;
CREATE TRIGGER findings_alert AFTER INSERT ON findings FOR EACH ROW EXECUTE FUNCTION alert_finding();
