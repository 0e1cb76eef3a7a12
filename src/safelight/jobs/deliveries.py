"""Sends what is due to customers, within budgets that keep the dead from delaying the living."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import structlog

from safelight.db.views import UNREACHABLE
from safelight.domain.webhook import MAX_IN_FLIGHT
from safelight.lifecycle.notify import Letter, Notify

log = structlog.get_logger()

PATIENCE_S = 1.0
"""A try that has no answer after so long goes on, but gives its place to another one."""
SLOW_TIMES = 8
"""How many times its places an errand may have in flight, the slow ones included."""


@dataclass(slots=True)
class Errand:
    """One kind of endpoints, with places of its own.

    With `is_yielding` a slow try gives up its place; those to endpoints that failed last keep theirs.
    """

    is_failing: bool
    places: int
    is_yielding: bool
    taken: int = 0
    is_limited: bool = False
    running: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def room(self) -> int:
        """How many tries may begin now."""
        return min(self.places - self.taken, self.places * SLOW_TIMES - len(self.running))

    @property
    def each(self) -> int:
        """How many may be in flight to one endpoint: one when half of what may be is, lest those that hang take all."""
        return 1 if len(self.running) >= self.places * SLOW_TIMES // 2 else MAX_IN_FLIGHT


class Deliveries:
    """Runs on every job and, since the rows are the truth, again and again without one."""

    def __init__(self, notify: Notify, *, places: int) -> None:
        self._notify = notify
        self._claiming = asyncio.Lock()
        self._has_waiter = False
        self._is_stopping = False
        self._again: set[asyncio.Task[None]] = set()
        self._errands = (
            Errand(is_failing=False, places=places, is_yielding=True),
            Errand(is_failing=True, places=max(places // 2, 1), is_yielding=False),
        )

    async def run(self, _payload: str = "") -> None:
        """Claim and begin what is due and fits; it goes on by itself.

        Whoever finds another one waiting to claim ends at once: that claim comes later and sees all this one would.
        """
        if self._has_waiter or self._is_stopping:
            return
        self._has_waiter = True
        try:
            await self._claiming.acquire()
        finally:
            self._has_waiter = False
        try:
            for errand in self._errands:
                await self._begin(errand)
        finally:
            self._claiming.release()

    async def drain(self, timeout_s: float) -> None:
        """Begin nothing more, let what is in flight end, then cut it off: its leases bring it back."""
        self._is_stopping = True
        running = {one for errand in self._errands for one in errand.running} | self._again
        if not running:
            return
        _, late = await asyncio.wait(running, timeout=timeout_s)
        for one in late:
            one.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _begin(self, errand: Errand) -> None:
        room = errand.room
        if room < 1:
            errand.is_limited = True
            return
        letters, errand.is_limited = await self._notify.claim(
            room, is_failing=errand.is_failing, each=errand.each
        )
        for letter in letters:
            # The place is taken here and not when the task begins: the next claim counts it.
            one = asyncio.create_task(self._deliver(_Place(errand), letter))
            errand.running.add(one)
            one.add_done_callback(errand.running.discard)

    async def _deliver(self, place: _Place, letter: Letter) -> None:
        patience = asyncio.get_running_loop().call_later(PATIENCE_S, self._give_up, place)
        try:
            await self._notify.deliver(letter, is_failing=place.errand.is_failing)
        except Exception:
            # The row keeps its lease and is tried again, under the same id, when that ends.
            log.exception("delivery_broke", delivery=letter.delivery.id)
        finally:
            patience.cancel()
            place.free()
            self._go_on(place.errand)

    def _give_up(self, place: _Place) -> None:
        if place.errand.is_yielding:
            place.free()
            self._go_on(place.errand)

    def _go_on(self, errand: Errand) -> None:
        """A place is free again: whatever waited for one is claimed now."""
        if errand.is_limited and not self._is_stopping and not self._has_waiter:
            claiming = asyncio.create_task(self._run_again())
            self._again.add(claiming)
            claiming.add_done_callback(self._again.discard)

    async def _run_again(self) -> None:
        try:
            await self.run()
        except UNREACHABLE:
            log.warning("deliveries_not_claimed")


class _Place:
    """One place of an errand, given back once."""

    def __init__(self, errand: Errand) -> None:
        self.errand = errand
        self._is_held = True
        errand.taken += 1

    def free(self) -> None:
        """Give it back."""
        if self._is_held:
            self._is_held = False
            self.errand.taken -= 1
