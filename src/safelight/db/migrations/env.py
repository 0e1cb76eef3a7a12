"""Alembic's entry: runs the revisions over asyncpg in one transaction."""

import asyncio

import asyncpg
from alembic import context
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool


def _run(connection: Connection) -> None:
    context.configure(connection=connection, version_table_schema="safelight", transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


async def _main() -> None:
    url = context.config.attributes["url"]
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=lambda: asyncpg.connect(url, server_settings={"search_path": "safelight"}),
        poolclass=NullPool,
    )
    async with engine.connect() as connection:
        await connection.run_sync(_run)
        await connection.commit()
    await engine.dispose()


asyncio.run(_main())
