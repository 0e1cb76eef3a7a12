"""The service is killed in mid-flight: nothing is lost, nothing is generated twice, the books agree."""

from __future__ import annotations

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
