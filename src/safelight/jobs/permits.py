"""A submit permit: claim what fits of one provider and send it, until nothing more fits."""

from __future__ import annotations

import asyncio

import structlog

from safelight.lifecycle.dispatch import Claim, Dispatch

log = structlog.get_logger()


class Permits:
    """Runs permits within one budget of calls in flight for this worker."""

    def __init__(self, dispatch: Dispatch, *, budget: int) -> None:
        self._dispatch = dispatch
        self._budget = budget
        self._in_flight = 0
        self._claiming = asyncio.Lock()

    async def run(self, provider_name: str) -> None:
        """Claim and send until nothing is due or nothing fits; a finished call makes room for the next."""
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                is_limited = await self._claim_into(running, provider_name)
                if not running:
                    return
                when = asyncio.FIRST_COMPLETED if is_limited else asyncio.ALL_COMPLETED
                _, running = await asyncio.wait(running, return_when=when)
                if not is_limited and not running:
                    return
        finally:
            for call in running:
                call.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _claim_into(self, running: set[asyncio.Task[None]], provider_name: str) -> bool:
        async with self._claiming:  # one at a time, so that two permits do not claim the same room
            room = self._budget - self._in_flight
            if room < 1:
                return True
            claims = await self._dispatch.claim(provider_name, room)
            self._in_flight += len(claims.items)
        for claim in claims.items:
            running.add(asyncio.create_task(self._send(claim)))
        return claims.is_limited

    async def _send(self, claim: Claim) -> None:
        try:
            await self._dispatch.send(claim)
        except Exception:
            # The row keeps its lease: after answer_by the look calls it uncertain.
            log.exception("send_broke", task_id=str(claim.task.id))
        finally:
            self._in_flight -= 1
