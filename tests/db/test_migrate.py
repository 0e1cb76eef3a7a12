"""Migrations: any number of times, from any number of processes, whatever the environment says."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import asyncpg
import pytest

from safelight.db.database import SESSION, Database
from safelight.db.installation import check_secret, is_current
from safelight.db.migrate import migrate, revisions
from safelight.errors import ConfigurationError, SafelightError
from tests.db.processes import talking
from tests.world import Server

LATEST = revisions()[-1]
MIGRATING = """
    import asyncio, sys
    from safelight.db.migrate import migrate
    print("ready", flush=True)
    sys.stdin.readline()
    print(asyncio.run(migrate(sys.argv[1])), flush=True)
"""
JUNK = {
    "CHANNEL": "ch_of_somebody_else",
    "DURABILITY": "volatile",
    "QUEUE_TABLE": "another_table",
    "QUEUE_TABLE_LOG": "another_log",
    "SCHEDULES_TABLE": "another_schedule",
    "STATISTICS_TABLE": "another_statistic",
    "FUNCTION": "another_function",
    "TRIGGER": "another_trigger",
    "QUEUE_STATUS_TYPE": "another_type",
    "PREFIX": "junk_",
    "DB_SCHEMA": "another_schema",
    "PGQUEUER_PREFIX": "junk_",
    "PGSCHEMA": "another_schema",
}
OBJECTS = """
    SELECT 'relation', namespace.nspname, relname::text, relkind::text || relpersistence::text
    FROM pg_class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE namespace.nspname !~ '^pg_|^information_schema$'
    UNION ALL SELECT 'column', table_schema, table_name || '.' || column_name, data_type || coalesce(column_default, '')
    FROM information_schema.columns WHERE table_schema !~ '^pg_|^information_schema$'
    UNION ALL SELECT 'function', namespace.nspname, proname::text, prosrc
    FROM pg_proc JOIN pg_namespace AS namespace ON namespace.oid = pronamespace
    WHERE namespace.nspname !~ '^pg_|^information_schema$'
    UNION ALL SELECT 'trigger', relnamespace::regnamespace::text, tgname::text, pg_get_triggerdef(pg_trigger.oid)
    FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal
    UNION ALL SELECT 'rule', connamespace::regnamespace::text, conname::text, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace::regnamespace::text !~ '^pg_|^information_schema$'
    UNION ALL SELECT 'type', typnamespace::regnamespace::text, typname::text, typtype::text
    FROM pg_type WHERE typnamespace::regnamespace::text !~ '^pg_|^information_schema$' AND typname !~ '^_'
"""


async def objects(url: str) -> set[tuple[str, ...]]:
    """Everything that a migration makes."""
    connection = await asyncpg.connect(url, server_settings={"search_path": "pg_catalog"})
    try:
        return {tuple(row) for row in await connection.fetch(OBJECTS)}
    finally:
        await connection.close()


async def test_migrating_twice_changes_nothing(empty_url: str) -> None:
    revision = await migrate(empty_url)
    once = await objects(empty_url)
    assert await migrate(empty_url) == revision == LATEST
    assert await objects(empty_url) == once
    assert {schema for _, schema, *_ in once} == {"safelight", "pgqueuer"}


async def test_migrating_keeps_every_row(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute("INSERT INTO gates (name) VALUES ('lab')")
        await connection.execute(
            "INSERT INTO pgqueuer.pgqueuer (priority, entrypoint, payload, status, created, updated)"
            "VALUES (0, 'submit', 'lab', 'queued', clock_now(), clock_now())"
        )
    await migrate(database.url)
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM gates") == 1
        assert await connection.fetchval("SELECT count(*) FROM pgqueuer.pgqueuer") == 1


async def test_four_processes_may_migrate_at_once(empty_url: str, database: Database) -> None:
    async with AsyncExitStack() as stack:
        talkers = [await stack.enter_async_context(talking(MIGRATING, empty_url)) for _ in range(4)]
        assert [await talker.line() for talker in talkers] == ["ready"] * 4
        await asyncio.gather(*(talker.say("go") for talker in talkers))
        assert await asyncio.gather(*(talker.line() for talker in talkers)) == [LATEST] * 4
        for talker in talkers:
            await talker.end()
    assert await objects(empty_url) == await objects(database.url)


async def test_the_queue_lies_in_its_own_schema_and_is_durable(database: Database) -> None:
    async with database.connection() as connection:
        tables = await connection.fetch(
            "SELECT relname, relpersistence::text FROM pg_class"
            " WHERE relnamespace = 'pgqueuer'::regnamespace AND relkind = 'r' ORDER BY relname"
        )
        ours = await connection.fetchval(
            "SELECT count(*) FROM pg_class WHERE relnamespace <> 'pgqueuer'::regnamespace AND relname ~ 'pgqueuer'"
        )
    assert {row["relname"] for row in tables} >= {
        "pgqueuer",
        "pgqueuer_log",
        "pgqueuer_schedules",
        "pgqueuer_statistics",
    }
    durable = {row["relname"]: row["relpersistence"] for row in tables}
    assert durable["pgqueuer"] == durable["pgqueuer_schedules"] == "p"
    assert ours == 0


async def test_names_in_the_environment_that_others_use_change_nothing(
    empty_url: str, database: Database
) -> None:
    async with talking(MIGRATING, empty_url, environ=JUNK) as talker:
        assert await talker.line() == "ready"
        await talker.say("go")
        assert await talker.line() == LATEST
        await talker.end()
    assert await objects(empty_url) == await objects(database.url)


async def test_a_value_in_the_environment_that_makes_no_sense_changes_nothing(
    empty_url: str, database: Database
) -> None:
    async with talking(MIGRATING, empty_url, environ={"DURABILITY": "junk", "CHANNEL": "a b"}) as talker:
        assert await talker.line() == "ready"
        await talker.say("go")
        assert await talker.line() == LATEST
        await talker.end()
    assert await objects(empty_url) == await objects(database.url)


async def test_a_database_of_a_newer_version_is_refused_and_left_alone(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = await objects(database.url)
    with pytest.raises(ConfigurationError, match=r"is at 9999, which .* does not know") as caught:
        await migrate(database.url)
    assert not isinstance(caught.value, SafelightError)
    assert await objects(database.url) == before
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT version_num FROM alembic_version") == "9999"


async def test_a_migration_that_was_refused_leaves_no_lock_behind(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute("UPDATE alembic_version SET version_num = '9999'")
    for _ in range(2):
        with pytest.raises(ConfigurationError):
            await migrate(database.url)
    async with database.connection() as connection:
        await connection.execute("UPDATE alembic_version SET version_num = $1", LATEST)
    async with asyncio.timeout(60):
        assert await migrate(database.url) == LATEST


async def test_a_schema_that_is_half_there_is_a_plain_error(empty_url: str) -> None:
    """The first revision is one transaction: what broke it leaves nothing behind."""
    connection = await asyncpg.connect(empty_url)
    await connection.execute("CREATE SCHEMA safelight; CREATE TABLE safelight.gates (name text)")
    with pytest.raises(Exception, match="gates"):
        await migrate(empty_url)
    assert await connection.fetchval("SELECT to_regclass('safelight.tasks') IS NULL")
    await connection.execute("DROP TABLE safelight.gates")
    assert await migrate(empty_url) == LATEST
    await connection.close()


async def test_a_database_belongs_to_one_secret_key(database: Database) -> None:
    await check_secret(database, b"the first secret key of this installation")
    await check_secret(database, b"the first secret key of this installation")
    with pytest.raises(ConfigurationError, match="belongs to another SAFELIGHT_SECRET_KEY") as caught:
        await check_secret(database, b"another secret key, that opens nothing here")
    assert "first secret" not in str(caught.value)
    assert "another secret key" not in str(caught.value)
    await check_secret(database, b"the first secret key of this installation")


async def test_two_first_starts_with_two_keys_leave_one(database: Database) -> None:
    keys = [f"secret key number {number} of those that race".encode() for number in range(4)]
    results = await asyncio.gather(*(check_secret(database, key) for key in keys), return_exceptions=True)
    assert sum(result is None for result in results) == 1
    assert sum(isinstance(result, ConfigurationError) for result in results) == 3


async def test_a_database_knows_whether_it_is_current(database: Database, empty_url: str) -> None:
    assert await is_current(database, LATEST)
    assert not await is_current(database, "0001")
    empty = Database(empty_url, pool_size=2)
    await empty.open()
    assert not await is_current(empty, LATEST)
    await empty.close()
    with pytest.raises(ConfigurationError):
        await is_current(empty, LATEST)


async def test_a_database_that_is_not_there_is_a_configuration_error(server: Server) -> None:
    url = await server.clone()
    await server.drop(url)
    with pytest.raises(ConfigurationError, match="cannot connect to the database"):
        await Database(url).open()


async def test_every_session_commits_durably_and_waits_for_nothing_for_ever(database: Database) -> None:
    async with database.connection() as connection:
        for name in ("synchronous_commit", "statement_timeout", "lock_timeout"):
            assert await connection.fetchval(f"SHOW {name}") == SESSION[name]
        assert await connection.fetchval("SHOW fsync") == "on"
        assert await connection.fetchval("SHOW timezone") == "UTC"
        assert await connection.fetchval("SHOW search_path") == "safelight"
