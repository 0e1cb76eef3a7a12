"""The poll and callback shapes: a submit answered with an id, then polls, lists and cancels."""

from math import isnan

from aiohttp import web

from safelight.lab.answers import answer, withhold
from safelight.lab.books import Books
from safelight.lab.job import Job
from safelight.lab.records import Records
from safelight.lab.refusal import Refusal, invalid, not_found
from safelight.lab.studio import Studio
from safelight.lab.submits import read_submit

_WINDOW = frozenset({"since", "until", "after", "limit"})
_PAGE, _PAGE_MOST = 100, 1000


class JobsShape:
    """/{poll,callback}/v1/jobs; only the poll shape can look up by reference."""

    def __init__(self, shape: str, *, studio: Studio, books: Books, records: Records) -> None:
        self._shape = shape
        self._accepted_status = 201 if shape == "callback" else 202
        self._studio = studio
        self._books = books
        self._records = records

    async def submit(self, request: web.Request) -> web.StreamResponse:
        """POST: every submit is a new job."""
        submit = read_submit(await request.read(), self._shape)
        job = await self._studio.accept(submit)
        if await withhold(request, job, self._studio):
            return web.Response()
        return answer({"id": job.id, "status": "queued"}, self._accepted_status)

    async def read(self, request: web.Request) -> web.StreamResponse:
        """GET one: the record."""
        self._books.polls += 1
        job = self._find(request.match_info["id"])
        return answer(self._records.look(job, self._studio.position(job)))

    async def list(self, request: web.Request) -> web.StreamResponse:
        """GET many: by reference where the shape has it, else by window."""
        query = request.query
        if self._shape == "poll" and set(query) == {"reference"}:
            self._books.polls += 1
            found = self._books.find(self._shape, query["reference"])
            return answer({"jobs": [self._records.look(job, self._studio.position(job)) for job in found]})
        if unknown := set(query) - _WINDOW:
            raise invalid(f"cannot list by {sorted(unknown)[0]}")
        after = query.get("after")
        jobs, next_id = self._books.page(
            self._shape,
            since=_moment(query.get("since"), float("-inf")),
            until=_moment(query.get("until"), float("inf")),
            after=self._find(after) if after else None,
            limit=_limit(query.get("limit")),
        )
        records = [self._records.record(job, self._studio.position(job)) for job in jobs]
        return answer({"jobs": records, "next": next_id})

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        """POST cancel: only while the job is open."""
        job = self._find(request.match_info["id"])
        if not await self._studio.cancel(job):
            raise Refusal(409, "already_finished", f"the job is {job.status}")
        return answer(self._records.record(job))

    def _find(self, job_id: str) -> Job:
        job = self._books.jobs.get(job_id)
        if job is None or job.shape != self._shape:
            raise not_found(f"there is no job {job_id}")
        return job


def _moment(text: str | None, default: float) -> float:
    if not text:
        return default
    try:
        moment = float(text)
    except ValueError:
        raise invalid("since and until are unix times") from None
    if isnan(moment):
        raise invalid("since and until are unix times")
    return moment


def _limit(text: str | None) -> int:
    if not text:
        return _PAGE
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= _PAGE_MOST:
        raise invalid(f"limit must be from 1 to {_PAGE_MOST}")
    return int(text)
