"""Opens the database of an installation: the configured one, or the embedded one started on demand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from safelight.db.database import Database
from safelight.db.migrate import migrate
from safelight.errors import ConfigurationError
from safelight.settings import Settings


async def direct_url(settings: Settings, *, must_exist: bool = False) -> str:
    """The address of the server itself, past any pooler; with `must_exist` no embedded database is made."""
    configured = settings.database_direct_url or settings.database_url
    if configured is not None:
        return configured
    if must_exist and not await asyncio.to_thread((settings.data_dir / "postgres" / "PG_VERSION").exists):
        raise ConfigurationError(
            f"there is no safelight in {settings.data_dir}: name its --data-dir, or start `safelight serve` there first"
        )
    # Only the embedded server needs its package.
    from safelight.db.embedded import start_embedded

    return await start_embedded(settings.data_dir)


@contextlib.asynccontextmanager
async def open_database(settings: Settings, *, must_exist: bool = False) -> AsyncIterator[Database]:
    """A migrated database, open inside the context.

    Raises:
        ConfigurationError: the server cannot be reached, is too old, or holds a newer schema than ours.
    """
    url = await direct_url(settings, must_exist=must_exist)
    await migrate(url)
    database = Database(settings.database_url or url, direct_url=url, pool_size=settings.database_pool)
    await database.open()
    try:
        yield database
    finally:
        await database.close()
