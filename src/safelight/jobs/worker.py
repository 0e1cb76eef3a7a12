"""The worker: three lanes and the loops, started and stopped together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

from safelight.db.queue import ARCHIVE, DELIVER, SUBMIT, UNSTAGE
from safelight.jobs.deliveries import Deliveries
from safelight.jobs.lane import Lane
from safelight.jobs.loops import Poller, repeat
from safelight.jobs.permits import Copies, Permits
from safelight.lifecycle.archive import Archive
from safelight.lifecycle.check import Check
from safelight.lifecycle.context import Context
from safelight.lifecycle.dispatch import Dispatch
from safelight.lifecycle.notify import Notify
from safelight.lifecycle.retention import Retention
from safelight.lifecycle.sweep import Sweep

RENEW_S = 6.0
"""A third of a copy's lease: two renewals may fail before it ends."""
PERMITS_AT_ONCE = 16
REST_AT_ONCE = 8
PRUNE_S = 86_400.0
Round = tuple[str, float, Callable[[], Awaitable[None]]]
"""A further loop: its name, the seconds between two steps, and the step."""


class Worker:
    """Everything that works without being asked."""

    def __init__(
        self,
        context: Context,
        dispatch: Dispatch,
        check: Check,
        archive: Archive,
        sweep: Sweep,
        *,
        retention: Retention,
        notify: Notify,
        rounds: Sequence[Round] = (),
    ) -> None:
        self._settings = context.settings
        self._archive = archive
        self._sweep = sweep
        self._retention = retention
        self._rounds = rounds
        self._notify = notify
        self._deliveries = Deliveries(notify, places=self._settings.deliver_concurrency)
        self._copies = Copies(archive, budget=self._settings.archive_concurrency)
        providers = sorted(context.providers)
        permits = Permits(dispatch, budget=self._settings.submit_concurrency, is_shared=len(providers) > 1)
        # One that hangs holds one permit: there are enough for all, and as many to claim for those.
        at_once = max(PERMITS_AT_ONCE, 2 * len(providers))
        self._lanes = [
            Lane("submit", context.database, {SUBMIT: permits.run}, budget=at_once),
            Lane("archive", context.database, {ARCHIVE: self._copies.run}, budget=PERMITS_AT_ONCE),
            Lane(
                "rest",
                context.database,
                {UNSTAGE: self._unstage_job, DELIVER: self._deliveries.run},
                budget=REST_AT_ONCE,
            ),
        ]
        self._pollers = [Poller(check, name, budget=self._settings.poll_concurrency) for name in providers]
        self._loops: list[asyncio.Task[None]] = []
        self._supervisors: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start lanes and loops; returns at once."""
        self._supervisors = [asyncio.create_task(lane.run()) for lane in self._lanes]
        steps: list[Coroutine[Any, Any, None]] = [
            repeat("poll", self._settings.poll_interval_s, poller.step) for poller in self._pollers
        ]
        steps.append(repeat("renew", RENEW_S, self._copies.renew))
        steps.append(repeat("deliver", self._settings.poll_interval_s, self._deliveries.run))
        steps.append(repeat("mend", self._settings.sweep_interval_s, self._notify.tidy))
        steps.append(repeat("wake", self._settings.poll_interval_s, self._sweep.wake))
        steps.append(repeat("tidy", self._settings.sweep_interval_s, self._sweep.tidy))
        steps.append(repeat("retain", self._settings.retention_interval_s, self._retention.step))
        steps.append(repeat("prune", PRUNE_S, self._retention.prune))
        steps += [repeat(*each) for each in self._rounds]
        self._loops = [asyncio.create_task(step) for step in steps]

    async def stop(self) -> None:
        """Claim nothing more, drain for the settled time, then cancel; the sweep recovers what was cut."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        drain_s = self._settings.drain_s
        await asyncio.gather(
            *(lane.stop(drain_s) for lane in self._lanes),
            *(poller.drain(drain_s) for poller in self._pollers),
            self._deliveries.drain(drain_s),
        )
        for supervisor in self._supervisors:
            supervisor.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)

    async def _unstage_job(self, payload: str) -> None:
        await self._archive.unstage(UUID(payload))
