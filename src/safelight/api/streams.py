"""A stream of events (SSE): what was missed, then what comes, a sign of life between, and a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from safelight.api.shown import time_text
from safelight.db.live import LiveEvent
from safelight.domain.failure import Failure, FailureClass
from safelight.domain.task import STAGES
from safelight.lifecycle.live import Live, Subscription

SEND_S = 30.0
"""How long one piece may take to leave; the system's own buffers come before that."""
HEADERS = {
    # A proxy that gathers, or packs, would hold events back until there is enough of them.
    "Cache-Control": "no-cache, no-store, no-transform",
    "X-Accel-Buffering": "no",
}
HEARTBEAT = b": \n\n"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often an idle stream says that it lives, and how long it lasts (seconds)."""

    heartbeat_s: float
    life_s: float


class EventStream(Response):
    """The answer itself; `opening` are frames to begin with, `after` is the last number that its reader has seen."""

    media_type = "text/event-stream"

    def __init__(
        self, live: Live, subscription: Subscription, pace: Pace, *, opening: bytes = b"", after: int
    ) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._live = live
        self._subscription = subscription
        self._pace = pace
        self._opening = opening
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the task has ended, the time is up, the reader is gone, or the stream is closed for it."""
        gone = asyncio.create_task(self._watch(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for piece in self._pieces():
                if self._subscription.closed == "gone":
                    return
                async with asyncio.timeout(SEND_S):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            if self._subscription.closed != "gone":
                await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            self._subscription.close("slow")
            raise
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone
            self._live.leave(self._subscription)

    async def _pieces(self) -> AsyncIterator[bytes]:
        # Spread, so that those whose process stopped do not come back in one instant.
        yield b"retry: %d\n\n" % random.randint(1_000, 3_000) + self._opening
        until = monotonic() + self._pace.life_s
        async for events in self._batches(until):
            yield b"".join(map(frame, events)) if events else HEARTBEAT
            if self._subscription.task_id is not None and events and events[-1].is_last:
                return

    async def _batches(self, until: float) -> AsyncIterator[list[LiveEvent]]:
        """Events in order, each once; an empty batch where there was none for a while."""
        subscription = self._subscription
        while self._after < subscription.since and not subscription.closed:
            missed = await self._live.missed(subscription, self._after)
            if not missed:
                break
            self._after = missed[-1].number
            yield missed
        while not subscription.closed and (left_s := until - monotonic()) > 0:
            taken = await subscription.take(min(self._pace.heartbeat_s, left_s))
            events = [event for event in taken if event.number > self._after]
            if events:
                self._after = events[-1].number
            if events or not taken:
                yield events

    async def _watch(self, receive: Receive) -> None:
        """Ends with the reader: all else has been received."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._subscription.close("gone")


def frame(event: LiveEvent) -> bytes:
    """One event as it is sent."""
    return named_frame("task", event.number, event_json(event))


def named_frame(name: str, number: int, document: dict[str, Any]) -> bytes:
    """A frame with its name and the number to resume from."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return f"id: {number}\nevent: {name}\ndata: {text}\n\n".encode()


def event_json(event: LiveEvent) -> dict[str, Any]:
    """What a customer is told of a change; the words are those of a task."""
    progress: dict[str, Any] = {"stage": STAGES[event.stage]}
    if event.percent is not None:
        progress["percent"] = event.percent
    if event.position is not None:
        progress["position"] = event.position
    return {
        "id": str(event.task_id),
        "status": event.status,
        "version": event.version,
        "progress": progress,
        "failure": _failure_json(event),
        "at": time_text(event.created_at),
    }


def _failure_json(event: LiveEvent) -> dict[str, Any] | None:
    if event.failure_class is None or event.failure_code is None:
        return None
    failure = Failure(FailureClass(event.failure_class), event.failure_code)
    return {
        "class": failure.failure_class,
        "code": failure.code,
        "message": failure.message,
        "retryable": failure.is_retryable_by_customer,
    }
