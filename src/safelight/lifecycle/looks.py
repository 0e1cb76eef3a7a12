"""What a look at a task can end with: its news, a person's desk, or another look later."""

from __future__ import annotations

from datetime import datetime

from safelight.db import tasks
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.provider import ProviderUpdate
from safelight.domain.task import ReviewReason, State
from safelight.errors import AssetError
from safelight.lifecycle.advance import Advance, News
from safelight.lifecycle.changes import Changes
from safelight.lifecycle.context import Context
from safelight.lifecycle.dispatch import Dispatch
from safelight.telemetry import POLLS, point

CLOSED_LOOK_S = 5.0
"""Pause before a provider (or a storage) that cannot be asked now is tried again."""
REVIEW_LOOK_S = 600.0
"""Slow polling of tasks that wait for a person."""


class Looks:
    """The steps that every kind of look shares; each changes a task only as it was claimed."""

    def __init__(self, context: Context, advance: Advance, dispatch: Dispatch) -> None:
        self._context = context
        self._advance = advance
        self._dispatch = dispatch

    async def take(self, task: TaskRow, attempt: AttemptRow, update: ProviderUpdate) -> None:
        """The look brought news: pictures in it are staged first."""
        try:
            update = await self._dispatch.stage(task.id, attempt.number, update)
        except AssetError as error:
            await self._dispatch.close_storage(error)
            return
        await self._advance.advance(News(task.id, attempt.number, update=update))

    async def to_review(self, task: TaskRow, reason: ReviewReason) -> None:
        """No look will tell: a person decides."""
        decide_in_s = self._context.settings.decide_by_s
        async with self._context.database.transaction() as connection:
            changes = Changes(await tasks.lock_tasks(connection, [task.id]))
            row = changes.rows[task.id]
            if row.version != task.version:
                return
            changes.move(
                task.id,
                State.REVIEW,
                cause="look",
                wake_in_s=min(REVIEW_LOOK_S, decide_in_s),
                review_reason=reason,
                decide_in_s=decide_in_s,
            )
            await changes.write(connection)
            point("before_review_commit")
        point("after_review_commit")

    async def note(self, task: TaskRow, *, looks: int, wake_in_s: float) -> None:
        """Nothing new: look again later."""
        async with self._context.database.transaction() as connection:
            note = {"id": task.id, "version": task.version, "looks": looks, "wake_in_s": wake_in_s}
            await tasks.note_progress(connection, [note])
            point("before_note_commit")
        point("after_note_commit")


def count(provider_name: str, result: str) -> None:
    """One look more in the metrics."""
    POLLS.labels(provider_name, result).inc()


def is_past(moment: datetime | None, now: datetime) -> bool:
    """Whether that time is set and has come."""
    return moment is not None and moment <= now


def until_deadline_s(task: TaskRow) -> float:
    """Seconds that are left to a task, at least one."""
    return max((task.deadline_at - task.now).total_seconds(), 1.0) if task.deadline_at else REVIEW_LOOK_S
