"""Result URLs: signed ids that carry their own expiry, and how downloads misbehave."""

import asyncio
import base64
import binascii
import hmac
import time
from itertools import count
from random import Random

from aiohttp import web

from safelight.lab.books import Books
from safelight.lab.job import Job
from safelight.lab.painter import Painter
from safelight.lab.refusal import Refusal, not_found

HTML = "<!doctype html><title>Just a moment…</title><h1>Checking your browser</h1>"
SLOW_GAP_S = 1.0
_MAC_BYTES = 12


class Results:
    """Makes result URLs and serves them.

    The id says everything (job, index, expiry, under a MAC), so that rendering a record a million times
    keeps nothing in memory and a restart forgets no URL.
    """

    def __init__(self, *, books: Books, painter: Painter, random: Random, secret: str) -> None:
        self.base = ""
        self._books = books
        self._painter = painter
        self._random = random
        self._numbers = count(time.time_ns())
        self._secret = b"results:" + secret.encode()

    def urls(self, job: Job, *, life_s: float | None = None, since: float | None = None) -> list[str]:
        """Fresh URLs of a finished job, valid for its upstream's `life_s` from `since` or else from now on."""
        life_s = life_s if job.fate.expire_result_s is None else job.fate.expire_result_s
        until = "" if life_s is None else repr((time.time() if since is None else since) + life_s)
        return [self._url(job, index, until) for index in range(job.delivered)]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """GET /results/{id}"""
        job, index = self._open(request.match_info["id"])
        fate = job.fate
        if self._hits(fate.html_result):
            return web.Response(text=HTML, content_type="text/html")
        picture = await self._painter.picture(job, index)
        if self._hits(fate.truncate_result):
            return await _truncated(request, picture, job.format)
        if self._hits(fate.slow_result):
            return await _dripped(request, picture, job.format)
        return web.Response(body=picture, content_type=f"image/{job.format}")

    def _url(self, job: Job, index: int, until: str) -> str:
        payload = f"{job.id}|{index}|{until}|{next(self._numbers)}".encode()
        mark = hmac.digest(self._secret, payload, "sha256")[:_MAC_BYTES]
        return f"{self.base}/results/{base64.urlsafe_b64encode(mark + payload).decode().rstrip('=')}"

    def _open(self, result_id: str) -> tuple[Job, int]:
        try:
            sealed = base64.urlsafe_b64decode(result_id + "=" * (-len(result_id) % 4))
        except (ValueError, binascii.Error):
            raise not_found() from None
        mark, payload = sealed[:_MAC_BYTES], sealed[_MAC_BYTES:]
        if not hmac.compare_digest(mark, hmac.digest(self._secret, payload, "sha256")[:_MAC_BYTES]):
            raise not_found()
        job_id, index, until, _ = payload.decode().split("|")
        job = self._books.jobs.get(job_id)
        if job is None:
            raise not_found()
        if until and time.time() >= float(until):
            raise Refusal(403, "expired", "this URL has expired")
        return job, int(index)

    def _hits(self, probability: float) -> bool:
        return self._random.random() < probability


async def _start(request: web.Request, length: int, format_name: str) -> web.StreamResponse:
    response = web.StreamResponse()
    response.content_type = f"image/{format_name}"
    response.content_length = length
    await response.prepare(request)
    return response


async def _truncated(request: web.Request, picture: bytes, format_name: str) -> web.StreamResponse:
    response = await _start(request, len(picture), format_name)
    await response.write(picture[: len(picture) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


async def _dripped(request: web.Request, picture: bytes, format_name: str) -> web.StreamResponse:
    response = await _start(request, len(picture), format_name)
    for at in range(len(picture)):
        await response.write(picture[at : at + 1])
        await asyncio.sleep(SLOW_GAP_S)
    return response
