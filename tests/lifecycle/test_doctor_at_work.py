"""The doctor beside a running worker finds nothing; over a hundred thousand tasks its memory stays flat."""

from __future__ import annotations

import asyncio
import os
import re
import tracemalloc
from collections.abc import Callable
from typing import cast
from uuid import UUID

import asyncpg
import psutil
import pytest

from safelight.assets.store import AssetStore
from safelight.db.database import SESSION, Database
from safelight.db.statements import Statement, statements
from safelight.lifecycle.checks import CHECKS, AskedOf
from safelight.lifecycle.doctor import Books, Outcome, _values, audit_books
from tests.db.growth import BIG, TASKS, grow
from tests.world import Server, World, running_world

GROWTH_BYTES = 50_000_000
MIDDLE = {
    "after": UUID("01900000-0000-7c35-8000-00000000c350"),
    "upto": UUID("01900000-0000-7d6d-8000-00000000d6d8"),
}
"""Five thousand tasks of those that growth makes."""
BY_TASK = ("entries", "settlements", "history", "attempts", "receipts", "callbacks")


async def audited(
    database: Database, world: World | None = None, *, with_bytes: bool = True
) -> list[Outcome]:
    """What came of every check that the rows can answer."""
    assert world is not None
    books = Books(database, world.graph.context.store, sorted(world.graph.context.providers))
    return [outcome async for outcome in audit_books(books, with_bytes=with_bytes)]


async def test_a_busy_database_has_no_finding_at_any_moment(server: Server) -> None:
    knobs = {"latency_s": [0.0, 1.0], "fail": 0.2, "moderate": 0.1, "lose_answer": 0.1, "partial": 0.3}
    async with running_world(server, knobs=knobs) as world:
        worker = world.graph.worker()
        await worker.start()
        submitting = asyncio.create_task(_submit(world, 60))
        audits = 0
        try:
            while not submitting.done() or audits < 3:
                outcomes = await audited(world.database, world)
                bad = [
                    (outcome.check.name, outcome.findings, outcome.trouble)
                    for outcome in outcomes
                    if not outcome.is_ok
                ]
                assert bad == []
                audits += 1
            await submitting
        finally:
            await worker.stop()
        moved = await world.value("SELECT count(*) FROM task_events")
    assert moved > 150


async def _submit(world: World, tasks: int) -> None:
    for number in range(tasks):
        await world.submit(("lab-poll", "lab-sync")[number % 2], n=1 + number % 2)
        await asyncio.sleep(0.05)


@pytest.fixture
async def grown(server: Server) -> str:
    """A database with a hundred thousand tasks; what growth leaves out of a task is a finding."""
    url = await server.clone()
    connection = await asyncpg.connect(url, server_settings={**SESSION, "statement_timeout": "120s"})
    await grow(connection, url)
    await connection.close()
    return url


async def read_whole(database: Database) -> dict[str, set[str]]:
    """Which tables a range in the middle would be looked for from one end to the other, by check."""
    found: dict[str, set[str]] = {}
    values = {**_values(Books(database, cast("AssetStore", None))), **MIDDLE}
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL plan_cache_mode = 'force_custom_plan'")
        for check in CHECKS:
            if check.asked_of is AskedOf.TASKS:
                statement: Statement = getattr(statements("audit"), check.name)
                given = [values[name] for name in statement.names]
                plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {statement.sql}", *given)
                tables = set(re.findall(r'"Seq Scan",[^}]*?"Relation Name": "(\w+)"', plan)) & BIG
                if tables:
                    found[check.name] = tables
    return found


async def test_a_hundred_thousand_tasks_are_audited_in_flat_memory(
    server: Server, grown: str, record_property: Callable[[str, object], None]
) -> None:
    database = Database(grown, pool_size=2)
    await database.open()
    try:
        assert await read_whole(database) == {}
        async with running_world(server) as world:
            await audited(database, world, with_bytes=False)  # connections, prepared statements, imports
            process = psutil.Process(os.getpid())
            before = process.memory_info().rss
            tracemalloc.start()
            outcomes = await audited(database, world, with_bytes=False)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            grew = process.memory_info().rss - before
    finally:
        await database.close()
        await server.drop(grown)
    rows = {outcome.check.name: outcome.rows for outcome in outcomes}
    seconds = sum(outcome.seconds for outcome in outcomes)
    assert [rows[name] for name in BY_TASK] == [TASKS] * len(BY_TASK)
    # Every second task has no history, and a finding: tens of thousands of them are counted, not kept.
    by_name = {outcome.check.name: outcome for outcome in outcomes}
    assert by_name["history"].more > 40_000
    assert len(by_name["history"].findings) == 20
    assert all(outcome.trouble == "" for outcome in outcomes)
    assert peak < GROWTH_BYTES / 5
    assert grew < GROWTH_BYTES
    record_property("seconds", round(seconds, 1))
    record_property("peak_bytes", peak)
