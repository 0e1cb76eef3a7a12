"""The sweep: find rows whose next step is overdue and wake them; a lost job costs only its interval."""

from __future__ import annotations

from safelight.db import inbox, tasks
from safelight.db.gates import STORAGE, closed_gates, gate_failures, open_gate
from safelight.db.queue import enqueue_copying, enqueue_permits, providers_with_due_tasks
from safelight.lifecycle.check import Check
from safelight.lifecycle.context import Context
from safelight.lifecycle.reroute import Reroute
from safelight.telemetry import point

ROOM = 500
"""Rows one pass takes of each kind: a pass stays short, and the next one follows soon."""
OVERDUE_S = 0.25
"""A waiting row older than this has no permit under way that would find it."""


class Sweep:
    """Wakes what is due. Every pass may be repeated or left out without harm."""

    def __init__(self, context: Context, check: Check) -> None:
        self._context = context
        self._check = check
        self._reroute = Reroute(context)

    async def wake(self) -> None:
        """Permits for due tasks and jobs for due copies, as freed capacity, back-offs and leases ask for.

        What cannot be sent where it waits is taken elsewhere first.
        """
        await self._reroute.evacuate()
        await self._reroute.even_out()
        async with self._context.database.transaction() as connection:
            providers = sorted(self._context.providers)
            due = await providers_with_due_tasks(connection, providers, overdue_s=OVERDUE_S)
            await enqueue_permits(connection, due, is_sweep=True)
            if await tasks.has_due_copies(connection, overdue_s=OVERDUE_S):
                await enqueue_copying(connection, is_sweep=True)
            point("before_wake_commit")
        point("after_wake_commit")

    async def tidy(self) -> None:
        """End what never started, forget old unknown callbacks, let the storage be tried again."""
        async with self._context.database.connection() as connection:
            late = await tasks.past_start(connection, room=ROOM)
            await inbox.drop_unmatched(connection)
            closed = dict(await closed_gates(connection))
            if STORAGE not in closed and await gate_failures(connection, STORAGE):
                await open_gate(connection, STORAGE)
        point("after_tidy")
        for task_id in late:
            async with self._context.database.connection() as connection:
                found = await tasks.read_task(connection, task_id)
            if found is not None:
                await self._check.fail_not_started(found[0])
