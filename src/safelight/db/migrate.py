"""Bring a database to this version: Alembic with plain SQL, then the queue's own install or upgrade."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg

from safelight.db.queue import queue_queries
from safelight.errors import ConfigurationError

MIGRATIONS = Path(__file__).parent / "migrations"
LOCK_KEY = 0x5AFE_1167
"""Advisory lock: one process migrates, the others wait and then find nothing to do."""


async def migrate(url: str) -> str:
    """Migrate the database behind `url` (a direct one, not a pooler's) and return its revision.

    Several processes may call it at once.

    Raises:
        ConfigurationError: the server is too old, or its schema is newer than this version of safelight.
    """
    connection = await asyncpg.connect(url, timeout=10.0)
    try:
        _check_server(connection)
        await connection.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
        await connection.execute("CREATE SCHEMA IF NOT EXISTS safelight")
        revision = await _upgrade_tables(connection, url)
        await _upgrade_queue(connection)
        return revision
    finally:
        await connection.close()


def _check_server(connection: asyncpg.Connection) -> None:
    if connection.get_server_version() < (15,):
        raise ConfigurationError("safelight needs PostgreSQL 15 or newer")


async def _upgrade_tables(connection: asyncpg.Connection, url: str) -> str:
    known = revisions()
    head = known[-1]
    has_table = await connection.fetchval("SELECT to_regclass('safelight.alembic_version') IS NOT NULL")
    current: str | None = (
        await connection.fetchval("SELECT version_num FROM safelight.alembic_version") if has_table else None
    )
    if current == head:
        return head
    if current is not None and current not in known:
        raise ConfigurationError(
            f"the database is at {current}, which this version of safelight does not know"
        )
    await asyncio.to_thread(_run_alembic, url)
    return head


def revisions() -> list[str]:
    """Every revision in order: the number that its file name begins with."""
    return sorted(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def _run_alembic(url: str) -> None:
    # Half a second of imports, needed on an upgrade only.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = url
    command.upgrade(config, "head")


async def _upgrade_queue(connection: asyncpg.Connection) -> None:
    queries = queue_queries(connection)
    if await queries.schema_is_installed():
        await queries.apply_upgrade()
    else:
        await queries.install()
