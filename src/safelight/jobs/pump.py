"""Claim what fits and work on it, until nothing more is due: what a permit does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import structlog

log = structlog.get_logger()

ItemT = TypeVar("ItemT")

Claim = Callable[[int], Awaitable[tuple[Sequence[ItemT], bool]]]
"""Claims at most so many items; says too whether more may be due than could be taken."""


class Budget:
    """How many items of work one worker may have in flight; pumps may share one."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_flight = 0

    @property
    def room(self) -> int:
        return self.limit - self.in_flight


class Pump(Generic[ItemT]):
    """One kind of claimed work within a budget."""

    def __init__(
        self, name: str, claim: Claim[ItemT], work: Callable[[ItemT], Awaitable[None]], budget: Budget
    ):
        self._name = name
        self._claim = claim
        self._work = work
        self._budget = budget
        self._claiming = asyncio.Lock()
        self._has_waiter = False

    async def run(self) -> None:
        """Claim and work until nothing is due or nothing fits; a finished item makes room for the next.

        A run that finds another one waiting to claim ends at once: that claim comes later and sees all this one
        would have seen.
        """
        running: set[asyncio.Task[None]] = set()
        try:
            while not self._has_waiter:
                is_limited = await self._claim_into(running)
                if not running:
                    return
                when = asyncio.FIRST_COMPLETED if is_limited else asyncio.ALL_COMPLETED
                _, running = await asyncio.wait(running, return_when=when)
                if not is_limited:
                    return
            if running:
                await asyncio.wait(running)
        finally:
            for work in running:
                work.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _claim_into(self, running: set[asyncio.Task[None]]) -> bool:
        self._has_waiter = True
        try:
            await self._claiming.acquire()
        finally:
            self._has_waiter = False
        try:
            room = self._budget.room
            if room < 1:
                return True
            items, is_limited = await self._claim(room)
            self._budget.in_flight += len(items)
        finally:
            self._claiming.release()
        for item in items:
            running.add(asyncio.create_task(self._do(item)))
        return is_limited

    async def _do(self, item: ItemT) -> None:
        try:
            await self._work(item)
        except Exception:
            # The row keeps its lease and is looked at again when that ends.
            log.exception("work_broke", pump=self._name)
        finally:
            self._budget.in_flight -= 1
