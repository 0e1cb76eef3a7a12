"""Answers: JSON out, refusals worded, and submits that get no answer."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from aiohttp import ClientConnectionResetError, web

from safelight.lab.job import Job
from safelight.lab.refusal import Refusal
from safelight.lab.studio import Studio

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
HANG_MOST_S = 300.0
HANG_LOOK_S = 0.2
_encode = json.JSONEncoder(separators=(",", ":")).encode


def answer(value: object, status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.Response(status=status, body=_encode(value).encode(), content_type="application/json")


def polite(handler: Handler) -> Handler:
    """The handler with its refusals turned into JSON answers."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return refusal.answer()
        except web.HTTPRequestEntityTooLarge:
            return Refusal(413, "invalid_request", "the body is too large").answer()

    return handle


async def withhold(request: web.Request, job: Job, studio: Studio) -> bool:
    """Misbehave after acceptance as the job's fate says; True if the caller gets no answer."""
    if job.fate.is_hanging:
        await hang(request, studio)
    elif not job.fate.is_answer_lost:
        return False
    hang_up(request)
    return True


def hang_up(request: web.Request) -> web.Response:
    """Break the connection; what is returned reaches nobody."""
    if request.transport is not None:
        request.transport.close()
    return web.Response()


@web.middleware
async def until_it_leaves(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Whoever asked may be gone before all is said: then nobody is left to tell, and nothing went wrong here."""
    try:
        return await handler(request)
    except ClientConnectionResetError:
        return hang_up(request)


async def hang(request: web.Request, studio: Studio) -> None:
    """Say nothing until the caller goes away, or the lab stops."""
    loop = asyncio.get_running_loop()
    until = loop.time() + HANG_MOST_S
    # aiohttp has no event for a client that went away, so this looks.
    while not studio.stopping.is_set() and request.transport is not None and loop.time() < until:  # noqa: ASYNC110 - see above
        await asyncio.sleep(HANG_LOOK_S)
