"""The sync shape: one call that draws and answers with the pictures; keys make it repeatable."""

import base64

from aiohttp import web

from safelight.lab.answers import answer, withhold
from safelight.lab.books import Books
from safelight.lab.job import Job
from safelight.lab.painter import Painter
from safelight.lab.records import failure_of
from safelight.lab.refusal import Refusal
from safelight.lab.studio import Studio
from safelight.lab.submits import Submit, read_submit

_STATUS = {"failed": 500, "blocked": 400, "invalid_request": 400}


class SyncShape:
    """POST /sync/v1/images"""

    def __init__(self, *, studio: Studio, books: Books, painter: Painter) -> None:
        self._studio = studio
        self._books = books
        self._painter = painter

    async def submit(self, request: web.Request) -> web.StreamResponse:
        """Draw and answer; a key that is known gets the stored answer."""
        submit = read_submit(await request.read(), "sync")
        submit.key = request.headers.get("Idempotency-Key")
        job = self._known(submit)
        if job is None:
            job = await self._studio.accept(submit)
            if await withhold(request, job, self._studio):
                return web.Response()
        await job.ended.wait()
        return await self._answer(job)

    def _known(self, submit: Submit) -> Job | None:
        job = self._books.keys.get(submit.key) if submit.key is not None else None
        if job is not None and job.fingerprint != submit.fingerprint:
            raise Refusal(409, "idempotency_conflict", "this key was used with another body")
        return job

    async def _answer(self, job: Job) -> web.Response:
        failure = failure_of(job)
        if failure is not None:
            raise Refusal(_STATUS[job.status], *failure)
        pictures = [await self._painter.picture(job, index) for index in range(job.delivered)]
        return answer(
            {
                "id": job.id,
                "reference": job.reference,
                "status": job.status,
                "images": [{"b64": base64.b64encode(picture).decode()} for picture in pictures],
                "cost": job.cost,
                "run_s": job.fate.latency_s,
            }
        )
