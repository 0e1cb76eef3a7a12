"""The audit log: one chain without gaps, in the transaction of the change; whoever meddles is found at the row."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from unittest.mock import patch
from uuid import UUID

import asyncpg
import pytest

from safelight.db import auditlog
from safelight.db.auditlog import Chain, verify_chain, write_line
from safelight.db.database import Database
from safelight.domain.audit import NO_HASH, Actor, AuditLine

BY = Actor("admin:anna", "192.0.2.1", "request-1")


async def written(database: Database, count: int) -> None:
    """So many lines, each in a transaction of its own."""
    for number in range(1, count + 1):
        async with database.transaction() as connection:
            await write_line(connection, BY, "test.write", f"thing:{number}", detail={"number": number})


async def verified(database: Database) -> Chain:
    async with database.connection() as connection:
        return await verify_chain(connection)


async def meddle(database: Database, statement: str) -> None:
    """Change rows past every trigger, as whoever owns the database may."""
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(statement)


async def test_an_empty_log_is_whole(database: Database) -> None:
    assert await verified(database) == Chain(0, NO_HASH.hex())


async def test_lines_that_were_not_touched_are_whole_whatever_the_size_of_a_batch(database: Database) -> None:
    await written(database, 7)
    whole = await verified(database)
    assert (whole.lines, whole.broken_id, whole.fault) == (7, None, "")
    for size in (1, 3, 7):
        with patch.object(auditlog, "_BATCH", size):
            assert await verified(database) == whole


COLUMNS = {
    "actor": "actor || 'x'",
    "address": "'198.51.100.1'",
    "request_id": "request_id || ' '",
    "action": "upper(action)",
    "object": "'thing:9'",
    "account_id": "gen_random_uuid()",
    "outcome": "'refused'",
    "detail": "replace(detail, '4', '5')",
    "created_at": "created_at + interval '1 microsecond'",
    "hash": "set_byte(hash, 31, get_byte(hash, 31) # 1)",
}


@pytest.mark.parametrize("column", COLUMNS)
async def test_a_single_changed_byte_is_found_at_its_line(database: Database, column: str) -> None:
    await written(database, 6)
    await meddle(database, f"UPDATE audit_lines SET {column} = {COLUMNS[column]} WHERE id = 4")
    found = await verified(database)
    assert (found.lines, found.broken_id) == (3, 4)
    assert found.fault == "its hash does not cover what it says"


async def test_every_column_of_a_line_is_covered_by_its_hash(database: Database) -> None:
    async with database.connection() as connection:
        rows = await connection.fetch(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'audit_lines'::regclass AND attnum > 0"
        )
    assert {row["attname"] for row in rows} == COLUMNS.keys() | {"id"}


@pytest.mark.parametrize(
    ("statement", "broken_id", "fault"),
    [
        ("DELETE FROM audit_lines WHERE id = 4", 4, "the line is missing"),
        ("DELETE FROM audit_lines WHERE id = 1", 1, "the line is missing"),
        ("DELETE FROM audit_lines WHERE id >= 5", 5, "the line is missing"),
        ("DELETE FROM audit_lines", 1, "the line is missing"),
        ("UPDATE audit_lines SET id = id + 10 WHERE id >= 5", 5, "the line is missing"),
        ("DELETE FROM audit_head", 1, "the head of the log is gone"),
        ("UPDATE audit_head SET hash = decode(repeat('ab', 32), 'hex')", 6, "the head names another hash"),
        (
            (
                "UPDATE audit_lines AS one SET object = other.object FROM audit_lines AS other"
                " WHERE one.id + other.id = 7 AND one.id IN (3, 4)"
            ),
            3,
            "its hash does not cover what it says",
        ),
        (
            (
                "DELETE FROM audit_lines WHERE id = 6;"
                "UPDATE audit_head SET id = 5, hash = decode(repeat('00', 32), 'hex')"
            ),
            5,
            "the head names another hash",
        ),
    ],
)
async def test_lines_that_are_gone_moved_or_cut_off_are_noticed(
    database: Database, statement: str, broken_id: int, fault: str
) -> None:
    await written(database, 6)
    await meddle(database, statement)
    found = await verified(database)
    assert (found.broken_id, found.fault) == (broken_id, fault)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_lines SET outcome = 'refused'",
        "DELETE FROM audit_lines",
        "TRUNCATE audit_lines",
        "UPDATE audit_head SET id = id + 2",
        "UPDATE audit_head SET id = id - 1",
        "DELETE FROM audit_head",
    ],
)
async def test_the_database_itself_lets_nobody_change_a_line(database: Database, statement: str) -> None:
    await written(database, 2)
    async with database.connection() as connection:
        with pytest.raises(asyncpg.RestrictViolationError):
            await connection.execute(statement)


async def test_a_change_that_is_rolled_back_leaves_neither_line_nor_gap(database: Database) -> None:
    await written(database, 1)

    async def change_and_break() -> None:
        async with database.transaction() as connection:
            await write_line(connection, BY, "test.write", "thing:gone")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await change_and_break()
    await written(database, 1)
    assert (await verified(database)).lines == 2


async def test_writers_at_once_make_one_chain(database: Database) -> None:
    await asyncio.gather(*(written(database, 5) for _ in range(6)))
    whole = await verified(database)
    assert (whole.lines, whole.broken_id) == (30, None)


async def test_lines_added_during_a_check_do_not_break_it(database: Database) -> None:
    await written(database, 4)
    with patch.object(auditlog, "_BATCH", 1):
        found, _ = await asyncio.gather(verified(database), written(database, 6))
    assert found.broken_id is None
    assert 4 <= found.lines <= 10


async def test_text_that_no_database_takes_is_kept_as_far_as_it_can_be(database: Database) -> None:
    async with database.transaction() as connection:
        await write_line(
            connection, Actor("os:a\0b"), "test.write", "thing:\ud800", detail={"note": "\0 é \ud800"}
        )
    assert (await verified(database)).lines == 1
    async with database.connection() as connection:
        row = await connection.fetchrow("SELECT actor, object FROM audit_lines")
    assert row is not None
    assert tuple(row) == ("os:a\ufffdb", "thing:?")


def line(**other: object) -> AuditLine:
    values: dict[str, object] = {
        "id": 1,
        "actor": "a",
        "address": "",
        "request_id": "",
        "action": "b",
        "object": "",
        "account_id": None,
        "outcome": "done",
        "detail": "{}",
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return AuditLine(**{**values, **other})  # type: ignore[arg-type]  # a mixed dictionary


def test_fields_cannot_be_shifted_into_each_other() -> None:
    one = line(actor="ab", address="c").hash_after(NO_HASH)
    assert line(actor="a", address="bc").hash_after(NO_HASH) != one
    assert line(actor='ab","c', address="").hash_after(NO_HASH) != one
    assert line(account_id=UUID(int=0)).hash_after(NO_HASH) != line().hash_after(NO_HASH)
    assert line().hash_after(one) != line().hash_after(NO_HASH)


def test_the_form_of_a_hash_never_changes() -> None:
    """A log of years must still be right: this value was computed once and for all."""
    assert (
        line().hash_after(NO_HASH).hex() == "3c77d25c4d129667811d7c9d49eb116f89a9bed5b1e25ac2d5e7e570b9f6541c"
    )
