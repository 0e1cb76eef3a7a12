"""Permits by kind: a submit permit names a provider, a copy permit lets results be copied."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from safelight.db.tasks import AttemptRow, TaskRow
from safelight.jobs.pump import Budget, Pump
from safelight.lifecycle.archive import Archive
from safelight.lifecycle.dispatch import Claim, Dispatch


class Permits:
    """Runs submit permits within one budget of calls in flight for this worker, shared by all providers."""

    def __init__(self, dispatch: Dispatch, *, budget: int, is_shared: bool = False) -> None:
        self._dispatch = dispatch
        self._budget = Budget(budget, is_shared=is_shared)
        self._pumps: dict[str, Pump[Claim]] = {}

    async def run(self, provider_name: str) -> None:
        """Send what is due at one provider, until nothing more fits."""
        pump = self._pumps.get(provider_name)
        if pump is None:
            pump = self._pumps[provider_name] = self._pump_of(provider_name)
        await pump.run()

    def _pump_of(self, provider_name: str) -> Pump[Claim]:
        async def claim(room: int) -> tuple[Sequence[Claim], bool]:
            claims = await self._dispatch.claim(provider_name, room)
            return claims.items, claims.is_limited

        return Pump("submit", claim, self._dispatch.send, self._budget)


class Copies:
    """Runs copy permits, and keeps the leases of what is being copied alive."""

    def __init__(self, archive: Archive, *, budget: int) -> None:
        self._archive = archive
        self._under_way: set[UUID] = set()
        self._pump = Pump("archive", self._claim, self._copy, Budget(budget))

    async def run(self, _payload: str = "") -> None:
        """Copy what is due, shortest-lived results first, until nothing is left."""
        await self._pump.run()

    async def renew(self) -> None:
        """Prolong the leases of this worker's copies; a dead worker's end soon, and another one takes over."""
        if self._under_way:
            await self._archive.renew(sorted(self._under_way))

    async def _claim(self, room: int) -> tuple[Sequence[tuple[TaskRow, AttemptRow]], bool]:
        claimed = await self._archive.claim(room)
        self._under_way.update(task.id for task, _ in claimed)
        return claimed, len(claimed) == room

    async def _copy(self, claimed: tuple[TaskRow, AttemptRow]) -> None:
        task, attempt = claimed
        try:
            await self._archive.copy(task, attempt)
        finally:
            self._under_way.discard(task.id)
