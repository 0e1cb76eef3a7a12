"""A scratch installation: its own directory, database and lab; the API and workers as processes that are kept alive."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import asyncpg

from safelight.cli.measure.instance import new_data_dir, prepare_account
from safelight.cli.rehearsal.plan import Plan
from safelight.db.database import Database
from safelight.db.opening import open_database
from safelight.errors import ConfigurationError
from safelight.lab.child import LabChild, start_lab
from safelight.settings import Settings, load_settings

START_S = 90.0
STOP_S = 20.0
RESTART_S = 0.3
GRANTED = 10_000_000
_NOT_EMPTY = """
SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p') AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
"""


@dataclass(slots=True)
class Kept:
    """A command that is started again whenever it ends; `starts` counts how often it was."""

    name: str
    words: list[str]
    process: asyncio.subprocess.Process | None = None
    starts: int = 0
    started_at: float = 0.0
    is_wanted: bool = True
    keeper: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Its process, while it runs."""
        is_running = self.process is not None and self.process.returncode is None
        return self.process.pid if is_running and self.process else None

    @property
    def up_s(self) -> float:
        """For how many seconds it has been running."""
        return time.monotonic() - self.started_at if self.pid is not None else 0.0

    def send(self, number: signal.Signals) -> bool:
        """Send a signal; False if it does not run at the moment."""
        if self.pid is None or self.process is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
            return True
        return False


@dataclass(slots=True)
class Scratch:
    """What runs, and where."""

    data_dir: Path
    settings: Settings
    environment: dict[str, str]
    lab: LabChild
    log: Path
    kept: list[Kept] = field(default_factory=list)
    database: Database | None = None
    key: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """Where the API listens, also after a restart."""
        return f"http://127.0.0.1:{self.settings.port}"

    @property
    def books(self) -> Database:
        """The operator's own look at the database."""
        if self.database is None:
            raise ConfigurationError("the scratch installation is not open")
        return self.database

    def keep(self, name: str, *words: str) -> None:
        """Start a command and keep it running."""
        one = Kept(name, list(words))
        one.keeper = asyncio.create_task(self._keep(one), name=f"keep-{name}")
        self.kept.append(one)

    async def wait_ready(self) -> None:
        """Until the API answers that it can work.

        Raises:
            ConfigurationError: it does not within a minute and a half; the text is the end of its log.
        """
        until = time.monotonic() + START_S
        async with aiohttp.ClientSession(trust_env=False) as session:
            while time.monotonic() < until:
                if await _is_ready(session, self.url):
                    return
                await asyncio.sleep(0.1)
        words = self.log.read_text(errors="replace").strip().splitlines()
        raise ConfigurationError(f"the scratch installation does not start: {' '.join(words[-3:])[-600:]}")

    async def stop(self) -> None:
        """End every process in order; what does not end is killed."""
        for one in self.kept:
            one.is_wanted = False
            one.send(signal.SIGCONT)
            one.send(signal.SIGTERM)
        keepers = [one.keeper for one in self.kept if one.keeper]
        if keepers:
            await asyncio.wait(keepers, timeout=STOP_S)
        for one in self.kept:
            one.send(signal.SIGKILL)
        await asyncio.gather(*keepers, return_exceptions=True)

    async def _keep(self, one: Kept) -> None:
        while one.is_wanted:
            with self.log.open("ab") as log:
                one.process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "safelight",
                    *one.words,
                    env=self.environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C reaches us, who end them in order
                )
            one.starts += 1
            one.started_at = time.monotonic()
            await one.process.wait()
            await asyncio.sleep(RESTART_S)


@contextlib.asynccontextmanager
async def scratch(plan: Plan) -> AsyncIterator[Scratch]:
    """An installation of its own, ready for work; nothing of it is left when the block ends.

    Raises:
        ConfigurationError: it does not start, or the database that was named is not empty.
    """
    if plan.database_url is not None:
        await _check_empty(plan.database_url)
    data_dir = new_data_dir("safelight-drill-")
    made: Scratch | None = None
    try:
        made = await _make(plan, data_dir)
        async with open_database(made.settings) as database:
            made.database = database
            for number in range(plan.workers):
                made.keep(f"worker-{number + 1}", "worker")
            made.keep("api", "api")
            await made.wait_ready()
            await prepare_account(data_dir, GRANTED, database_url=plan.database_url)
            made.key = (data_dir / "key").read_text(encoding="utf-8").strip()
            yield made
            await made.stop()
    finally:
        if made is not None:
            await made.stop()
            await made.lab.stop()
        if plan.database_url is None:
            from safelight.db.embedded import stop_embedded

            await stop_embedded(data_dir)
        await asyncio.to_thread(shutil.rmtree, data_dir, ignore_errors=True)


async def _make(plan: Plan, data_dir: Path) -> Scratch:
    knobs = f'{{"latency_s": [{plan.latency_s[0]}, {plan.latency_s[1]}], "seed": {plan.seed}}}'
    try:
        lab = await start_lab(host="127.0.0.1", port=0, data_dir=data_dir / "lab", knobs=knobs)
    except OSError as error:
        raise ConfigurationError(f"the lab does not start: {error}") from None
    port = _free_port()
    values = {
        "data_dir": str(data_dir),
        "port": str(port),
        "public_url": f"http://127.0.0.1:{port}",
        "lab_url": lab.url,
        "drain_s": "2",
        "log_level": "warning",
        "log_format": "json",
        **({"database_url": plan.database_url} if plan.database_url else {}),
        **plan.settings,
    }
    # Ours alone: whatever the caller has set for another installation must not reach this one.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SAFELIGHT_")}
    environment = kept | {f"SAFELIGHT_{name.upper()}": value for name, value in values.items()}
    return Scratch(data_dir, load_settings(environ=environment), environment, lab, data_dir / "drill.log")


async def _check_empty(url: str) -> None:
    try:
        connection = await asyncpg.connect(url, timeout=10.0)
    except (OSError, asyncpg.PostgresError, ValueError) as error:
        raise ConfigurationError(f"cannot connect to the database: {error}") from error
    try:
        tables = await connection.fetchval(_NOT_EMPTY)
    finally:
        await connection.close()
    if tables:
        raise ConfigurationError(
            f"a drill needs an empty database of its own, and this one has {tables} tables: it would be harmed"
        )


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/readyz") as answer:
            return answer.status == 200
    except (OSError, aiohttp.ClientError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
