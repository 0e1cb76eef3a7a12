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
    """How many items of work one worker may have in flight; pumps may share one.

    A shared one gives a pump at most half of what is left, and the last place only to one that has nothing in flight:
    so something remains for the next pump, however many hang.
    """

    def __init__(self, limit: int, *, is_shared: bool = False) -> None:
        self.limit = limit
        self.in_flight = 0
        self._is_shared = is_shared

    def room(self, *, has_work: bool) -> int:
        """How many items a pump may begin now that has some in flight, or none."""
        left = self.limit - self.in_flight
        if not self._is_shared:
            return left
        return left // 2 if left > 1 or has_work else left


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
        self._running: set[asyncio.Task[None]] = set()
        self._has_ended = asyncio.Event()
        self._is_limited = False
        self._is_led = False

    async def run(self) -> None:
        """Claim and work until nothing is due or nothing fits; a finished item makes room for the next.

        Runs side by side share their work: one stays until all of it is done, the others end once they have claimed,
        so that slow work takes the place of one run only. A run that finds another one waiting to claim ends at once:
        that claim comes later and sees all this one would have seen.
        """
        if self._has_waiter:
            return
        await self._claim_more()
        if self._is_led:
            return
        self._is_led = True
        try:
            while self._running:
                await self._has_ended.wait()
                self._has_ended.clear()
                if self._is_limited and not self._has_waiter:
                    await self._claim_more()
        finally:
            self._is_led = False
            await self._cut_off()

    async def _cut_off(self) -> None:
        cut = list(self._running)
        for work in cut:
            work.cancel()
        await asyncio.gather(*cut, return_exceptions=True)

    async def _claim_more(self) -> None:
        self._has_waiter = True
        try:
            await self._claiming.acquire()
        finally:
            self._has_waiter = False
        try:
            room = self._budget.room(has_work=bool(self._running))
            if room < 1:
                self._is_limited = True
                return
            items, self._is_limited = await self._claim_within(room)
        finally:
            self._claiming.release()
        for item in items:
            work = asyncio.create_task(self._do(item))
            self._running.add(work)
            work.add_done_callback(self._ended)

    async def _claim_within(self, room: int) -> tuple[Sequence[ItemT], bool]:
        """Claim with the room taken beforehand: other pumps claim at the same time."""
        self._budget.in_flight += room
        taken = 0
        try:
            items, is_limited = await self._claim(room)
            taken = len(items)
            return items, is_limited
        finally:
            self._budget.in_flight -= room - taken

    def _ended(self, work: asyncio.Task[None]) -> None:
        self._running.discard(work)
        self._has_ended.set()

    async def _do(self, item: ItemT) -> None:
        try:
            await self._work(item)
        except Exception:
            # The row keeps its lease and is looked at again when that ends.
            log.exception("work_broke", pump=self._name)
        finally:
            self._budget.in_flight -= 1
