-- Live events: every change of a task that its customer can see, under a number that no reader can skip.

-- What `public_stage` of domain/task.py says, as a place in STAGES; a test compares them.
CREATE FUNCTION stage_of(state text, review_reason text) RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN state IN ('succeeded', 'failed', 'blocked', 'canceled') THEN 3
                WHEN state = 'archiving' OR review_reason = 'archive_stuck' THEN 2
                WHEN state = 'queued' THEN 0 ELSE 1 END::smallint
$$;

-- The furthest stage that the customer was shown: a progress bar never goes back, whatever the state does.
ALTER TABLE tasks ADD COLUMN stage smallint NOT NULL DEFAULT 0;
UPDATE tasks SET stage = stage_of(state, review_reason) WHERE finished_at IS NULL;

CREATE FUNCTION raise_stage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.stage := greatest(OLD.stage, stage_of(NEW.state, NEW.review_reason));
    RETURN NEW;
END $$;
CREATE TRIGGER tasks_stage BEFORE UPDATE ON tasks
    FOR EACH ROW WHEN (NEW.state <> OLD.state) EXECUTE FUNCTION raise_stage();

-- A row is written with its change, and numbered when it is first read, which is after its commit: so numbers follow
-- the order in which readers can see rows, and nobody has to wait for a lock in order to write one.
CREATE TABLE live_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id uuid NOT NULL,
    number bigint CHECK (number > 0),
    task_id uuid NOT NULL,
    version integer NOT NULL,
    status text NOT NULL CHECK (status IN ('processing', 'ready', 'failed')),
    stage smallint NOT NULL CHECK (stage BETWEEN 0 AND 3),
    percent smallint,
    position integer,
    failure_class text,
    failure_code text,
    created_at timestamptz NOT NULL DEFAULT clock_now()
);
CREATE UNIQUE INDEX live_events_number ON live_events (account_id, number) WHERE number IS NOT NULL;
CREATE INDEX live_events_unnumbered ON live_events (account_id, id) WHERE number IS NULL;
CREATE INDEX live_events_task ON live_events (task_id, id);

-- The last number of each account that was given, and the last one whose row may be gone.
CREATE TABLE live_counters (
    account_id uuid PRIMARY KEY REFERENCES accounts,
    last bigint NOT NULL DEFAULT 0,
    dropped bigint NOT NULL DEFAULT 0,
    CONSTRAINT live_counter_order CHECK (dropped BETWEEN 0 AND last)
);

-- By trigger, so that no step of a task can forget it.
CREATE FUNCTION tell_live() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO live_events (account_id, task_id, version, status, stage, percent, position, failure_class, failure_code)
    VALUES (NEW.account_id, NEW.id, NEW.version,
            CASE WHEN NEW.state = 'succeeded' THEN 'ready' WHEN NEW.stage = 3 THEN 'failed' ELSE 'processing' END,
            NEW.stage, CASE WHEN NEW.stage < 3 THEN NEW.percent END,
            CASE WHEN NEW.state IN ('submitting', 'uncertain', 'running') THEN NEW.position END,
            NEW.failure_class, NEW.failure_code);
    PERFORM pg_notify('safelight_live', NEW.account_id::text);
    RETURN NULL;
END $$;
CREATE TRIGGER tasks_told_new AFTER INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION tell_live();
CREATE TRIGGER tasks_told AFTER UPDATE ON tasks FOR EACH ROW
    WHEN ((NEW.stage, NEW.percent, NEW.position) IS DISTINCT FROM (OLD.stage, OLD.percent, OLD.position))
    EXECUTE FUNCTION tell_live();

-- Number what one account has committed since the last time, at most `room` rows; how many there were.
CREATE FUNCTION number_live_events(account uuid, room integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    reached bigint;
    numbered integer := 0;
BEGIN
    IF EXISTS (SELECT FROM live_events WHERE account_id = account AND number IS NULL) THEN
        INSERT INTO live_counters (account_id) VALUES (account) ON CONFLICT DO NOTHING;
        SELECT last INTO reached FROM live_counters WHERE account_id = account FOR UPDATE;
        -- A statement of its own: it sees what whoever held the lock before has numbered.
        UPDATE live_events SET number = reached + fresh.place
        FROM (SELECT id, row_number() OVER (ORDER BY id) AS place
              FROM (SELECT id FROM live_events WHERE account_id = account AND number IS NULL
                    ORDER BY id LIMIT room) AS next) AS fresh
        WHERE live_events.id = fresh.id;
        GET DIAGNOSTICS numbered = ROW_COUNT;
        UPDATE live_counters SET last = reached + numbered WHERE account_id = account;
    END IF;
    RETURN numbered;
END $$;

-- A browser opens a stream by a ticket, since it cannot send a key; each opens one, within a minute.
CREATE TABLE event_tickets (
    digest bytea PRIMARY KEY CHECK (length(digest) = 32),
    account_id uuid NOT NULL REFERENCES accounts,
    key_id text,
    expires_at timestamptz NOT NULL
);
CREATE INDEX event_tickets_expiry ON event_tickets (expires_at);

-- Batches: many tasks at one blow, of which so many are at work at once. Every item is a task from the first moment, with
-- its hold; until its turn comes it is parked, which means that it wakes at 'infinity' and need not start before.
CREATE TABLE batches (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    name text NOT NULL DEFAULT '' CHECK (length(name) <= 200),
    key text CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    items integer NOT NULL CHECK (items BETWEEN 1 AND 10000),
    at_once integer NOT NULL CHECK (at_once BETWEEN 1 AND 10000),
    start_in_s double precision NOT NULL CHECK (start_in_s > 0),
    state text NOT NULL DEFAULT 'accepting' CHECK (state IN ('accepting', 'open', 'finished')),
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    canceled_at timestamptz,
    finished_at timestamptz,
    CONSTRAINT batch_end_has_time CHECK ((state = 'finished') = (finished_at IS NOT NULL))
);
CREATE UNIQUE INDEX batches_account ON batches (account_id, id);
CREATE UNIQUE INDEX batches_key ON batches (account_id, key) WHERE key IS NOT NULL;
CREATE INDEX batches_unfinished ON batches (id) WHERE finished_at IS NULL;

-- Items that became no task, and why.
CREATE TABLE batch_refusals (
    batch_id uuid NOT NULL REFERENCES batches,
    position integer NOT NULL CHECK (position >= 0),
    code text NOT NULL,
    detail text NOT NULL,
    PRIMARY KEY (batch_id, position)
);

ALTER TABLE tasks
    ADD COLUMN batch_id uuid,
    ADD COLUMN batch_position integer,
    ADD CONSTRAINT task_batch_has_position CHECK ((batch_id IS NULL) = (batch_position IS NULL)),
    ADD CONSTRAINT task_batch FOREIGN KEY (account_id, batch_id) REFERENCES batches (account_id, id);
CREATE UNIQUE INDEX tasks_batch ON tasks (batch_id, batch_position) WHERE batch_id IS NOT NULL;
CREATE INDEX tasks_batch_parked ON tasks (batch_id, batch_position) WHERE state = 'queued' AND wake_at = 'infinity';
CREATE INDEX tasks_batch_at_work ON tasks (batch_id)
    WHERE batch_id IS NOT NULL AND finished_at IS NULL AND wake_at < 'infinity';
-- The fair claim must not read what is parked, twice a second.
DROP INDEX tasks_waiting;
CREATE INDEX tasks_waiting ON tasks (provider, account_id, priority DESC, id)
    WHERE state IN ('queued', 'retrying') AND wake_at < 'infinity';
