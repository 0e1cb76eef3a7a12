-- People in a browser: sessions, and the one-time tickets that open them. Both are known by a keyed hash alone.

-- A session stands on the key that opened it: a customer's or an operator's. When the key is revoked, it ends.
CREATE TABLE sessions (
    digest bytea PRIMARY KEY CHECK (length(digest) = 32),
    key_id text REFERENCES api_keys,
    admin_key_id text REFERENCES admin_keys,
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    seen_at timestamptz NOT NULL DEFAULT clock_now(),
    expires_at timestamptz NOT NULL,
    CONSTRAINT session_has_one_key CHECK (num_nonnulls(key_id, admin_key_id) = 1),
    CONSTRAINT session_ends_later CHECK (expires_at > created_at)
);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE session_tickets (
    digest bytea PRIMARY KEY CHECK (length(digest) = 32),
    key_id text REFERENCES api_keys,
    admin_key_id text REFERENCES admin_keys,
    expires_at timestamptz NOT NULL,
    CONSTRAINT ticket_has_one_key CHECK (num_nonnulls(key_id, admin_key_id) = 1)
);
CREATE INDEX session_tickets_expiry ON session_tickets (expires_at);
