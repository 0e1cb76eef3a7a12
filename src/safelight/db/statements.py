"""Named statements from the `.sql` files, as typed calls that return whole lists."""

from __future__ import annotations

import functools
from collections import defaultdict
from pathlib import Path
from typing import Any

import aiosql
import asyncpg
from aiosql.adapters.asyncpg import AsyncPGAdapter

SQL_FOLDER = Path(__file__).parent / "sql"

Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy


class Statement:
    """One statement with its parameters by name."""

    def __init__(self, name: str, sql: str, names: list[str]) -> None:
        self.name = name
        self.sql = sql
        self.names = names

    def _ordered(self, values: dict[str, Any]) -> list[Any]:
        if values.keys() != set(self.names):
            raise TypeError(f"{self.name} takes {self.names}, not {sorted(values)}")
        return [values[name] for name in self.names]

    async def rows(self, connection: Connection, /, **values: Any) -> list[asyncpg.Record]:
        """All rows."""
        found: list[asyncpg.Record] = await connection.fetch(self.sql, *self._ordered(values))
        return found

    async def row(self, connection: Connection, /, **values: Any) -> asyncpg.Record | None:
        """The first row, or None."""
        return await connection.fetchrow(self.sql, *self._ordered(values))

    async def value(self, connection: Connection, /, **values: Any) -> Any:
        """The first column of the first row, or None."""
        return await connection.fetchval(self.sql, *self._ordered(values))

    async def run(self, connection: Connection, /, **values: Any) -> None:
        """Execute for the effect alone."""
        await connection.execute(self.sql, *self._ordered(values))


class Statements:
    """The statements of one file, reached as attributes."""

    def __init__(self, found: dict[str, Statement]) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Statement:
        try:
            return self._found[name]
        except KeyError:
            raise AttributeError(f"no statement called {name!r}") from None

    def names(self) -> list[str]:
        """Every statement's name, sorted."""
        return sorted(self._found)


def storable(text: str) -> str:
    """What a stranger said, as PostgreSQL can keep it: a NUL or half a surrogate pair becomes a replacement."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


@functools.cache
def statements(file_name: str) -> Statements:
    """Load `sql/<file_name>.sql`."""
    adapter = _Adapter()
    queries = aiosql.from_path(SQL_FOLDER / f"{file_name}.sql", lambda: adapter, mandatory_parameters=False)
    names = [name for name in queries.available_queries if not name.endswith("_cursor")]
    return Statements(
        {name: Statement(name, getattr(queries, name).sql, adapter.var_sorted[name]) for name in names}
    )


class _Adapter(AsyncPGAdapter):
    """aiosql's own translation of `:name` to `$1`; running the statement is ours."""

    def __init__(self) -> None:
        self.var_sorted: defaultdict[str, list[str]] = defaultdict(list)
