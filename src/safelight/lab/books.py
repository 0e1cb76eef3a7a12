"""The books in memory: every job by id, reference, key and order of acceptance, and the totals."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from safelight.lab.job import Job

_WEIGHT = {"done": 2, "queued": 1, "running": 1}


class Books:
    """What the lab has accepted and billed; rebuilt from the ledger at start."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.keys: dict[str, Job] = {}
        self.accepted = 0
        self.billed = 0
        self.polls = 0
        self.strays = 0
        self._references: dict[tuple[str, str], list[Job]] = {}
        self._line_ups: dict[str, list[Job]] = {}

    def replay(self, lines: Iterable[dict[str, Any]]) -> None:
        """Rebuild the books from the ledger's lines."""
        for line in lines:
            if line["event"] == "accepted":
                self.enter(Job.from_line(line))
            elif line["event"] == "ended":
                self.end(self.jobs[line["id"]], line["status"], line["at"])
            else:
                self.jobs[line["id"]].is_told = True

    def enter(self, job: Job) -> None:
        """Take in an accepted job."""
        self.accepted += 1
        self.jobs[job.id] = job
        self._references.setdefault((job.dialect, job.reference), []).append(job)
        line_up = self._line_ups.setdefault(job.line_up, [])
        job.place = len(line_up)
        line_up.append(job)
        if job.key is not None:
            self.keys[job.key] = job

    def end(self, job: Job, status: str, at: float) -> None:
        """Close a job and bill what it delivered."""
        job.end(status, at)
        self.billed += job.cost

    def find(self, line_up: str, reference: str) -> list[Job]:
        """The jobs of one shape or dialect with this reference."""
        found = (*self._references.get(("", reference), ()), *self._references.get((line_up, reference), ()))
        return [job for job in found if job.line_up == line_up]

    def line_up(self, name: str) -> Sequence[Job]:
        """All jobs of one shape or dialect in order of acceptance."""
        return self._line_ups.get(name, ())

    def page(
        self, name: str, *, since: float, until: float, after: Job | None, limit: int
    ) -> tuple[list[Job], str | None]:
        """Jobs created in [since, until) in order of acceptance, and the id to go on after."""
        line_up = self.line_up(name)
        low = bisect_left(line_up, since, key=_created_at)
        high = bisect_left(line_up, until, key=_created_at)
        if after is not None:
            low = max(low, after.place + 1)
        found = list(line_up[low : min(high, low + limit)])
        return found, found[-1].id if found and low + limit < high else None

    def items(self, last: int | None = None) -> list[dict[str, Any]]:
        """One item a reference, for the witness route; or only the last so many, by their first acceptance."""
        found = list(islice(reversed(self._references.values()), last))
        return [_item(jobs) for jobs in reversed(found)]


def _created_at(job: Job) -> float:
    return job.created_at


def _item(jobs: list[Job]) -> dict[str, Any]:
    telling = max(jobs, key=lambda job: _WEIGHT.get(job.status, 0))
    item: dict[str, Any] = {
        "reference": telling.reference,
        "shape": telling.shape,
        "times_accepted": len(jobs),
        "outcome": "open" if telling.finished_at is None else telling.status,
        "billed": sum(job.cost for job in jobs),
        "accepted_at": jobs[0].created_at,
        "done_at": telling.finished_at,
    }
    return item | _spoken(jobs, telling) if telling.dialect else item


def _spoken(jobs: list[Job], telling: Job) -> dict[str, Any]:
    path = urlsplit(telling.callback_url or "").path
    return {
        "dialect": telling.dialect,
        "ids": [job.id for job in jobs],
        "model": telling.model,
        "operation": telling.operation,
        "prompt": telling.prompt,
        "n": telling.n,
        "size": f"{telling.width}x{telling.height}",
        "inputs": list(telling.inputs),
        "mask": telling.mask,
        "details": telling.details,
        "given": telling.given,
        "is_told": telling.is_told,
        "callback_token": path.rpartition("/")[2] or None,
    }
