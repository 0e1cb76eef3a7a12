"""The service is killed in mid-flight: nothing is lost, nothing is generated twice, the books agree."""

from __future__ import annotations

import asyncio
import os
import signal

from safelight.cli.rehearsal.plan import Fault, Plan
from safelight.cli.rehearsal.run import rehearse
from safelight.lifecycle.checks import CHECKS
from tests.acceptance.installed import Installed


async def test_killed_again_and_again_every_task_still_ends_and_three_books_agree() -> None:
    faults = (Fault.KILLS, Fault.CALLBACKS, Fault.ENDINGS)
    plan = Plan(minutes=0.5, tasks=60, rate=3.0, faults=faults, seed=7, gap_s=(1.0, 3.0))
    report = await rehearse(plan, lambda _: None)
    assert report.reasons == []
    assert report.faults["kills"] >= 1
    assert sum(report.starts.values()) > 3
    assert len(report.receipts.ids) == 60
    assert report.found.states["succeeded"] >= 30
    assert {outcome.check.name for outcome in report.found.outcomes} == {check.name for check in CHECKS}


async def test_a_killed_database_server_comes_back_by_itself(service: Installed) -> None:
    postmaster = int((service.data_dir / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])
    os.kill(postmaster, signal.SIGKILL)
    done = await asyncio.to_thread(service.run, "submit", "a boat at sea", "--size", "64x64", "--wait")
    assert done.returncode == 0, done.stderr
    doctor = await asyncio.to_thread(service.run, "doctor")
    assert doctor.returncode == 0, doctor.stdout
