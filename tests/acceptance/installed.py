"""The installed command as a process of its own, and what its customers and operators see of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp

from safelight.db.database import Database
from safelight.db.embedded import start_embedded

COMMAND = str(Path(sys.executable).with_name("safelight"))
START_S = 180.0
TAKEN_S = 60.0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Installed:
    """One `safelight serve` that can be killed and started again on the same data directory."""

    def __init__(self, data_dir: Path, *, knobs: dict[str, Any] | None = None) -> None:
        self.data_dir = data_dir
        self._knobs = knobs or {}
        self.port = free_port()  # kept over restarts: it is in every callback URL
        self._process: asyncio.subprocess.Process | None = None
        self.log = data_dir.parent / f"{data_dir.name}.log"

    async def start(self) -> float:
        """Start and wait until it is ready; returns the seconds that took."""
        began = time.monotonic()
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                COMMAND,
                "serve",
                f"--port={self.port}",
                "--lab-port=0",
                f"--lab-knobs={json.dumps(self._knobs)}",
                f"--data-dir={self.data_dir}",
                stdout=log,
                stderr=log,
                stdin=asyncio.subprocess.DEVNULL,
            )
        async with asyncio.timeout(START_S):
            while not await self._is_ready():
                if self._process.returncode is not None:
                    raise AssertionError(f"serve ended: {self.log.read_text()[-2000:]}")
                await asyncio.sleep(0.05)
        return time.monotonic() - began

    async def kill(self) -> None:
        """SIGKILL: no goodbye to anybody."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()
        (self.data_dir / "url").unlink(missing_ok=True)

    async def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self._process.wait(), 60.0)

    @property
    def url(self) -> str:
        return (self.data_dir / "url").read_text().strip()

    @property
    def key(self) -> str:
        return (self.data_dir / "key").read_text().strip()

    def run(self, *arguments: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run another command of the same installation."""
        environment = {**os.environ, "SAFELIGHT_DATA_DIR": str(self.data_dir), "NO_COLOR": "1"}
        return subprocess.run(
            [COMMAND, *arguments],
            capture_output=True,
            text=True,
            env=environment,
            timeout=timeout_s,
            check=False,
        )

    async def begin(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start another command of the same installation, which the test may kill."""
        environment = {**os.environ, "SAFELIGHT_DATA_DIR": str(self.data_dir), "NO_COLOR": "1"}
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                COMMAND, *arguments, env=environment, stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL
            )

    async def most_at_work(self, batch_id: str) -> int:
        """How many items of a batch were at work together, by their histories: from the first claim to the end."""
        async with self.database() as database, database.connection() as connection:
            most: int = await connection.fetchval(
                """
                SELECT max(running) FROM (
                    SELECT sum(step) OVER (ORDER BY moment, step) AS running FROM (
                        SELECT min(created_at) FILTER (WHERE target = 'submitting') AS moment, 1 AS step
                        FROM task_events WHERE task_id IN (SELECT id FROM tasks WHERE batch_id = $1) GROUP BY task_id
                        UNION ALL
                        SELECT finished_at, -1 FROM tasks WHERE batch_id = $1
                    ) AS steps
                ) AS path
                """,
                UUID(batch_id),
            )
        return most

    async def until_taken(self, ids: Collection[str]) -> None:
        """Until a provider is known to have each of these.

        A submit that is cut off before that may take minutes to clear up, or a person where nothing can tell.
        """
        async with asyncio.timeout(TAKEN_S), self.database() as database:
            open_ids = {UUID(each) for each in ids}
            while open_ids:
                async with database.connection() as connection:
                    rows = await connection.fetch(
                        "SELECT task_id FROM attempts WHERE task_id = ANY($1) AND accepted_at IS NOT NULL",
                        open_ids,
                    )
                open_ids -= {row["task_id"] for row in rows}
                await asyncio.sleep(0.02)

    @contextlib.asynccontextmanager
    async def customer(self) -> Any:
        """A session with the first account's key."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            yield session

    @contextlib.asynccontextmanager
    async def database(self) -> Any:
        """The operator's own look at the database."""
        database = Database(await start_embedded(self.data_dir), pool_size=2)
        await database.open()
        try:
            yield database
        finally:
            await database.close()

    async def wait_for_ends(
        self, ids: Collection[str], *, quiet_s: float = 8.0, step_s: float = 60.0
    ) -> None:
        """Until each of these is terminal or in review; when nothing ends any more, time is moved on."""
        open_ids, changed_at = set(ids), time.monotonic()
        async with self.database() as database:
            while open_ids:
                async with database.connection() as connection:
                    rows = await connection.fetch(
                        "SELECT id FROM tasks WHERE finished_at IS NOT NULL OR state = 'review'"
                    )
                before = len(open_ids)
                open_ids -= {str(row["id"]) for row in rows}
                if len(open_ids) < before:
                    changed_at = time.monotonic()
                elif time.monotonic() - changed_at > quiet_s:
                    await database.shift_clock(timedelta(seconds=step_s))
                    changed_at = time.monotonic()
                await asyncio.sleep(0.2)

    async def pass_time(self, seconds: float) -> None:
        """Move the installation's clock."""
        async with self.database() as database:
            await database.shift_clock(timedelta(seconds=seconds))

    async def lab_ledger(self) -> dict[str, Any]:
        """The lab's own account of what it accepted and billed, from its file's reader: the lab itself."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{await self.lab_url()}/lab/ledger") as answer,
        ):
            found: dict[str, Any] = await answer.json()
            return found

    async def lab_url(self) -> str:
        lines = self.log.read_text().splitlines()
        found = [
            line.split("the lab answers at ")[1].strip() for line in lines if "the lab answers at " in line
        ]
        return found[-1]

    async def _is_ready(self) -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{self.url}/readyz") as answer:
                return answer.status == 200
        except (OSError, aiohttp.ClientError):
            return False
