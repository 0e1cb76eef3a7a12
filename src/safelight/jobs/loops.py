"""Plain loops over `wake_at`: a step again and again, and the poller of one provider."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

from safelight.db.tasks import AttemptRow, TaskRow
from safelight.errors import StaleAttempt
from safelight.lifecycle.check import Check

log = structlog.get_logger()


async def repeat(name: str, interval_s: float, step: Callable[[], Awaitable[None]]) -> None:
    """Do a step again and again with ±20 % between; a failing step is logged and tried again."""
    while True:
        try:
            await step()
        except Exception:
            log.exception("loop_step_failed", loop=name)
        await asyncio.sleep(interval_s * random.uniform(0.8, 1.2))


class Poller:
    """Looks at one provider's due tasks within its own budget: a hanging provider starves no other."""

    def __init__(self, check: Check, provider_name: str, *, budget: int) -> None:
        self._check = check
        self._provider_name = provider_name
        self._budget = budget
        self._running: set[asyncio.Task[None]] = set()

    async def step(self) -> None:
        """Claim and start due looks, up to the budget; again at once while the budget is used up."""
        while (room := self._budget - len(self._running)) > 0:
            due = await self._check.claim(self._provider_name, room)
            for task, attempt in due:
                look = asyncio.create_task(self._look(task, attempt))
                self._running.add(look)
                look.add_done_callback(self._running.discard)
            if len(due) < room:
                return
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)

    async def drain(self, timeout_s: float) -> None:
        """Let running looks finish, then cancel them; their leases bring them back."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=timeout_s)
            for look in late:
                look.cancel()

    async def _look(self, task: TaskRow, attempt: AttemptRow) -> None:
        try:
            await self._check.check(task, attempt)
        except StaleAttempt:
            log.info("look_overtaken", task_id=str(task.id))
        except Exception:
            log.exception("look_broke", task_id=str(task.id))
