"""Reconciliation from the field: where one day ends and the next begins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from uuid import UUID

import pytest

from safelight.domain.provider import Capabilities, Origin, ProviderUpdate, UpdateStatus, UpstreamRecord
from tests.field.scene import Scene
from tests.lifecycle.upstreams import Scripted, install, pages, ref_of, run_task

POLLED = "lab-poll"
LISTS = Capabilities(can_list=True, can_poll=True, record_retention_s=7 * 86_400.0)
PACIFIC = timezone(timedelta(hours=-8))


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process whose own zone is eight hours before UTC."""
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def attempts_of(scene: Scene, day: date) -> int:
    """How many attempts a day's reconciliation compares."""
    begun = await scene.world.graph.reconcile.begin(POLLED, day)
    assert begun is not None
    run = await scene.world.graph.reconcile.carry_out(begun)
    return run.counts.get("attempts", 0)


@pytest.mark.usefixtures("far_east")
async def test_J02_every_attempt_belongs_to_exactly_one_day(scene: Scene) -> None:
    provider = install(scene.world, Scripted(POLLED, LISTS))
    midnight = datetime.combine(
        (await scene.world.database.now()).date() - timedelta(days=3), datetime.min.time(), UTC
    )
    last = midnight + timedelta(days=1, microseconds=-1)
    moments = {"first": midnight, "last": last, "next": midnight + timedelta(days=1)}
    tasks: dict[str, UUID] = {}
    for name, moment in moments.items():
        tasks[name] = await run_task(scene.world, POLLED)
        await scene.world.rows("UPDATE attempts SET sent_at = $2 WHERE task_id = $1", tasks[name], moment)
    records = [
        UpstreamRecord(
            ref_of(f"{tasks[name].hex}-1"),
            f"{tasks[name].hex}-1",
            moment.astimezone(PACIFIC),
            ProviderUpdate(UpdateStatus.RUNNING, Origin.RECONCILIATION, upstream_status="running"),
        )
        for name, moment in moments.items()
    ]
    provider.list_does = pages(records)
    day = midnight.date()
    assert [await attempts_of(scene, day + timedelta(days=step)) for step in (-1, 0, 1, 2)] == [0, 2, 1, 0]
    assert await scene.findings() == [], "a record at the edge is read on both days and found on neither"
