"""Tasks whose provider key is not configured any more: nobody can look at them, and still they come to an end."""

from __future__ import annotations

import contextlib

import structlog

from safelight.db import decisions, tasks
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.failure import Failure, FailureClass
from safelight.domain.news import Setback
from safelight.domain.task import ReviewReason, State
from safelight.errors import StaleAttempt
from safelight.lifecycle.advance import Advance, News
from safelight.lifecycle.context import Context
from safelight.lifecycle.looks import Looks, is_past
from safelight.lifecycle.settle import Ending, Settle

log = structlog.get_logger()

ROOM = 200
LEASE_S = 60.0
NO_RESULT = Failure(FailureClass.UPSTREAM_FAULT, "no_result")


class Gone:
    """Waits for their deadlines, in case the key comes back, then shows them to a person."""

    def __init__(self, context: Context, advance: Advance, settle: Settle, looks: Looks) -> None:
        self._context = context
        self._advance = advance
        self._settle = settle
        self._looks = looks

    async def tend(self) -> None:
        """Take the next step of every task of a provider that is gone and that is due."""
        async with self._context.database.connection() as connection:
            present = await decisions.providers_to_look_at(connection)
        for name in present:
            if name in self._context.providers:
                continue
            log.warning("provider_gone", provider=name)
            async with self._context.database.transaction() as connection:
                due = await tasks.claim_looks(connection, name, room=ROOM, lease_s=LEASE_S)
            for task, attempt in due:
                with contextlib.suppress(StaleAttempt):  # it has moved on meanwhile
                    await self._step(task, attempt)

    async def _step(self, task: TaskRow, attempt: AttemptRow) -> None:
        if task.state is State.SUBMITTING:
            news = News(task.id, attempt.number, setback=Setback.NO_ANSWER, excerpt="no answer was recorded")
            await self._advance.advance(news)
        elif task.state is State.REVIEW:
            if is_past(task.decide_by, task.now):
                await self._settle.settle(
                    Ending(
                        task.id,
                        task.attempt,
                        frozenset({State.REVIEW}),
                        State.FAILED,
                        cause="decide_by",
                        failure=NO_RESULT,
                    )
                )
        elif is_past(task.deadline_at, task.now):
            await self._looks.to_review(task, ReviewReason.PROVIDER_GONE)
