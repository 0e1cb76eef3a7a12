-- The first schema: accounts, tasks, attempts, ledger, inbox, assets.
-- Illegal money and illegal states are made impossible here; the code only has to be right where this cannot be.

CREATE TABLE clock (single boolean PRIMARY KEY DEFAULT true CHECK (single), shift interval NOT NULL DEFAULT '0');
INSERT INTO clock DEFAULT VALUES;

-- The one clock. Tests move it by `clock.shift`; nothing else may call now().
CREATE FUNCTION clock_now() RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN statement_timestamp() + (SELECT shift FROM clock);
END $$;

-- Which secret key this database belongs to: a start with another one is refused.
CREATE TABLE installation (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    secret_key_id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_now()
);

CREATE TABLE accounts (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> ''),
    available bigint NOT NULL DEFAULT 0 CHECK (available >= 0),
    held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
    open_tasks bigint NOT NULL DEFAULT 0 CHECK (open_tasks >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_now()
);

CREATE TABLE api_keys (
    id text PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    name text NOT NULL DEFAULT '',
    secret_hash bytea NOT NULL CHECK (length(secret_hash) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    revoked_at timestamptz
);
CREATE INDEX api_keys_account ON api_keys (account_id);

-- The arrows of domain/task.py; a test compares them with the code.
CREATE TABLE transitions (source text NOT NULL, target text NOT NULL, PRIMARY KEY (source, target));
INSERT INTO transitions VALUES
    ('queued', 'submitting'), ('queued', 'canceled'), ('queued', 'failed'),
    ('submitting', 'running'), ('submitting', 'archiving'), ('submitting', 'retrying'),
    ('submitting', 'uncertain'), ('submitting', 'failed'), ('submitting', 'blocked'),
    ('uncertain', 'running'), ('uncertain', 'archiving'), ('uncertain', 'retrying'), ('uncertain', 'review'),
    ('uncertain', 'failed'), ('uncertain', 'blocked'),
    ('running', 'archiving'), ('running', 'retrying'), ('running', 'review'), ('running', 'failed'),
    ('running', 'blocked'), ('running', 'canceled'),
    ('retrying', 'submitting'), ('retrying', 'canceled'), ('retrying', 'failed'),
    ('archiving', 'succeeded'), ('archiving', 'review'), ('archiving', 'failed'), ('archiving', 'blocked'),
    ('review', 'archiving'), ('review', 'running'), ('review', 'retrying'), ('review', 'succeeded'),
    ('review', 'failed'), ('review', 'blocked'), ('review', 'canceled');

CREATE TABLE tasks (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    model text NOT NULL,
    operation text NOT NULL CHECK (operation IN ('generate', 'edit')),
    prompt text NOT NULL,
    n integer NOT NULL CHECK (n BETWEEN 1 AND 1000),
    size text,
    aspect_ratio text,
    images uuid[] NOT NULL DEFAULT '{}' CHECK (array_position(images, NULL) IS NULL),
    mask uuid,
    options jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(options) = 'object'),
    metadata jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata) = 'object'),
    priority smallint NOT NULL DEFAULT 0 CHECK (priority BETWEEN -10 AND 10),
    provider text NOT NULL,
    upstream_model text NOT NULL,
    unit_price bigint NOT NULL CHECK (unit_price >= 0),
    held bigint NOT NULL CHECK (held >= 0),
    state text NOT NULL DEFAULT 'queued' CHECK (state IN (
        'queued', 'submitting', 'uncertain', 'running', 'retrying', 'archiving', 'review',
        'succeeded', 'failed', 'blocked', 'canceled')),
    version integer NOT NULL DEFAULT 1 CHECK (version >= 1),
    attempt smallint NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    wake_at timestamptz,
    start_by timestamptz NOT NULL,
    deadline_s double precision NOT NULL CHECK (deadline_s > 0),
    deadline_at timestamptz,
    copy_by timestamptz,
    review_reason text CHECK (review_reason IN ('submit_uncertain', 'no_progress', 'deadline', 'archive_stuck')),
    decide_by timestamptz,
    cancel_requested_at timestamptz,
    percent smallint CHECK (percent BETWEEN 0 AND 100),
    position integer CHECK (position >= 0),
    looks integer NOT NULL DEFAULT 0,
    copies integer NOT NULL DEFAULT 0,
    decode_tries smallint NOT NULL DEFAULT 0,
    failure_class text CHECK (failure_class IN (
        'invalid_request', 'content_blocked', 'upstream_fault', 'environment', 'canceled')),
    failure_code text,
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    state_since timestamptz NOT NULL DEFAULT clock_now(),
    finished_at timestamptz,
    CONSTRAINT task_mask_has_image CHECK (mask IS NULL OR images <> '{}'),
    CONSTRAINT task_hold_is_worst_case CHECK (held = unit_price * n),
    CONSTRAINT task_open_has_wake CHECK (
        (state IN ('succeeded', 'failed', 'blocked', 'canceled')) = (wake_at IS NULL)),
    CONSTRAINT task_terminal_has_end CHECK (
        (state IN ('succeeded', 'failed', 'blocked', 'canceled')) = (finished_at IS NOT NULL)),
    CONSTRAINT task_failure_has_reason CHECK (
        (state IN ('failed', 'blocked', 'canceled')) = (failure_class IS NOT NULL)
        AND (failure_class IS NULL) = (failure_code IS NULL)),
    CONSTRAINT task_review_has_reason CHECK (
        (state = 'review') = (review_reason IS NOT NULL) AND (state = 'review') = (decide_by IS NOT NULL)),
    CONSTRAINT task_upstream_has_attempt CHECK (state IN ('queued', 'failed', 'canceled', 'retrying') OR attempt > 0)
) WITH (fillfactor = 70);
-- Also what ties everything that belongs to a task to the task's own account.
CREATE UNIQUE INDEX tasks_account ON tasks (account_id, id);
CREATE INDEX tasks_open_of_account ON tasks (account_id, id DESC) WHERE finished_at IS NULL;
-- The fair claim: waiting rows of a provider by account, priority, age.
CREATE INDEX tasks_waiting ON tasks (provider, account_id, priority DESC, id) WHERE state IN ('queued', 'retrying');
-- Whether any waiting row is due, however many wait for their back-off.
CREATE INDEX tasks_waiting_due ON tasks (provider, wake_at, id) WHERE state IN ('queued', 'retrying');
-- The looks of the poller.
CREATE INDEX tasks_to_look_at ON tasks (provider, wake_at)
    WHERE state IN ('submitting', 'uncertain', 'running', 'review');
-- What takes capacity upstream.
CREATE INDEX tasks_upstream ON tasks (provider, account_id) INCLUDE (state, n)
    WHERE state IN ('submitting', 'uncertain', 'running');
-- Results to be copied, those that die first at the front.
CREATE INDEX tasks_to_copy ON tasks (copy_by) WHERE state = 'archiving';
CREATE INDEX tasks_start_by ON tasks (start_by) WHERE state IN ('queued', 'retrying');
-- Which uploads unfinished tasks still need.
CREATE INDEX tasks_open_images ON tasks USING gin (images) WHERE finished_at IS NULL AND images <> '{}';
CREATE INDEX tasks_open_mask ON tasks (mask) WHERE finished_at IS NULL AND mask IS NOT NULL;

CREATE TABLE attempts (
    task_id uuid NOT NULL REFERENCES tasks,
    number smallint NOT NULL CHECK (number BETWEEN 1 AND 100),
    provider text NOT NULL,
    upstream_model text NOT NULL,
    reference text NOT NULL UNIQUE,
    images smallint NOT NULL CHECK (images >= 1),
    sends smallint NOT NULL DEFAULT 1 CHECK (sends >= 1),
    throttled smallint NOT NULL DEFAULT 0 CHECK (throttled >= 0 AND throttled <= sends),
    sent_at timestamptz NOT NULL DEFAULT clock_now(),
    answer_by timestamptz NOT NULL,
    provider_ref text CHECK (provider_ref ~ '^[A-Za-z0-9._:-]{1,128}$'),
    upstream_status text NOT NULL DEFAULT '',
    accepted_at timestamptz,
    looked_at timestamptz,
    run_s double precision CHECK (run_s >= 0),
    noticed_by text CHECK (noticed_by IN ('answer', 'callback', 'poll', 'look_up', 'reconciliation', 'decision')),
    outputs jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(outputs) = 'array'),
    links jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(links) = 'object'),
    cost numeric,
    outcome text CHECK (outcome IN ('succeeded', 'failed', 'blocked', 'canceled', 'refused', 'abandoned')),
    failure_class text,
    failure_code text,
    excerpt text NOT NULL DEFAULT '' CHECK (length(excerpt) <= 500),
    ended_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    PRIMARY KEY (task_id, number),
    CONSTRAINT attempt_end_has_outcome CHECK ((outcome IS NULL) = (ended_at IS NULL))
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX attempts_provider_ref ON attempts (provider, provider_ref) WHERE provider_ref IS NOT NULL;
-- P95 over the last succeeded attempts of a provider and model.
CREATE INDEX attempts_run_times ON attempts (provider, upstream_model, ended_at DESC)
    WHERE outcome = 'succeeded' AND run_s IS NOT NULL;
CREATE INDEX attempts_sent ON attempts (provider, sent_at);
-- How many of the last attempts were first noticed by a callback.
CREATE INDEX attempts_noticed ON attempts (provider, ended_at DESC)
    WHERE noticed_by IS NOT NULL AND accepted_at IS NOT NULL;

-- Receipts: the answer to a submit, as bytes, by idempotency key.
CREATE TABLE receipts (
    account_id uuid NOT NULL,
    route text NOT NULL,
    key text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    task_id uuid NOT NULL,
    body bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, route, key),
    FOREIGN KEY (account_id, task_id) REFERENCES tasks (account_id, id)
);
CREATE UNIQUE INDEX receipts_task ON receipts (task_id);
CREATE INDEX receipts_expiry ON receipts (expires_at);

-- The ledger: single entry, append-only; an account's balance changes through it and in no other way.
CREATE TABLE entries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    kind text NOT NULL CHECK (kind IN ('grant', 'hold', 'settle', 'adjust')),
    task_id uuid,
    available_delta bigint NOT NULL,
    held_delta bigint NOT NULL,
    note text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    FOREIGN KEY (account_id, task_id) REFERENCES tasks (account_id, id),
    CONSTRAINT entry_task CHECK ((kind IN ('hold', 'settle')) = (task_id IS NOT NULL)),
    CONSTRAINT entry_shape CHECK (CASE kind
        WHEN 'grant' THEN available_delta > 0 AND held_delta = 0
        WHEN 'hold' THEN available_delta <= 0 AND held_delta = -available_delta
        WHEN 'settle' THEN available_delta >= 0 AND held_delta <= 0 AND available_delta <= -held_delta
        ELSE held_delta = 0 END)
);
CREATE INDEX entries_account ON entries (account_id, id DESC);
CREATE UNIQUE INDEX entries_once_per_task ON entries (task_id, kind) WHERE task_id IS NOT NULL;

-- One resolution per hold, carrying both amounts.
CREATE TABLE settlements (
    task_id uuid PRIMARY KEY,
    account_id uuid NOT NULL,
    held bigint NOT NULL CHECK (held >= 0),
    captured bigint NOT NULL CHECK (captured >= 0),
    released bigint NOT NULL CHECK (released >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    FOREIGN KEY (account_id, task_id) REFERENCES tasks (account_id, id),
    CONSTRAINT settlement_sum CHECK (captured + released = held)
);

CREATE TABLE assets (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL,
    task_id uuid NOT NULL,
    attempt smallint NOT NULL,
    position smallint NOT NULL CHECK (position >= 0),
    store_key text NOT NULL UNIQUE,
    content_type text NOT NULL,
    width integer NOT NULL CHECK (width > 0),
    height integer NOT NULL CHECK (height > 0),
    bytes bigint NOT NULL CHECK (bytes > 0),
    sha256 bytea NOT NULL CHECK (length(sha256) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    UNIQUE (task_id, position),
    FOREIGN KEY (account_id, task_id) REFERENCES tasks (account_id, id),
    FOREIGN KEY (task_id, attempt) REFERENCES attempts
);

-- Pictures that customers handed in, kept for a while after their last use. The id follows from account and content.
-- One that is doomed is used no more: its bytes are being deleted, and `expires_at` says when that is tried again.
CREATE TABLE uploads (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    store_key text NOT NULL UNIQUE,
    content_type text NOT NULL,
    width integer NOT NULL CHECK (width > 0), height integer NOT NULL CHECK (height > 0),
    bytes bigint NOT NULL CHECK (bytes > 0),
    sha256 bytea NOT NULL CHECK (length(sha256) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_now(), expires_at timestamptz NOT NULL, doomed_at timestamptz,
    UNIQUE (account_id, sha256)
);
CREATE INDEX uploads_expiry ON uploads (expires_at);
CREATE INDEX uploads_space ON uploads (account_id) INCLUDE (bytes) WHERE doomed_at IS NULL;

CREATE TABLE task_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id uuid NOT NULL,
    account_id uuid NOT NULL,
    version integer NOT NULL,
    source text,
    target text NOT NULL,
    attempt smallint NOT NULL,
    cause text NOT NULL,
    detail text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    UNIQUE (task_id, version),
    FOREIGN KEY (account_id, task_id) REFERENCES tasks (account_id, id)
);

-- The inbox: callbacks in order, with what became of each.
CREATE TABLE callbacks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provider text NOT NULL,
    task_id uuid,
    attempt smallint,
    provider_ref text,
    upstream_status text NOT NULL DEFAULT '',
    verdict text NOT NULL CHECK (verdict IN (
        'applied', 'progress', 'duplicate', 'out_of_order', 'stale', 'unknown', 'hint', 'unusable')),
    body bytea NOT NULL,
    received_at timestamptz NOT NULL DEFAULT clock_now(),
    FOREIGN KEY (task_id, attempt) REFERENCES attempts,
    CONSTRAINT callback_attempt CHECK ((task_id IS NULL) = (attempt IS NULL))
);
CREATE UNIQUE INDEX callbacks_applied_once ON callbacks (task_id, attempt, upstream_status) WHERE verdict = 'applied';
CREATE INDEX callbacks_task ON callbacks (task_id, id);
CREATE INDEX callbacks_unmatched ON callbacks (provider, provider_ref) WHERE verdict = 'unknown' AND task_id IS NULL;

-- Differences that a person may want to see; never a silent fix of money.
CREATE TABLE findings (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('orphan_result', 'provider_ref_conflict', 'surplus_outputs', 'contradiction')),
    provider text NOT NULL,
    task_id uuid NOT NULL,
    attempt smallint NOT NULL,
    detail jsonb NOT NULL DEFAULT '{}',
    cost numeric,
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    UNIQUE (kind, task_id, attempt),
    FOREIGN KEY (task_id, attempt) REFERENCES attempts
);

-- What the operator paid upstream without a capture.
CREATE TABLE losses (
    task_id uuid NOT NULL,
    attempt smallint NOT NULL,
    provider text NOT NULL,
    cost numeric NOT NULL,
    reason text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    PRIMARY KEY (task_id, attempt),
    FOREIGN KEY (task_id, attempt) REFERENCES attempts
);

-- Shared gates: a provider key told to wait (429), or a breaker that is open. Also the row that a claim locks.
-- `failures` are closings in a row, `faults` calls in a row that failed upstream; `looks_from` is when the quota of
-- looks that were claimed so far is used up.
CREATE TABLE gates (
    name text PRIMARY KEY,
    closed_until timestamptz,
    reason text NOT NULL DEFAULT '',
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    faults integer NOT NULL DEFAULT 0 CHECK (faults >= 0),
    looks_from timestamptz
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE ON entries
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER settlements_append_only BEFORE UPDATE OR DELETE ON settlements
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER task_events_append_only BEFORE UPDATE OR DELETE ON task_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entries_never_emptied BEFORE TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER settlements_never_emptied BEFORE TRUNCATE ON settlements
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER task_events_never_emptied BEFORE TRUNCATE ON task_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER assets_unchanged BEFORE UPDATE ON assets
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Every task begins at the beginning.
CREATE FUNCTION refuse_birth() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a task begins queued, at version 1, without an attempt' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER tasks_begin_queued BEFORE INSERT ON tasks FOR EACH ROW
    WHEN (NEW.state <> 'queued' OR NEW.version <> 1 OR NEW.attempt <> 0 OR NEW.finished_at IS NOT NULL)
    EXECUTE FUNCTION refuse_birth();

-- The balance is the sum of the entries: it follows them here and can be changed nowhere else.
-- A hold opens a task and its settlement closes it, so that the number of open tasks follows too.
CREATE FUNCTION post_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE accounts
    SET available = accounts.available + posted.available_delta, held = accounts.held + posted.held_delta,
        open_tasks = accounts.open_tasks + posted.opened
    FROM (SELECT account_id, sum(available_delta) AS available_delta, sum(held_delta) AS held_delta,
                 count(*) FILTER (WHERE kind = 'hold') - count(*) FILTER (WHERE kind = 'settle') AS opened
          FROM fresh GROUP BY account_id) AS posted
    WHERE accounts.id = posted.account_id;
    RETURN NULL;
END $$;
CREATE TRIGGER entries_post AFTER INSERT ON entries REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION post_entries();

CREATE FUNCTION guard_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF (NEW.available, NEW.held, NEW.open_tasks) <> (0, 0, 0) THEN
            RAISE EXCEPTION 'a new account is empty' USING ERRCODE = 'restrict_violation';
        END IF;
    ELSIF pg_trigger_depth() < 2
          AND (NEW.available, NEW.held, NEW.open_tasks) <> (OLD.available, OLD.held, OLD.open_tasks) THEN
        RAISE EXCEPTION 'a balance changes through entries only' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER accounts_guard BEFORE INSERT OR UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION guard_balance();

-- A move follows an arrow and raises the version by one; a finished task never changes. A task that waits may also
-- change its provider, which is a move that stays in its state.
CREATE FUNCTION guard_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.account_id <> OLD.account_id OR NEW.unit_price <> OLD.unit_price OR NEW.held <> OLD.held OR NEW.n <> OLD.n THEN
        RAISE EXCEPTION 'account, price and count of a task are frozen' USING ERRCODE = 'restrict_violation';
    END IF;
    IF (NEW.provider, NEW.upstream_model) <> (OLD.provider, OLD.upstream_model) THEN
        IF NEW.state <> OLD.state OR NEW.state NOT IN ('queued', 'retrying') THEN
            RAISE EXCEPTION 'a task changes its provider only while it waits' USING ERRCODE = 'restrict_violation';
        END IF;
        IF NEW.version <> OLD.version + 1 THEN
            RAISE EXCEPTION 'a move raises the version by one' USING ERRCODE = 'restrict_violation';
        END IF;
    ELSIF NEW.state <> OLD.state THEN
        IF NEW.version <> OLD.version + 1 THEN
            RAISE EXCEPTION 'a move raises the version by one' USING ERRCODE = 'restrict_violation';
        END IF;
        IF NOT EXISTS (SELECT FROM transitions WHERE source = OLD.state AND target = NEW.state) THEN
            RAISE EXCEPTION 'no arrow from % to %', OLD.state, NEW.state USING ERRCODE = 'restrict_violation';
        END IF;
        NEW.state_since := clock_now();
    ELSIF NEW.version <> OLD.version THEN
        RAISE EXCEPTION 'the version counts moves' USING ERRCODE = 'restrict_violation';
    ELSIF OLD.finished_at IS NOT NULL
          AND (NEW.failure_class, NEW.failure_code, NEW.finished_at, NEW.attempt)
              IS DISTINCT FROM (OLD.failure_class, OLD.failure_code, OLD.finished_at, OLD.attempt) THEN
        RAISE EXCEPTION 'a finished task does not change' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER tasks_guard BEFORE UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION guard_task();

-- At commit: a new task has its hold, receipt and event; a finished one has its settlement, and what was
-- captured is the price of the pictures that lie in our storage.
CREATE FUNCTION check_accepted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM entries WHERE task_id = NEW.id AND kind = 'hold' AND held_delta = NEW.held) THEN
        RAISE EXCEPTION 'task % has no hold', NEW.id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NOT EXISTS (SELECT FROM receipts WHERE task_id = NEW.id) THEN
        RAISE EXCEPTION 'task % has no receipt', NEW.id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NOT EXISTS (SELECT FROM task_events WHERE task_id = NEW.id AND version = 1) THEN
        RAISE EXCEPTION 'task % has no first event', NEW.id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER tasks_accepted_whole AFTER INSERT ON tasks DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION check_accepted();

CREATE FUNCTION check_settled() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    resolution settlements;
    pictures bigint;
BEGIN
    SELECT * INTO resolution FROM settlements WHERE task_id = NEW.id;
    IF resolution IS NULL OR resolution.held <> NEW.held OR resolution.account_id <> NEW.account_id THEN
        RAISE EXCEPTION 'task % ended without its settlement', NEW.id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NOT EXISTS (SELECT FROM entries WHERE task_id = NEW.id AND kind = 'settle'
                   AND available_delta = resolution.released AND held_delta = -resolution.held) THEN
        RAISE EXCEPTION 'task % ended without its entry', NEW.id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT count(*) INTO pictures FROM assets WHERE task_id = NEW.id;
    IF NEW.state = 'succeeded' AND (pictures = 0 OR resolution.captured <> NEW.unit_price * pictures) THEN
        RAISE EXCEPTION 'task % captured % for % pictures', NEW.id, resolution.captured, pictures
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.state <> 'succeeded' AND (pictures > 0 OR resolution.captured > 0) THEN
        RAISE EXCEPTION 'task % ended as % but captured or kept pictures', NEW.id, NEW.state
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER tasks_settled_whole AFTER UPDATE OF state ON tasks DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL) EXECUTE FUNCTION check_settled();

-- A settlement belongs to a task that has ended.
CREATE FUNCTION check_settlement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM tasks WHERE id = NEW.task_id AND finished_at IS NOT NULL) THEN
        RAISE EXCEPTION 'settlement of task %, which has not ended', NEW.task_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER settlements_of_ended_tasks AFTER INSERT ON settlements DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION check_settlement();

-- A hold is given back by a settlement and in no other way.
CREATE FUNCTION check_settle_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM settlements
                   WHERE task_id = NEW.task_id AND account_id = NEW.account_id
                     AND released = NEW.available_delta AND held = -NEW.held_delta) THEN
        RAISE EXCEPTION 'entry of task % without its settlement', NEW.task_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER entries_settle_with_settlement AFTER INSERT ON entries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.kind = 'settle') EXECUTE FUNCTION check_settle_entry();

-- A picture belongs to a task that succeeded, and is one of those that were captured.
CREATE FUNCTION check_asset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM tasks JOIN settlements ON settlements.task_id = tasks.id
        WHERE tasks.id = NEW.task_id AND tasks.state = 'succeeded'
          AND settlements.captured = tasks.unit_price * (SELECT count(*) FROM assets WHERE task_id = NEW.task_id)
    ) THEN
        RAISE EXCEPTION 'picture of task %, which did not deliver it', NEW.task_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER assets_of_succeeded_tasks AFTER INSERT ON assets DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION check_asset();
