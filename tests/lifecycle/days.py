"""Days to reconcile: records of scripted providers, runs, and what they found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any
from uuid import UUID

from safelight.db import reconciliation
from safelight.db.reconciliation import Run
from safelight.domain.provider import (
    Capabilities,
    Origin,
    Output,
    ProviderUpdate,
    UpdateStatus,
    UpstreamRecord,
)
from safelight.domain.task import State
from safelight.telemetry import set_fault_hook
from tests.lifecycle.upstreams import (
    Scripted,
    done,
    in_turn,
    pass_until_due,
    run_task,
)
from tests.world import World

NAME = "lab-poll"
LISTS = Capabilities(can_list=True, can_poll=True, record_retention_s=7 * 86_400.0)
OWN_TABLES = ("reconciliations", "reconciliation_records")
URL = "https://results.example/1.png"


async def day_of(world: World) -> date:
    """The day on which the first attempt was sent."""
    found: date = await world.value("SELECT (min(sent_at) AT TIME ZONE 'UTC')::date FROM attempts")
    return found


async def until_due(world: World) -> None:
    """Move the clock past the hour at which the day of the first attempt is due, and no other."""
    await world.rows(
        "UPDATE clock SET shift = shift + ($1::date + 1 + time '05:00') AT TIME ZONE 'UTC' - clock_now()",
        await day_of(world),
    )


async def go(world: World, day: date | None = None, provider: str = NAME) -> Run:
    """Reconcile one day now."""
    begun = await world.graph.reconcile.begin(provider, day or await day_of(world))
    assert begun is not None
    return await world.graph.reconcile.carry_out(begun)


async def moment(world: World) -> datetime:
    found: datetime = await world.value("SELECT min(sent_at) FROM attempts")
    return found


def update(status: UpdateStatus, **more: Any) -> ProviderUpdate:
    values = {"upstream_status": status.value, **more}
    return ProviderUpdate(status, Origin.RECONCILIATION, **values)


def record(
    ref: str, at: datetime, status: UpdateStatus = UpdateStatus.SUCCEEDED, **more: Any
) -> UpstreamRecord:
    outputs = (Output(url=URL),) if status is UpdateStatus.SUCCEEDED else ()
    told = update(status, provider_ref=ref, outputs=outputs, cost=more.pop("cost", None))
    return UpstreamRecord(ref, **{"reference": None, "created_at": at, "update": told, **more})


async def reference_of(world: World, task_id: UUID) -> str:
    return (await world.attempt(task_id)).reference


async def findings(world: World) -> list[tuple[str, Any]]:
    rows = await world.rows(
        "SELECT kind, coalesce(task_id::text, provider_ref) AS about FROM findings ORDER BY id"
    )
    return [(row["kind"], row["about"]) for row in rows]


def kinds(run: Run) -> list[str]:
    return sorted(str(line["kind"]) for line in run.findings)


def about(run: Run) -> list[tuple[str, ...]]:
    """What a report is about, line by line."""
    return sorted((str(line["kind"]), line["task_id"], line["provider_ref"]) for line in run.findings)


async def stored(world: World, provider: str, day: date) -> list[Run]:
    async with world.database.connection() as connection:
        return await reconciliation.reports(connection, provider=provider, day=day, room=10)


async def finish_one(world: World, provider: Scripted, **more: Any) -> UUID:
    """A task that was drawn and settled."""
    provider.poll_does = in_turn(done(**more))
    task_id = await run_task(world, NAME)
    await pass_until_due(world, task_id)
    await world.look(NAME)
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    return task_id


@contextmanager
def dying_at(point: str, *, time: int = 1) -> Iterator[None]:
    """Die when a fault point is reached for the n-th time."""
    left = time

    def hook(name: str) -> None:
        nonlocal left
        left -= name == point
        if name == point and left == 0:
            raise Killed(name)

    set_fault_hook(hook)
    try:
        yield
    finally:
        set_fault_hook(None)


class Killed(Exception):
    """The process is gone."""
