"""A database of a million tasks: statements still go by their indexes, and cost as many blocks as one of a few."""

from __future__ import annotations

from uuid import UUID

import asyncpg

from safelight.db.database import SESSION
from tests.db.growth import Grown, grow
from tests.db.test_plans import (
    BOUNDS,
    INTENDED,
    RANGE_BLOCKS,
    RANGED,
    asked_of_a_range,
    carried_out,
    named,
    plan_of,
    values_of,
)
from tests.proof.report import LayerReport, Size
from tests.world import Server, running_server

TASKS = {Size.CI: 100_000, Size.PROVE: 1_000_000, Size.RELEASE: 10_000_000}
PATIENCE = "3600s"


async def run(size: Size, seed: int) -> LayerReport:
    """Grow it once, then look at every plan and at every cost."""
    report = LayerReport("growth", seed)
    async with running_server(is_large=True) as server:
        grown = await _grown(server, TASKS[size])
        connection = await asyncpg.connect(grown.url, server_settings=SESSION)
        try:
            await _plans(connection, grown, report)
            await _costs(connection, grown, report)
            await _ranges(connection, grown, report)
        finally:
            await connection.close()
    report.figures = {"tasks": TASKS[size], **report.figures}
    return report


STAND_INS = {"tasks_pkey": "tasks_to_copy"}
"""An index of the few open rows, which may be gone through in place of the key where that is shorter."""


async def _grown(server: Server, tasks: int) -> Grown:
    url = await server.clone()
    settings = {**SESSION, "statement_timeout": PATIENCE, "maintenance_work_mem": "256MB"}
    connection = await asyncpg.connect(url, server_settings=settings, command_timeout=None)
    try:
        return await grow(connection, url, tasks=tasks)
    finally:
        await connection.close()


async def _plans(connection: asyncpg.Connection, grown: Grown, report: LayerReport) -> None:
    """No statement of the daily work reads a large table whole, and each goes by the index made for it."""
    values = values_of(grown)
    for name, intended in INTENDED:
        statement, known = named(name, values)
        for is_generic in (False, True):
            report.tried += 1
            plan = await plan_of(connection, statement, known, is_generic=is_generic)
            if is_generic:
                await connection.execute("DEALLOCATE kept; RESET plan_cache_mode")
            if plan.read_whole:
                report.failures.append(f"{name} reads {sorted(plan.read_whole)} whole")
            if missing := {name for name in intended if not plan.indexes & {name, STAND_INS.get(name)}}:
                report.failures.append(f"{name} does not go by {sorted(missing)} but {sorted(plan.indexes)}")
    report.figures["statements"] = len(INTENDED)


async def _costs(connection: asyncpg.Connection, grown: Grown, report: LayerReport) -> None:
    """Claims, looks, moves and lists touch as many blocks as with a hundred thousand tasks at most."""
    values, worst = values_of(grown), 0
    for name, other, bound in BOUNDS:
        report.tried += 1
        statement, known = named(name, values)
        blocks = (await carried_out(connection, statement, {**known, **other})).blocks
        worst = max(worst, blocks)
        if blocks > bound:
            report.failures.append(f"{name} touches {blocks} blocks, and may {bound}")
    report.figures["most blocks"] = worst


async def _ranges(connection: asyncpg.Connection, grown: Grown, report: LayerReport) -> None:
    """Each question of the doctor touches what one range needs, in the middle as at the end."""
    middle = await connection.fetchval(
        "SELECT id FROM tasks ORDER BY id OFFSET (SELECT count(*) / 2 FROM tasks) LIMIT 1"
    )
    worst = ("", 0)
    for question in RANGED:
        for after in (middle, UUID(grown.samples["running"][-1])):
            report.tried += 1
            blocks = (await asked_of_a_range(connection, question, after)).blocks
            worst = max(worst, (question, blocks), key=lambda one: one[1])
            if blocks > RANGE_BLOCKS:
                report.failures.append(f"{question} touches {blocks} blocks for one range")
    report.figures["most blocks of a range"] = f"{worst[1]} ({worst[0]})"
