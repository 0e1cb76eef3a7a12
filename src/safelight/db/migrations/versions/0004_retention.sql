-- Retention: what a task said and drew may go after a while; who paid what, and how it ended, stays for ever.

-- `erased_at`: when what it said was erased, by the customer or by policy. `history_dropped_at`: when its history went.
-- `look_until`: attempts up to this number may have been made by a safelight whose memory of it is lost (this database
-- was restored from a backup): each is looked for upstream before it is sent.
ALTER TABLE tasks
    ADD COLUMN erased_at timestamptz,
    ADD COLUMN history_dropped_at timestamptz,
    ADD COLUMN look_until smallint NOT NULL DEFAULT 0 CHECK (look_until >= 0),
    ADD CONSTRAINT task_erased_says_nothing CHECK (erased_at IS NULL OR (
        finished_at IS NOT NULL AND prompt = '' AND options = '{}' AND metadata = '{}' AND images = '{}' AND mask IS NULL)),
    ADD CONSTRAINT task_open_has_history CHECK (history_dropped_at IS NULL OR finished_at IS NOT NULL);
-- What has ended, oldest first.
CREATE INDEX tasks_finished ON tasks (finished_at, id) WHERE finished_at IS NOT NULL;

-- A doomed picture is given to nobody any more; when its bytes are gone the row stays as the record of it.
ALTER TABLE assets
    ADD COLUMN doomed_at timestamptz,
    ADD COLUMN deleted_at timestamptz,
    ADD CONSTRAINT asset_deleted_was_doomed CHECK (deleted_at IS NULL OR doomed_at IS NOT NULL);
CREATE INDEX assets_doomed ON assets (doomed_at, id) WHERE doomed_at IS NOT NULL AND deleted_at IS NULL;

CREATE FUNCTION guard_asset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(NEW) - '{doomed_at,deleted_at}'::text[] <> to_jsonb(OLD) - '{doomed_at,deleted_at}'::text[]
       OR (OLD.doomed_at IS NOT NULL AND NEW.doomed_at IS DISTINCT FROM OLD.doomed_at)
       OR (OLD.deleted_at IS NOT NULL AND NEW.deleted_at IS DISTINCT FROM OLD.deleted_at) THEN
        RAISE EXCEPTION 'assets is append-only' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER assets_unchanged ON assets;
CREATE TRIGGER assets_unchanged BEFORE UPDATE ON assets FOR EACH ROW EXECUTE FUNCTION guard_asset();
CREATE TRIGGER assets_kept BEFORE DELETE ON assets FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER assets_never_emptied BEFORE TRUNCATE ON assets FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Histories may go, and nothing else that is append-only: one at a time, by who says that this is what he is doing.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'task_events' AND current_setting('safelight.retention', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

-- How far each policy has come: everything that ended before (done_at, done_id) is done. Who holds the lease works.
CREATE TABLE retention (
    kind text PRIMARY KEY,
    done_at timestamptz NOT NULL DEFAULT '-infinity',
    done_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    leased_until timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO retention (kind) VALUES ('tasks'), ('events'), ('callbacks'), ('assets'), ('strays');
