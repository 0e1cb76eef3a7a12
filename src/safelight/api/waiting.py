"""Requests that are held until their task has ended: one shared look at the database for all of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from enum import Enum
from typing import Any
from uuid import UUID

import structlog
from starlette.requests import Request

from safelight.db import views
from safelight.db.database import Database

log = structlog.get_logger()

LOOK_S = 0.2
"""The pause between two looks; there are none while nobody waits."""


class Held(Enum):
    """Why a request is let go."""

    ENDED = "the task has ended"
    NOT_YET = "its time is up, or there was no place for it"
    GONE = "the caller has hung up"


class Waiting:
    """Holds requests, and no database connection meanwhile; an account may take half of the places."""

    def __init__(self, database: Database, *, places: int) -> None:
        self._database = database
        self._places = places
        self._share = max(1, places // 2)
        # Futures that say whether their task has ended; False: nobody is held any more.
        self._watched: dict[asyncio.Future[bool], UUID] = {}
        self._held: Counter[UUID] = Counter()
        self._looking: asyncio.Task[None] | None = None
        self._is_closing = False

    async def hold(self, request: Request, account_id: UUID, task_id: UUID, *, within_s: float) -> Held:
        """Wait for the end of a task; the body of the request must have been read. The task goes on in any case."""
        if within_s <= 0.0 or not self._has_place(account_id):
            return Held.NOT_YET
        ended = self._watch(task_id)
        gone = asyncio.create_task(_hang_up(request))
        self._held[account_id] += 1
        try:
            either: set[asyncio.Future[Any]] = {ended, gone}
            await asyncio.wait(either, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return Held.GONE
            return Held.ENDED if ended.done() and ended.result() else Held.NOT_YET
        finally:
            gone.cancel()
            del self._watched[ended]
            self._held[account_id] -= 1
            if not self._held[account_id]:
                del self._held[account_id]

    def let_go(self) -> None:
        """Answer everybody now and hold nobody from now on: the process is about to stop."""
        self._is_closing = True
        for ended in self._watched:
            _set(ended, False)

    def _has_place(self, account_id: UUID) -> bool:
        is_full = len(self._watched) >= self._places or self._held[account_id] >= self._share
        return not (is_full or self._is_closing)

    def _watch(self, task_id: UUID) -> asyncio.Future[bool]:
        ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._watched[ended] = task_id
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="waiting")
        return ended

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if not self._watched:
                return
            try:
                async with self._database.connection() as connection:
                    found = await views.ended(connection, set(self._watched.values()))
            except views.UNREACHABLE as error:
                # Nobody is lost: who is held is told at the end of its time that the task is still on its way.
                log.warning("held_requests_unseen", held=len(self._watched), error=type(error).__name__)
                continue
            for ended, task_id in self._watched.items():
                if task_id in found:
                    _set(ended, True)


async def _hang_up(request: Request) -> None:
    """Ends when the caller goes away: all else has been received."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _set(ended: asyncio.Future[bool], has_ended: bool) -> None:
    if not ended.done():
        ended.set_result(has_ended)
