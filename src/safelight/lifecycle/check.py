"""The fallback poll: look at what has been silent too long, and bring everything to an end."""

from __future__ import annotations

import contextlib

import structlog

from safelight.db import decisions, gates, tasks
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.failure import Failure, FailureClass
from safelight.domain.news import AttemptOutcome, Setback
from safelight.domain.provider import Origin, Provider, ProviderUpdate, UpdateStatus
from safelight.domain.schedule import MAX_LOOKS_WITHOUT_PROGRESS, Pace, next_look_s
from safelight.domain.task import ReviewReason, State
from safelight.errors import ProviderError, StaleAttempt
from safelight.lifecycle.advance import Advance, News
from safelight.lifecycle.changes import Changes
from safelight.lifecycle.context import Context
from safelight.lifecycle.dispatch import Dispatch
from safelight.lifecycle.looks import CLOSED_LOOK_S, REVIEW_LOOK_S, Looks, count, is_past
from safelight.lifecycle.settle import Ending, Settle
from safelight.lifecycle.uncertain import Uncertain
from safelight.telemetry import point

log = structlog.get_logger()

LOOK_LEASE_S = 60.0
"""A look is over by then: its own time-outs are shorter."""
STUCK_SHARE = 0.2
STUCK_MIN = 10
"""Above this share of its running tasks (and at least so many), being stuck is the provider's trouble."""
NO_RESULT = Failure(FailureClass.UPSTREAM_FAULT, "no_result")
NOT_STARTED = Failure(FailureClass.ENVIRONMENT, "not_started")


class Check:
    """Looks at one task at a time; the caller claims which (the claim is the lease)."""

    def __init__(self, context: Context, advance: Advance, dispatch: Dispatch, settle: Settle) -> None:
        self._context = context
        self._advance = advance
        self._settle = settle
        self._looks = Looks(context, advance, dispatch)
        self._uncertain = Uncertain(context, advance, dispatch, self._looks)

    async def claim(self, provider_name: str, room: int) -> list[tuple[TaskRow, AttemptRow]]:
        """Take due looks of one provider, within its quota over all workers; a hanging one starves no other."""
        provider = self._context.providers.get(provider_name)
        per_s = provider.capabilities.polls_per_s if provider else None
        async with self._context.database.transaction() as connection:
            if per_s is not None:
                room = min(room, await gates.looks_free(connection, provider_name, per_s=per_s))
            if room < 1:
                return []
            due = await tasks.claim_looks(connection, provider_name, room=room, lease_s=LOOK_LEASE_S)
            if per_s is not None and due:
                await gates.take_looks(connection, provider_name, len(due), per_s=per_s)
            point("before_look_claim_commit")
        point("after_look_claim_commit")
        return due

    async def check(self, task: TaskRow, attempt: AttemptRow) -> None:
        """Look at a claimed task and do what its state asks for."""
        point("before_look")
        if task.state is State.SUBMITTING:
            await self._give_up_answer(task, attempt)
        elif task.state is State.UNCERTAIN:
            await self._clear_up(task, attempt)
        else:
            await self._look(task, attempt)

    async def fail_not_started(self, task: TaskRow) -> None:
        """A waiting task is past its start: the customer gets the credits back."""
        ending = Ending(
            task.id,
            task.attempt,
            frozenset({State.QUEUED, State.RETRYING}),
            State.FAILED,
            cause="start_by",
            failure=NOT_STARTED,
        )
        try:
            await self._settle.settle(ending)
        except StaleAttempt:
            log.info("started_after_all", task_id=str(task.id))

    async def _give_up_answer(self, task: TaskRow, attempt: AttemptRow) -> None:
        """Nobody recorded an answer in time (the worker died): it may have been accepted."""
        await self._advance.advance(
            News(task.id, attempt.number, setback=Setback.NO_ANSWER, excerpt="no answer was recorded")
        )

    async def _clear_up(self, task: TaskRow, attempt: AttemptRow) -> None:
        provider = self._context.provider(attempt.provider)
        if attempt.provider_ref is not None and provider.capabilities.can_poll:
            await self._look(task, attempt)  # news told its id meanwhile
        else:
            await self._uncertain.clear_up(provider, task, attempt)

    async def _look(self, task: TaskRow, attempt: AttemptRow) -> None:
        """Poll an accepted task; at its deadline this is the last look."""
        provider = self._context.provider(attempt.provider)
        is_only_stored_late = task.state is State.REVIEW and attempt.outcome is AttemptOutcome.SUCCEEDED
        if is_only_stored_late and not is_past(task.decide_by, task.now):
            await self._archive_after_all(task, attempt)
            return
        is_late = is_past(task.deadline_at, task.now)
        if task.cancel_requested_at is not None and await self._cancel(provider, task, attempt):
            return
        update = await self._poll(provider, task, attempt)
        is_open = update is None or update.status in (UpdateStatus.QUEUED, UpdateStatus.RUNNING)
        is_found = attempt.provider_ref is None and task.state is State.REVIEW
        if update is not None and (is_found or not is_open):
            await self._looks.take(task, attempt, update)
            return
        if task.state is State.REVIEW:
            await self._tend_review(task, attempt, update)
        elif is_late:
            await self._cancel(provider, task, attempt)
            await self._looks.to_review(task, ReviewReason.DEADLINE)
        else:
            await self._go_on(task, attempt, update)

    async def _poll(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> ProviderUpdate | None:
        """One look; None where it says nothing (an error, or an id that we never learned)."""
        if attempt.provider_ref is None:
            return await self._uncertain.find(provider, task, attempt)
        if not provider.capabilities.can_poll:
            return None
        try:
            point("before_poll")
            update = await provider.poll(task.reference_of(attempt))
            point("after_poll")
        except ProviderError as error:
            count(provider.name, error.code)
            log.warning("poll_failed", task_id=str(task.id), provider=provider.name, excerpt=error.excerpt)
            return None
        count(provider.name, update.status)
        return update

    async def _go_on(self, task: TaskRow, attempt: AttemptRow, update: ProviderUpdate | None) -> None:
        """The task runs on: plan the next look, or hand it to a person after too many without progress."""
        async with self._context.database.connection() as connection:
            pace = await self._context.paces.pace(connection, attempt.provider, attempt.upstream_model)
        looks = _looks_after(task, attempt, update, pace)
        if looks >= MAX_LOOKS_WITHOUT_PROGRESS and not await self._is_provider_stuck(attempt.provider):
            await self._looks.to_review(task, ReviewReason.NO_PROGRESS)
            return
        gap_s = next_look_s(pace, max(looks, 1))
        if task.deadline_at is not None:
            gap_s = min(gap_s, max((task.deadline_at - task.now).total_seconds(), 1.0))
        if update is None:
            await self._looks.note(task, looks=looks, wake_in_s=gap_s)
            return
        news = News(task.id, attempt.number, update=update, looks=looks, wake_in_s=gap_s)
        await self._advance.advance(news)

    async def _is_provider_stuck(self, provider_name: str) -> bool:
        """Whether so many are stuck together that it is one alert about the provider, and nobody is moved."""
        async with self._context.database.connection() as connection:
            running, stuck = await tasks.stuck_share(
                connection, provider_name, looks=MAX_LOOKS_WITHOUT_PROGRESS - 1
            )
        is_stuck = stuck >= STUCK_MIN and stuck > running * STUCK_SHARE
        if is_stuck:
            log.error("provider_stuck", provider=provider_name, running=running, stuck=stuck)
        return is_stuck

    async def _cancel(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> bool:
        """Ask for a cancel, best effort; True if it was confirmed and wished by the customer."""
        if attempt.provider_ref is None or not provider.capabilities.can_cancel:
            return False
        try:
            point("before_cancel_call")
            is_confirmed = await provider.cancel(task.reference_of(attempt))
            point("after_cancel_call")
        except ProviderError as error:
            log.warning("cancel_failed", task_id=str(task.id), provider=provider.name, code=error.code)
            return False
        if not is_confirmed or task.cancel_requested_at is None:
            return False
        update = ProviderUpdate(UpdateStatus.CANCELED, Origin.POLL, upstream_status="canceled")
        await self._advance.advance(News(task.id, attempt.number, update=update))
        return True

    async def _tend_review(self, task: TaskRow, attempt: AttemptRow, update: ProviderUpdate | None) -> None:
        """Undecided for too long: released at the operator's cost. Else genuine news moves it by itself."""
        if is_past(task.decide_by, task.now):
            ending = Ending(
                task.id,
                task.attempt,
                frozenset({State.REVIEW}),
                State.FAILED,
                cause="decide_by",
                failure=NO_RESULT,
            )
            with contextlib.suppress(StaleAttempt):  # news ended it meanwhile
                await self._settle.settle(ending)
            return
        if update is not None and await self._is_asked_for(task):
            await self._looks.take(task, attempt, update)
            return
        decide_in_s = (task.decide_by - task.now).total_seconds() if task.decide_by else REVIEW_LOOK_S
        await self._looks.note(task, looks=task.looks, wake_in_s=max(min(REVIEW_LOOK_S, decide_in_s), 1.0))

    async def _is_asked_for(self, task: TaskRow) -> bool:
        """Whether a person had this look made: then that it still runs is news, and it gets its time again."""
        async with self._context.database.connection() as connection:
            return await decisions.is_check_asked(connection, task.id, task.version)

    async def _archive_after_all(self, task: TaskRow, attempt: AttemptRow) -> None:
        """The pictures are known and only our storage stood in the way: try again once it lets us."""
        async with self._context.database.transaction() as connection:
            if gates.STORAGE in dict(await gates.closed_gates(connection)):
                note = {"id": task.id, "version": task.version, "wake_in_s": CLOSED_LOOK_S}
                await tasks.note_progress(connection, [note])
                return
            changes = Changes(await tasks.lock_tasks(connection, [task.id]))
            if changes.rows[task.id].version == task.version:
                lifetime_s = self._context.lifetime_s(attempt.provider)
                changes.move(task.id, State.ARCHIVING, cause="look", wake_in_s=0.0, lifetime_s=lifetime_s)
                await changes.write(connection)
            point("before_recopy_commit")
        point("after_recopy_commit")


def _looks_after(task: TaskRow, attempt: AttemptRow, update: ProviderUpdate | None, pace: Pace) -> int:
    """Looks without progress after this one. Errors do not count, and before the threshold nothing does."""
    if update is None:
        return task.looks
    has_moved = (
        update.upstream_status != attempt.upstream_status
        or (update.percent is not None and update.percent > (task.percent or 0))
        or (update.position is not None and task.position is not None and update.position < task.position)
    )
    if has_moved:
        return 0
    running_s = (task.now - task.state_since).total_seconds()
    return task.looks + 1 if running_s >= pace.p95_s else task.looks
