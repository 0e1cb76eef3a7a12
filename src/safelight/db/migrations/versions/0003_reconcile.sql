-- Theirs against ours: reconciliation runs with their reports, and what callbacks were worth.

-- One row for each run over a provider's day (UTC, by the start of attempts): what is due, how far it has come, and in
-- the end its report. `until_at` is where the window ends: with the day, or before it if the day was not over.
-- `version` is the fence: who claims a run raises it, and a page is committed only under the claim it was read in.
CREATE TABLE reconciliations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provider text NOT NULL,
    day date NOT NULL,
    until_at timestamptz NOT NULL,
    mode text NOT NULL CHECK (mode IN ('list', 'id', 'none')),
    stage text NOT NULL CHECK (stage IN ('theirs', 'ours')),
    cursor text,
    version integer NOT NULL DEFAULT 1,
    tries integer NOT NULL DEFAULT 0,
    is_complete boolean NOT NULL DEFAULT true,
    counts jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(counts) = 'object'),
    findings jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(findings) = 'array'),
    note text NOT NULL DEFAULT '',
    wake_at timestamptz,
    leased_until timestamptz NOT NULL DEFAULT '-infinity',
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    started_at timestamptz,
    finished_at timestamptz,
    CONSTRAINT reconciliation_within_its_day CHECK (
        until_at > day::timestamp AT TIME ZONE 'UTC' AND until_at <= (day + 1)::timestamp AT TIME ZONE 'UTC'),
    CONSTRAINT reconciliation_open_has_wake CHECK ((finished_at IS NULL) = (wake_at IS NOT NULL))
);
CREATE UNIQUE INDEX reconciliations_open ON reconciliations (provider, day) WHERE finished_at IS NULL;
CREATE INDEX reconciliations_day ON reconciliations (provider, day DESC, id DESC);

-- What a run under way has seen in the provider's list; gone when it is finished.
CREATE TABLE reconciliation_records (
    reconciliation_id bigint NOT NULL REFERENCES reconciliations ON DELETE CASCADE,
    provider_ref text NOT NULL,
    PRIMARY KEY (reconciliation_id, provider_ref)
);

-- A record of the provider's without an attempt of ours is a finding too; it is known by its provider_ref.
ALTER TABLE findings ALTER COLUMN task_id DROP NOT NULL;
ALTER TABLE findings ALTER COLUMN attempt DROP NOT NULL;
ALTER TABLE findings ADD COLUMN provider_ref text;
ALTER TABLE findings DROP CONSTRAINT findings_kind_check;
ALTER TABLE findings ADD CONSTRAINT findings_kind_check CHECK (kind IN (
    'orphan_result', 'provider_ref_conflict', 'surplus_outputs', 'contradiction',
    'orphan', 'unknown_upstream', 'amount_differs'));
ALTER TABLE findings ADD CONSTRAINT finding_is_about_something CHECK (
    (task_id IS NULL) = (attempt IS NULL) AND (task_id IS NULL) = (kind = 'orphan')
    AND (task_id IS NOT NULL OR provider_ref IS NOT NULL));
CREATE UNIQUE INDEX findings_orphans ON findings (kind, provider, provider_ref) WHERE task_id IS NULL;

-- `would_apply` is the verdict where a provider is only observed; `would_be` is the state that the task would have.
ALTER TABLE callbacks DROP CONSTRAINT callbacks_verdict_check;
ALTER TABLE callbacks ADD CONSTRAINT callbacks_verdict_check CHECK (verdict IN (
    'applied', 'progress', 'duplicate', 'out_of_order', 'stale', 'unknown', 'hint', 'unusable', 'would_apply'));
ALTER TABLE callbacks ADD COLUMN is_early boolean NOT NULL DEFAULT false;
ALTER TABLE callbacks ADD COLUMN would_be text;
ALTER TABLE callbacks ADD CONSTRAINT callback_observed_has_state CHECK ((verdict = 'would_apply') = (would_be IS NOT NULL));
CREATE INDEX callbacks_received ON callbacks USING brin (received_at);

-- Callbacks of which nothing else is kept: those that proved nothing, by why, and those about nothing we know.
CREATE TABLE callback_counts (
    provider text NOT NULL,
    day date NOT NULL,
    kind text NOT NULL,
    callbacks bigint NOT NULL CHECK (callbacks > 0),
    PRIMARY KEY (provider, day, kind)
);

-- Providers whose callbacks have stopped coming: the share that was usual before, while the alarm lasts.
CREATE TABLE callback_alarms (
    provider text PRIMARY KEY,
    expected double precision NOT NULL,
    received double precision NOT NULL,
    raised_at timestamptz NOT NULL DEFAULT clock_now()
);
