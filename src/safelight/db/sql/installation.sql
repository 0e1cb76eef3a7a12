-- name: bind_secret!
-- The first start decides which secret key belongs to this database.
INSERT INTO installation (secret_key_id) VALUES (:secret_key_id) ON CONFLICT DO NOTHING;

-- name: bound_secret$
-- The key that it belongs to.
SELECT secret_key_id FROM installation;

-- name: revision$
-- The migration that this database stands at.
SELECT version_num FROM alembic_version;

-- name: read_clock^
-- The database's own time, and how far the clock that everything uses is moved from it.
SELECT clock_now() - shift AS real, shift FROM clock;
