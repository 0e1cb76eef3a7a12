"""Streams of live events: read frame by frame, opened again where they broke off, with nothing missed or told twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from safelight.client.errors import ApiError, ServiceUnreachable
from safelight.client.exchange import LOST, Exchange, unreadable
from safelight.client.pace import TEMPORARY, gaps_between_looks
from safelight.client.values import Event

PATIENCE_S = 120.0
"""How long a service that does not answer is borne: a restart takes seconds."""
MAX_LINE = 65_536


async def read_events(exchange: Exchange, path: str, *, after: int | None = None) -> AsyncIterator[Event]:
    """Events of a stream, for ever; of one task to its end.

    Raises:
        ApiError: the service refused it.
        ServiceUnreachable: no stream could be had for two minutes.
    """
    loop = asyncio.get_running_loop()
    gaps, heard_at = gaps_between_looks(), loop.time()
    while True:
        try:
            async for event in _once(exchange, path, after):
                gaps, heard_at = gaps_between_looks(), loop.time()
                after = event.number
                yield event
                if path != "/v1/events" and event.is_last:
                    return
        except ApiError as refusal:
            if refusal.status == 204:
                return
            if refusal.status not in TEMPORARY or loop.time() - heard_at > PATIENCE_S:
                raise
        except LOST as loss:
            if loop.time() - heard_at > PATIENCE_S:
                raise ServiceUnreachable(f"{exchange.base_url} does not answer: {loss}") from None
        await asyncio.sleep(next(gaps))


async def _once(exchange: Exchange, path: str, after: int | None) -> AsyncIterator[Event]:
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if after is not None:
        headers["Last-Event-ID"] = str(after)
    async with exchange.stream(path, headers=headers) as response:
        if response.status == 204:
            raise ApiError(204, "ended", "This task has ended, and you have seen it.")
        fields: dict[str, str] = {}
        async for line in _lines(response.content):
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            elif "data" in fields:
                yield _event_of(fields)
                fields = {}


async def _lines(content: Any) -> AsyncIterator[str]:
    while data := await content.readline():
        if len(data) > MAX_LINE or not data.endswith(b"\n"):
            return
        yield data.decode("utf-8", "replace").rstrip("\r\n")


def _event_of(fields: dict[str, str]) -> Event:
    try:
        return Event.of(fields.get("event", ""), int(fields["id"]), json.loads(fields["data"]))
    except (KeyError, ValueError, TypeError, AttributeError):
        raise unreadable(200) from None


class Bell:
    """Rings when something is told of a task; where nothing can be heard, it rings by the clock.

    What was heard only says when to look: the task itself is read by a call of its own.
    """

    QUIET_S = 10.0
    """With a stream one looks all the same, from time to time."""

    def __init__(self, exchange: Exchange, task_id: str) -> None:
        self._exchange = exchange
        self._path = f"/v1/tasks/{task_id}/events"
        self._news = asyncio.Event()
        self._is_heard = False
        self._work = asyncio.create_task(self._listen())

    async def wait(self, gap_s: float) -> None:
        """Until something is told; `gap_s` seconds where nobody tells."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.QUIET_S if self._is_heard else gap_s):
                await self._news.wait()
        self._news.clear()

    async def close(self) -> None:
        """Listen no more."""
        self._work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._work

    async def _listen(self) -> None:
        with contextlib.suppress(ApiError, ServiceUnreachable, *LOST):
            async for _ in _once(self._exchange, self._path, None):
                self._is_heard = True
                self._news.set()
        # Ended, broken off or refused: from now on one looks by the clock.
        self._is_heard = False
        self._news.set()
