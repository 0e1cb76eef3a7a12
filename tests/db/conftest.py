"""Databases for the tests of what is remembered: a fresh one, an empty one, and true rows to attack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import asyncpg
import pytest

from safelight.db.database import SESSION, Database
from tests.db.rows import Rows
from tests.world import Server


@pytest.fixture
async def database(server: Server) -> AsyncIterator[Database]:
    """A fresh migrated database, open."""
    url = await server.clone()
    made = Database(url, pool_size=8)
    await made.open()
    yield made
    await made.close()
    await server.drop(url)


@pytest.fixture
async def empty_url(server: Server) -> AsyncIterator[str]:
    """The URL of a database with nothing of ours in it."""
    url = await server.clone()
    connection = await asyncpg.connect(url)
    await connection.execute("DROP SCHEMA safelight CASCADE; DROP SCHEMA pgqueuer CASCADE")
    await connection.close()
    yield url
    await server.drop(url)


@dataclass(frozen=True, slots=True)
class Attacked:
    """True rows, and a connection to attack them with. Whatever an attack does is rolled back."""

    rows: Rows
    connection: asyncpg.Connection

    async def attack(self, sql: str) -> None:
        """Do it, and let every rule be checked that a commit would check."""
        transaction = self.connection.transaction()
        await transaction.start()
        try:
            await self.connection.execute(self.rows.fill(sql))
            await self.connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        finally:
            await transaction.rollback()

    async def refused(self, sql: str, error: type[asyncpg.PostgresError], words: str) -> None:
        """It must fail with exactly this error, and say these words."""
        with pytest.raises(asyncpg.PostgresError, match=words) as caught:
            await self.attack(sql)
        assert caught.type is error

    async def impossible(self, sql: str) -> None:
        """It must fail, whichever of the integrity rules refuses it."""
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await self.attack(sql)


@pytest.fixture(scope="module")
def true_rows(server: Server) -> Iterator[tuple[str, Rows]]:
    """One database a module with a task in every state."""
    rows = Rows()

    async def prepare() -> str:
        url = await server.clone()
        connection = await asyncpg.connect(url, server_settings=SESSION)
        await rows.write(connection)
        await connection.close()
        return url

    url = asyncio.run(prepare())
    yield url, rows
    asyncio.run(server.drop(url))


@pytest.fixture
async def attacked(true_rows: tuple[str, Rows]) -> AsyncIterator[Attacked]:
    url, rows = true_rows
    connection = await asyncpg.connect(url, server_settings=SESSION)
    yield Attacked(rows, connection)
    await connection.close()
