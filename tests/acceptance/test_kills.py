"""The service is killed in mid-flight: nothing is lost, nothing is generated twice, the books agree."""

from __future__ import annotations

import asyncio
import os
import signal

from tests.acceptance.installed import Installed
from tests.acceptance.rehearsal import rehearse


async def test_killed_three_times_every_task_still_ends_and_the_books_agree() -> None:
    knobs = {
        "callback_loss": 0.2,
        "callback_copies": 2,
        "callback_reorder": 0.3,
        "fail": 0.1,
        "moderate": 0.05,
    }
    report = await rehearse(tasks=60, kills=3, knobs=knobs, seed=7)
    assert report.kills == 3
    assert report.lost == []
    assert report.accepted_twice == []
    assert report.doctor_code == 0, report.doctor
    assert report.ready + sum(report.failed.values()) + sum(report.review.values()) == 60
    assert set(report.review) <= {"submit_uncertain"}
    assert report.available == 1000 - report.captured - report.held
    assert report.held == sum(report.review.values())
    assert report.captured == report.ready
    assert report.billed >= report.captured
    assert report.ready >= 40


async def test_a_killed_database_server_comes_back_by_itself(service: Installed) -> None:
    postmaster = int((service.data_dir / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])
    os.kill(postmaster, signal.SIGKILL)
    done = await asyncio.to_thread(service.run, "submit", "a boat at sea", "--size", "64x64", "--wait")
    assert done.returncode == 0, done.stderr
    doctor = await asyncio.to_thread(service.run, "doctor")
    assert doctor.returncode == 0, doctor.stdout
