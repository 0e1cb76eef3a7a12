"""Take waiting tasks to where they can be sent: away from a key that is out, and to one that is idle."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from uuid import UUID

from safelight.db import tasks
from safelight.db.queue import providers_with_due_tasks
from safelight.db.statements import Connection
from safelight.db.tasks import AttemptRow, Page, TaskRow
from safelight.domain.capacity import free_of, rate_window
from safelight.domain.news import UNREACHABLE, AttemptOutcome
from safelight.domain.routes import KeyState, Place
from safelight.lifecycle.changes import Changes
from safelight.lifecycle.context import Context
from safelight.telemetry import point

ROOM = 500
"""Tasks that one pass takes from one key."""
IDLE_ROOM = 64
"""Tasks that an idle key takes over at once."""
OVERDUE_S = 1.0
"""A task has waited so long beyond its time before an idle key takes it from another one."""
ANY_TIME_S = 86_400.0
"""What is to leave a key need not wait for its back-off, which was meant for that key."""
MAX_REFERENCES = 20
"""Beyond so many attempts a task whose last one is still open stays with its key: every move would cost another."""


class Reroute:
    """Moves only tasks that wait: certainly not accepted anywhere, or not yet sent again after a failure.

    Several workers may do this at once: each takes rows that no other one holds.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._routing = context.routing
        self._pages: dict[str, Page] = {}

    async def evacuate(self) -> int:
        """Move what waits for a key that is out, or for a route that has retired; how many moved."""
        if not self._routing.has_choices:
            return 0
        async with self._context.database.connection() as connection:
            states = await self._routing.states(connection)
            today = (await self._context.database.now()).date()
        moved = 0
        for key, upstream_models in sorted(self._stranded(states, today).items()):
            moved += await self._evacuate(key, upstream_models)
        return moved

    async def even_out(self) -> int:
        """Let idle keys take over what others of the same provider cannot send now; how many moved."""
        moved = 0
        siblings = list(self._routing.siblings())
        today = (await self._context.database.now()).date() if siblings else date.max
        for names in siblings:
            for key in names:
                alive = self._routing.alive(key, today)
                moved += await self._take_over(key, [name for name in names if name != key], alive)
        return moved

    def _stranded(self, states: Mapping[str, KeyState], today: date) -> dict[str, set[str]]:
        """Upstream models by key that wait in vain, and have somewhere to go."""
        found: dict[str, set[str]] = {}
        for model in self._routing.models:
            if not self._routing.has_choice(model):
                continue
            for route in model.routes:
                for key in self._routing.keys_of(route.provider):
                    if states.get(key, KeyState()).is_out or not route.is_alive(today):
                        found.setdefault(key, set()).add(route.upstream_model)
        return found

    async def _evacuate(self, key: str, upstream_models: Collection[str]) -> int:
        async with self._context.database.transaction() as connection:
            rows, self._pages[key] = await tasks.lock_waiting(
                connection,
                key,
                sorted(upstream_models),
                room=ROOM,
                after=self._pages.get(key, tasks.FIRST_PAGE),
                overdue_s=-ANY_TIME_S,
            )
            if not rows:
                return 0
            states = dict(await self._routing.states(connection))
            state = states.get(key)
            reason = state.reason if state and state.reason else "retired"
            moved = await self._move(connection, rows, states, reason=reason)
            point("before_reroute_commit")
        point("after_reroute_commit")
        return moved

    async def _take_over(self, key: str, others: Collection[str], upstream_models: Sequence[str]) -> int:
        provider = self._context.providers.get(key)
        if provider is None:
            return 0
        async with self._context.database.transaction() as connection:
            late = await providers_with_due_tasks(connection, sorted(others), overdue_s=OVERDUE_S)
            if not late or await providers_with_due_tasks(connection, [key]):
                return 0
            states = await self._routing.states(connection)
            state = states.get(key, KeyState())
            if state.closed_for_s > 0.0 or state.failures:
                return 0
            window_s, _ = rate_window(provider.capabilities)
            taken = await tasks.capacity_taken(connection, key, window_s=window_s)
            free = free_of(provider.capabilities, taken, is_probing=False)
            if free.is_none:
                return 0
            room = min(free.calls, free.images, IDLE_ROOM)
            rows, _ = await tasks.lock_waiting(
                connection, late[0], upstream_models, room=room, overdue_s=OVERDUE_S
            )
            is_shut = states.get(late[0], KeyState()).closed_for_s > 0.0
            moved = await self._move_to(connection, rows, key, is_shut=is_shut)
            point("before_take_over_commit")
        point("after_take_over_commit")
        return moved

    async def _move(
        self,
        connection: Connection,
        rows: dict[UUID, TaskRow],
        states: dict[str, KeyState],
        *,
        reason: str,
    ) -> int:
        attempts = await _attempts_of(connection, rows)
        changes = Changes(rows)
        moved = 0
        for row in rows.values():
            place = self._routing.next_place(row, attempts.get(row.id, []), states)
            if place is None or place.is_where(row.provider, row.upstream_model):
                continue
            if self._move_one(changes, row, attempts.get(row.id, []), place, reason=reason):
                states[place.provider] = states.get(place.provider, KeyState()).with_one_more()
                moved += 1
        await changes.write(connection)
        return moved

    async def _move_to(
        self, connection: Connection, rows: dict[UUID, TaskRow], key: str, *, is_shut: bool
    ) -> int:
        """To one key of the same provider; an attempt that is still open stays where it can be sent."""
        attempts = await _attempts_of(connection, rows)
        changes = Changes(rows)
        moved = 0
        for row in rows.values():
            made = attempts.get(row.id, [])
            if is_shut or not _has_open(made):
                place = Place(self._routing.place_of(row).route, key)
                moved += self._move_one(changes, row, made, place, reason="idle")
        await changes.write(connection)
        return moved

    def _move_one(
        self, changes: Changes, row: TaskRow, made: list[AttemptRow], place: Place, *, reason: str
    ) -> bool:
        if _has_open(made):
            if row.attempt >= MAX_REFERENCES:
                return False
            # Every send of it was turned away: it is over, and the next key gets a reference of its own.
            changes.end_attempt(row.id, made[-1].number, AttemptOutcome.REFUSED, UNREACHABLE)
        changes.reroute(row.id, place, reason=reason, wake_in_s=0.0)
        return True


async def _attempts_of(connection: Connection, rows: Mapping[UUID, TaskRow]) -> dict[UUID, list[AttemptRow]]:
    sent = [row.id for row in rows.values() if row.attempt > 0]
    found: dict[UUID, list[AttemptRow]] = {}
    if sent:
        for (task_id, _), attempt in (await tasks.read_attempts(connection, sent)).items():
            found.setdefault(task_id, []).append(attempt)
    return found


def _has_open(made: list[AttemptRow]) -> bool:
    return bool(made) and made[-1].outcome is None
