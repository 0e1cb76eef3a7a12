"""The pool, transactions and the clock."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import asyncpg

from safelight.db.statements import Connection
from safelight.errors import ConfigurationError

SCHEMA = "safelight"
SESSION = {
    "search_path": SCHEMA,
    "timezone": "UTC",
    "application_name": "safelight",
    "synchronous_commit": "on",
    "jit": "off",
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "60s",
}
"""Every session's settings: commits are durable, and nothing can hold a lock for ever."""


class Database:
    """Connections to one PostgreSQL database."""

    def __init__(self, url: str, *, direct_url: str | None = None, pool_size: int = 10) -> None:
        self.url = url
        self.direct_url = direct_url or url
        self._pool_size = pool_size
        self._pool: asyncpg.Pool | None = None

    async def open(self) -> None:
        """Connect.

        Raises:
            ConfigurationError: the server cannot be reached or refuses us.
        """
        try:
            self._pool = await asyncpg.create_pool(
                self.url,
                min_size=1,
                max_size=self._pool_size,
                server_settings=SESSION,
                timeout=10.0,
                reset=_keep_session,
            )
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
            raise ConfigurationError(f"cannot connect to the database: {error}") from error

    async def close(self) -> None:
        """Give every connection back; those still busy after 5 s are cut."""
        if self._pool is None:
            return
        try:
            await asyncio.wait_for(self._pool.close(), timeout=5.0)
        except TimeoutError:
            self._pool.terminate()
        self._pool = None

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection outside a transaction, for reads."""
        if self._pool is None:
            raise ConfigurationError("the database is not open")
        async with self._pool.acquire() as connection:
            try:
                yield connection
            except asyncio.CancelledError:
                # A canceled query leaves the session in doubt: it must not go back to the pool.
                connection.terminate()
                raise

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction: committed when the block ends, rolled back when it raises."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def connect_directly(self) -> asyncpg.Connection:
        """A session of its own past any pooler: for LISTEN, locks and migrations. The caller closes it."""
        return await asyncpg.connect(self.direct_url, server_settings=SESSION, timeout=10.0)

    async def now(self) -> datetime:
        """The one clock, UTC."""
        async with self.connection() as connection:
            moment: datetime = await connection.fetchval("SELECT clock_now()")
            return moment

    async def shift_clock(self, by: timedelta) -> None:
        """Move the clock of everything that uses this database; for tests and rehearsals only."""
        async with self.connection() as connection:
            await connection.execute("UPDATE clock SET shift = shift + $1", by)


async def _keep_session(connection: asyncpg.Connection) -> None:
    """Between two uses: our statements leave nothing behind in a session, so a round trip to reset it is saved."""
