"""Which secret key a database belongs to, and whether its schema is the one we need."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from safelight.db.database import Database
from safelight.db.statements import statements
from safelight.errors import ConfigurationError
from safelight.settings import Settings, derive_key, load_secret

_sql = statements("installation")


async def check_secret(database: Database, secret: bytes) -> None:
    """Bind a new database to this secret key; refuse another key for an old one.

    Raises:
        ConfigurationError: the database was made with another key: its tokens, keys and links are void.
    """
    key_id = _key_id(secret)
    async with database.connection() as connection:
        await _sql.bind_secret.run(connection, secret_key_id=key_id)
        known = await _sql.bound_secret.value(connection)
    if known != key_id:
        raise ConfigurationError(
            f"this database belongs to another SAFELIGHT_SECRET_KEY (its id is {known}, ours is {key_id})"
        )


async def is_secret_of(database: Database, secret: bytes) -> bool:
    """Whether the database belongs to this secret key, or to none yet; it binds nothing."""
    async with database.connection() as connection:
        known: str | None = await _sql.bound_secret.value(connection)
    return known in (None, _key_id(secret))


@dataclass(frozen=True, slots=True)
class Clock:
    """The database's own time, and by how much everything that uses it is told another one."""

    real: datetime
    shift: timedelta


async def read_clock(database: Database) -> Clock:
    """The clock of this database as it is, and as it is moved."""
    async with database.connection() as connection:
        row = await _sql.read_clock.row(connection)
    if row is None:
        raise ConfigurationError("the database has no clock")
    return Clock(row["real"], row["shift"])


def pepper_of(secret: bytes) -> bytes:
    """The key under which API keys are hashed."""
    return derive_key(secret, "api keys")


def admin_pepper_of(secret: bytes) -> bytes:
    """The key under which operators' keys are hashed: another one, so that no hash fits in both places."""
    return derive_key(secret, "admin keys")


async def load_pepper(settings: Settings, database: Database) -> bytes:
    """The pepper of this installation; refuses a secret that is not this database's."""
    secret = load_secret(settings)
    await check_secret(database, secret)
    return pepper_of(secret)


async def is_current(database: Database, revision: str) -> bool:
    """Whether the database answers and stands at this revision."""
    try:
        async with database.connection() as connection:
            found: str | None = await _sql.revision.value(connection)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
        return False
    return found == revision


def _key_id(secret: bytes) -> str:
    return hashlib.sha256(b"safelight key id" + secret).hexdigest()[:16]
