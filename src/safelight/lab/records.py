"""Records: a job as polls, lists and notices show it."""

import time
from typing import Any

from safelight.lab.job import Job
from safelight.lab.results import Results

DREAMING_LOOKS = 2
_ERRORS = {
    "failed": {"code": "generation_failed", "message": "the picture could not be drawn"},
    "blocked": {"code": "content_blocked", "message": "the prompt was refused by moderation"},
    "invalid_request": {"code": "invalid_request", "message": "the prompt cannot be drawn"},
}


class Records:
    """Renders jobs; every rendering has fresh result URLs."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def look(self, job: Job, position: int | None) -> dict[str, Any]:
        """The record as a poll sees it; an unknown status shows in the first looks."""
        job.looks += 1
        if job.fate.is_dreaming and job.looks <= DREAMING_LOOKS:
            return self._open_record(job, "dreaming", position)
        return self.record(job, position)

    def record(self, job: Job, position: int | None = None) -> dict[str, Any]:
        """The record as it is now."""
        if job.finished_at is None:
            return self._open_record(job, job.status, position)
        return {
            "id": job.id,
            "reference": job.reference,
            "status": job.status,
            "progress": 100 if job.status == "done" else _progress(job, job.finished_at),
            "position": None,
            "images": [{"url": url} for url in self._results.urls(job)],
            "error": _ERRORS.get(job.status),
            "cost": job.cost,
            "run_s": None if job.status == "canceled" else job.fate.latency_s,
            "created_at": job.created_at,
            "finished_at": job.finished_at,
        }

    def running_notice(self, job: Job) -> dict[str, Any]:
        """What the notice at the start of drawing says."""
        return self._open_record(job, "dreaming" if job.fate.is_dreaming else "running", None)

    def forged_notice(self, job: Job) -> dict[str, Any]:
        """What a stranger would say who wants the job to look failed."""
        record = self._open_record(job, "failed", None)
        return record | {"error": _ERRORS["failed"], "finished_at": time.time()}

    def _open_record(self, job: Job, status: str, position: int | None) -> dict[str, Any]:
        return {
            "id": job.id,
            "reference": job.reference,
            "status": status,
            "progress": _progress(job, time.time()),
            "position": position,
            "images": [],
            "error": None,
            "cost": 0,
            "run_s": None,
            "created_at": job.created_at,
            "finished_at": None,
        }


def failure_of(job: Job) -> tuple[str, str] | None:
    """Code and message of a job that ended badly."""
    error = _ERRORS.get(job.status)
    return None if error is None else (error["code"], error["message"])


def _progress(job: Job, at: float) -> int:
    if at <= job.starts_at:
        return 0
    return min(99, int(100 * (at - job.starts_at) / (job.fate.latency_s or 0.001)))
