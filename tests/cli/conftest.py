"""Wiring of the command line's tests: an embedded database, and books in it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from safelight.assets.local import LocalStore
from safelight.db.database import Database
from safelight.settings import Settings
from tests.cli.books import Books, write_books
from tests.cli.command import Command
from tests.client.fake_api import KEY, FakeApi, running_api
from tests.world import Server

EMPTY = """
    SET LOCAL session_replication_role = replica;
    DELETE FROM accounts; DELETE FROM api_keys; DELETE FROM tasks; DELETE FROM attempts; DELETE FROM receipts;
    DELETE FROM entries; DELETE FROM settlements; DELETE FROM assets; DELETE FROM uploads; DELETE FROM task_events;
    DELETE FROM callbacks; DELETE FROM findings; DELETE FROM losses; DELETE FROM gates;
    DELETE FROM reconciliations; DELETE FROM callback_counts; DELETE FROM callback_alarms;
    DELETE FROM tries; DELETE FROM deliveries; DELETE FROM webhook_events; DELETE FROM webhook_secrets;
    DELETE FROM webhook_endpoints;
    DELETE FROM decisions; DELETE FROM alerts; DELETE FROM audit_lines;
    DELETE FROM live_events; DELETE FROM live_counters; DELETE FROM event_tickets;
    DELETE FROM batches; DELETE FROM batch_refusals;
    DELETE FROM admin_keys; DELETE FROM admin_receipts;
    UPDATE audit_head SET id = 0, hash = decode(repeat('00', 32), 'hex');
    DELETE FROM pgqueuer.pgqueuer; DELETE FROM pgqueuer.pgqueuer_log;
    DELETE FROM installation; UPDATE clock SET shift = '0';
"""
INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'safelight'"


@pytest.fixture(scope="session")
def books_url(server: Server) -> Iterator[str]:
    """One database for all books of a run: cloning one for each test would take most of the time."""
    url = asyncio.run(server.clone())
    yield url
    asyncio.run(server.drop(url))


@pytest.fixture(scope="session")
def indexes(books_url: str) -> dict[str, str]:
    """Every index of the schema by name: some lies are only possible without one."""

    async def read() -> dict[str, str]:
        async with opened(books_url) as database, database.connection() as connection:
            return {row["indexname"]: row["indexdef"] for row in await connection.fetch(INDEXES)}

    return asyncio.run(read())


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    """A database, open."""
    database = Database(url, pool_size=4)
    await database.open()
    yield database
    await database.close()


async def mend(database: Database, indexes: dict[str, str]) -> None:
    """Empty the books, whatever was done to them."""
    async with database.transaction() as connection:
        await connection.execute(EMPTY)
        for name, definition in indexes.items():
            if not await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", name):
                await connection.execute(definition)


@pytest.fixture
async def database(books_url: str, indexes: dict[str, str]) -> AsyncIterator[Database]:
    """An empty database; whatever a test falsifies is mended when it ends."""
    async with opened(books_url) as database:
        yield database
        await mend(database, indexes)


@pytest.fixture
async def books(database: Database, data_dir: Path) -> AsyncIterator[Books]:
    """True books."""
    store = LocalStore(data_dir / "assets")
    yield await write_books(database, store, Settings(data_dir=data_dir))
    await store.aclose()


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the caller's own installation, and text without colours."""
    for variable in [name for name in os.environ if name.startswith("SAFELIGHT_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def customer(api: FakeApi, data_dir: Path) -> Command:
    """The command as a customer has it: a data directory that names a (fake) service, and nothing else."""
    (data_dir / "key").write_text(f"{KEY}\n")
    (data_dir / "url").write_text(f"{api.url}\n")
    return Command(data_dir)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A fake API over real HTTP."""
    with running_api() as api:
        yield api


@pytest.fixture
def operator(
    books_url: str, indexes: dict[str, str], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Command]:
    """The command on the service's own machine, with true books in the database and the store."""
    monkeypatch.setenv("SAFELIGHT_DATABASE_URL", books_url)
    command = Command(data_dir)

    async def prepare() -> None:
        async with opened(books_url) as database:
            store = LocalStore(data_dir / "assets")
            command.books = await write_books(database, store, Settings(data_dir=data_dir))
            await store.aclose()

    async def tidy() -> None:
        async with opened(books_url) as database:
            await mend(database, indexes)

    asyncio.run(prepare())
    yield command
    asyncio.run(tidy())
