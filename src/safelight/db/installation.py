"""Which secret key a database belongs to, and whether its schema is the one we need."""

from __future__ import annotations

import hashlib

import asyncpg

from safelight.db.database import Database
from safelight.db.statements import statements
from safelight.errors import ConfigurationError

_sql = statements("installation")


async def check_secret(database: Database, secret: bytes) -> None:
    """Bind a new database to this secret key; refuse another key for an old one.

    Raises:
        ConfigurationError: the database was made with another key: its tokens, keys and links are void.
    """
    key_id = hashlib.sha256(b"safelight key id" + secret).hexdigest()[:16]
    async with database.connection() as connection:
        await _sql.bind_secret.run(connection, secret_key_id=key_id)
        known = await _sql.bound_secret.value(connection)
    if known != key_id:
        raise ConfigurationError(
            f"this database belongs to another SAFELIGHT_SECRET_KEY (its id is {known}, ours is {key_id})"
        )


async def is_current(database: Database, revision: str) -> bool:
    """Whether the database answers and stands at this revision."""
    try:
        async with database.connection() as connection:
            found: str | None = await _sql.revision.value(connection)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
        return False
    return found == revision
