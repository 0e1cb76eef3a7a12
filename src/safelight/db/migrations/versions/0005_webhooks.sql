-- Webhooks to customers. An event is written in the transaction of what it tells; its deliveries follow by trigger.

-- Where an account wants to be told, and how it has gone lately. `types` are the events that are wanted; none means all.
-- `failures` are in a row; `failing_since` is the clock of the disable rule. `wake_at` is when the next of its deliveries
-- is due ('infinity': none), `rest_until` keeps a degraded one quiet, `concurrency` is what may be in flight.
CREATE TABLE webhook_endpoints (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    url text NOT NULL CHECK (url <> '' AND length(url) <= 2048),
    description text NOT NULL DEFAULT '' CHECK (length(description) <= 500),
    types text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    disabled_at timestamptz,
    disabled_reason text NOT NULL DEFAULT '' CHECK (disabled_reason IN ('', 'gone', 'failing')),
    deleted_at timestamptz,
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    failing_since timestamptz,
    succeeded_at timestamptz,
    concurrency smallint NOT NULL DEFAULT 10 CHECK (concurrency BETWEEN 1 AND 10),
    wake_at timestamptz NOT NULL DEFAULT 'infinity',
    rest_until timestamptz NOT NULL DEFAULT '-infinity',
    CONSTRAINT endpoint_disabled_has_reason CHECK ((disabled_at IS NULL) = (disabled_reason = '')),
    CONSTRAINT endpoint_out_of_use_sleeps CHECK (wake_at = 'infinity' OR (disabled_at IS NULL AND deleted_at IS NULL))
);
CREATE INDEX webhook_endpoints_account ON webhook_endpoints (account_id, id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_due ON webhook_endpoints (wake_at) WHERE wake_at < 'infinity';

-- What signs, encrypted under our secret key (`key_id` says which). Those without an end are in force.
CREATE TABLE webhook_secrets (
    id uuid PRIMARY KEY,
    endpoint_id uuid NOT NULL REFERENCES webhook_endpoints,
    sealed bytea NOT NULL CHECK (length(sealed) > 28),
    key_id text NOT NULL CHECK (key_id <> ''),
    created_at timestamptz NOT NULL,
    expires_at timestamptz
);
CREATE INDEX webhook_secrets_endpoint ON webhook_secrets (endpoint_id, created_at);

-- What is told, byte for byte as it was when it happened. `endpoint_id` is set where one endpoint alone is meant.
CREATE TABLE webhook_events (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    account_id uuid NOT NULL REFERENCES accounts,
    type text NOT NULL CHECK (type IN ('task.ready', 'task.failed', 'credits.low', 'endpoint.disabled', 'endpoint.test')),
    task_id uuid REFERENCES tasks,
    endpoint_id uuid REFERENCES webhook_endpoints,
    body bytea NOT NULL CHECK (length(body) BETWEEN 2 AND 20480),
    created_at timestamptz NOT NULL,
    CONSTRAINT webhook_event_about_task CHECK ((type IN ('task.ready', 'task.failed')) = (task_id IS NOT NULL))
);
CREATE UNIQUE INDEX webhook_events_task ON webhook_events (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX webhook_events_age ON webhook_events (created_at, id);
CREATE INDEX webhook_events_endpoint ON webhook_events (endpoint_id) WHERE endpoint_id IS NOT NULL;

CREATE FUNCTION guard_webhook_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what an event says never changes' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER webhook_events_unchanged BEFORE UPDATE ON webhook_events
    FOR EACH ROW EXECUTE FUNCTION guard_webhook_event();

-- One event on its way to one endpoint. `tries` have been made, `step` is the place in the schedule, `due_at` when the
-- next try is due; while a try is in flight (`is_claimed`) it is the end of its lease. `reason` says why it ended.
CREATE TABLE deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL REFERENCES webhook_events ON DELETE CASCADE,
    endpoint_id uuid NOT NULL REFERENCES webhook_endpoints,
    account_id uuid NOT NULL REFERENCES accounts,
    status text NOT NULL CHECK (status IN ('pending', 'delivered', 'failed', 'canceled')),
    reason text NOT NULL DEFAULT '',
    tries integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    step smallint NOT NULL DEFAULT 0 CHECK (step BETWEEN 0 AND 10),
    due_at timestamptz NOT NULL,
    is_claimed boolean NOT NULL DEFAULT false,
    last_status smallint,
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    CONSTRAINT delivery_pending_or_ended CHECK ((status = 'pending') = (ended_at IS NULL)),
    CONSTRAINT delivery_claimed_is_pending CHECK (NOT is_claimed OR status = 'pending')
);
CREATE UNIQUE INDEX deliveries_once ON deliveries (event_id, endpoint_id);
CREATE INDEX deliveries_due ON deliveries (endpoint_id, due_at, id) WHERE status = 'pending';
CREATE INDEX deliveries_claimed ON deliveries (endpoint_id) INCLUDE (account_id, due_at) WHERE is_claimed;
CREATE INDEX deliveries_listed ON deliveries (endpoint_id, id DESC);

-- Each try as it was made: what was sent besides the body, and what came back, redacted and capped.
CREATE TABLE tries (
    delivery_id bigint NOT NULL REFERENCES deliveries ON DELETE CASCADE,
    number integer NOT NULL CHECK (number >= 1),
    endpoint_id uuid NOT NULL REFERENCES webhook_endpoints,
    url text NOT NULL,
    headers jsonb NOT NULL,
    status smallint,
    reason text NOT NULL DEFAULT '',
    detail text NOT NULL DEFAULT '' CHECK (length(detail) <= 500),
    answer text NOT NULL DEFAULT '' CHECK (length(answer) <= 4096),
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    PRIMARY KEY (delivery_id, number)
);
CREATE INDEX tries_endpoint ON tries (endpoint_id, ended_at);

-- Whoever writes an event, in the same statement every endpoint that wants it gets its delivery and is woken. For a
-- disabled one it is kept as failed, to be recovered later; that an endpoint was disabled is told to the others alone.
CREATE FUNCTION spread_webhook_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- One order, and before anything is read: whoever writes an event holds the lock of its account.
    PERFORM FROM webhook_endpoints WHERE account_id IN (SELECT account_id FROM fresh) AND deleted_at IS NULL
    ORDER BY id FOR NO KEY UPDATE;
    INSERT INTO deliveries (event_id, endpoint_id, account_id, status, reason, step, due_at, created_at, ended_at)
    SELECT fresh.id, endpoint.id, endpoint.account_id,
           CASE WHEN endpoint.disabled_at IS NULL THEN 'pending' ELSE 'failed' END,
           CASE WHEN endpoint.disabled_at IS NULL THEN '' ELSE 'endpoint_disabled' END,
           -- A test is tried once: its sender is waiting for the answer.
           CASE WHEN fresh.type = 'endpoint.test' THEN 9 ELSE 0 END,
           fresh.created_at, fresh.created_at,
           CASE WHEN endpoint.disabled_at IS NOT NULL THEN fresh.created_at END
    FROM fresh JOIN webhook_endpoints AS endpoint ON endpoint.account_id = fresh.account_id
    WHERE endpoint.deleted_at IS NULL
      AND (fresh.endpoint_id = endpoint.id
           OR (fresh.endpoint_id IS NULL AND (endpoint.types = '{}' OR fresh.type = ANY(endpoint.types))))
      AND NOT (fresh.type = 'endpoint.disabled' AND endpoint.disabled_at IS NOT NULL)
    ORDER BY fresh.created_at, fresh.id, endpoint.id;
    WITH woken AS (
        SELECT deliveries.endpoint_id AS id, min(deliveries.due_at) AS due_at
        FROM fresh JOIN deliveries ON deliveries.event_id = fresh.id AND deliveries.status = 'pending'
        GROUP BY deliveries.endpoint_id
    )
    UPDATE webhook_endpoints AS endpoint
    SET wake_at = greatest(endpoint.rest_until, least(endpoint.wake_at, woken.due_at))
    FROM woken WHERE endpoint.id = woken.id AND endpoint.wake_at > woken.due_at;
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_events_spread AFTER INSERT ON webhook_events REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION spread_webhook_events();

-- An account may want to hear when its credits run low: once for each time that it falls below, and not twice an hour.
ALTER TABLE accounts
    ADD COLUMN low_credits bigint CHECK (low_credits > 0),
    ADD COLUMN low_told_at timestamptz;
CREATE FUNCTION tell_low_credits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_now();
BEGIN
    IF NEW.low_told_at > moment - interval '1 hour' AND NEW.low_told_at <= moment THEN
        RETURN NEW;
    END IF;
    INSERT INTO webhook_events (account_id, type, body, created_at)
    SELECT NEW.id, 'credits.low', convert_to(json_build_object(
               'type', 'credits.low',
               'timestamp', to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
               'data', json_build_object('available', NEW.available, 'held', NEW.held, 'threshold', NEW.low_credits)
           )::text, 'UTF8'), moment
    WHERE EXISTS (SELECT FROM webhook_endpoints WHERE account_id = NEW.id AND deleted_at IS NULL);
    NEW.low_told_at := moment;
    RETURN NEW;
END $$;
CREATE TRIGGER accounts_low_credits BEFORE UPDATE OF available ON accounts FOR EACH ROW
    WHEN (NEW.available < NEW.low_credits AND OLD.available >= NEW.low_credits)
    EXECUTE FUNCTION tell_low_credits();

-- What changed since a moment is asked by account.
CREATE INDEX tasks_finished_of_account ON tasks (account_id, finished_at) WHERE finished_at IS NOT NULL;

INSERT INTO retention (kind) VALUES ('deliveries');
