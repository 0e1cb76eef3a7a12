"""Named statements: each is understood by the database, and is called by its parameters' names."""

from __future__ import annotations

import json
import re

import asyncpg
import pytest

from safelight.db.database import Database
from safelight.db.statements import SQL_FOLDER, Statement, statements
from safelight.db.tasks import as_json

FILES = sorted(path.stem for path in SQL_FOLDER.glob("*.sql"))
EVERY = [(file, name) for file in FILES for name in statements(file).names()]


def statement(file: str, name: str) -> Statement:
    found: Statement = getattr(statements(file), name)
    return found


async def test_every_statement_can_be_prepared_and_planned(database: Database) -> None:
    faults = []
    async with database.connection() as connection:
        for file, name in EVERY:
            found = statement(file, name)
            try:
                prepared = await connection.prepare(found.sql)
                await connection.fetch(f"EXPLAIN {found.sql}", *[None] * len(prepared.get_parameters()))
            except asyncpg.PostgresError as error:
                faults.append(f"{file}.{name}: {error}")
                continue
            if len(prepared.get_parameters()) != len(found.names):
                faults.append(f"{file}.{name}: {prepared.get_parameters()} for {found.names}")
    assert faults == []


def test_every_statement_of_every_file_is_found() -> None:
    for file in FILES:
        written = re.findall(r"^-- name: (\w+)", (SQL_FOLDER / f"{file}.sql").read_text(), re.MULTILINE)
        assert written, file
        assert statements(file).names() == sorted(written)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="none"),
        pytest.param({"name": "lab", "colour": "red"}, id="one too many"),
        pytest.param({"colour": "red"}, id="another one instead"),
    ],
)
async def test_an_unknown_or_missing_parameter_is_a_type_error(
    database: Database, values: dict[str, str]
) -> None:
    found = statement("gates", "lock_gate")
    async with database.connection() as connection:
        for call in (found.rows, found.row, found.value, found.run):
            with pytest.raises(TypeError, match="lock_gate"):
                await call(connection, **values)


def test_an_unknown_statement_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="paint_red"):
        statements("tasks").paint_red  # noqa: B018 - the look-up itself is what fails


async def test_parameters_arrive_by_name_whatever_their_order(database: Database) -> None:
    found = statement("gates", "close_gate")
    async with database.connection() as connection:
        await found.run(connection, failures=2, reason="rate_limited", for_s=60.0, name="lab")
        row = await statement("gates", "lock_gate").row(connection, name="lab")
    assert row is not None
    assert (row["is_closed"], row["failures"], row["reason"]) == (True, 2, "rate_limited")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("a\0b", "a\ufffdb"),
        ("\\\0", "\\\ufffd"),
        ("\\u0000", "\\u0000"),
        ("\\\\u0000\0", "\\\\u0000\ufffd"),
        ("half \ud800 a pair \udc00", "half ? a pair ?"),
        ("“鞋” 👟\n", "“鞋” 👟\n"),
    ],
)
async def test_what_no_letter_stands_for_is_replaced_and_all_else_stays(
    database: Database, said: str, kept: str
) -> None:
    async with database.connection() as connection:
        text = await connection.fetchval(
            "SELECT ($1::text::jsonb -> 0 -> 'told')::text", as_json([{"told": said}])
        )
    assert json.loads(text) == kept
