"""The fallback poll: look at what has been silent too long, and bring everything to an end."""

from __future__ import annotations

import contextlib
from datetime import datetime

import structlog

from safelight.db import gates, tasks
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.failure import MAX_SENDS, Failure, FailureClass
from safelight.domain.news import AttemptOutcome, Setback
from safelight.domain.provider import AfterUncertain, Origin, Provider, ProviderUpdate, UpdateStatus
from safelight.domain.schedule import MAX_LOOKS_WITHOUT_PROGRESS, Pace, next_look_s
from safelight.domain.task import ReviewReason, State
from safelight.errors import AssetError, ProviderError, StaleAttempt
from safelight.lifecycle.advance import Advance, News
from safelight.lifecycle.changes import Changes
from safelight.lifecycle.context import Context
from safelight.lifecycle.dispatch import ANSWER_MARGIN_S, Dispatch
from safelight.lifecycle.settle import Ending, Settle
from safelight.telemetry import POLLS, point

log = structlog.get_logger()

LOOK_LEASE_S = 60.0
"""A look is over by then: its own time-outs are shorter."""
CLOSED_LOOK_S = 5.0
"""Pause before a provider (or a storage) that cannot be asked now is tried again."""
REVIEW_LOOK_S = 600.0
"""Slow polling of tasks that wait for a person."""
ABSENT_LOOKS = 2
"""Look-ups that must not find an attempt before it counts as never accepted."""
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
        self._dispatch = dispatch
        self._settle = settle

    async def claim(self, provider_name: str, room: int) -> list[tuple[TaskRow, AttemptRow]]:
        """Take due looks of one provider; a hanging provider starves no other."""
        async with self._context.database.transaction() as connection:
            return await tasks.claim_looks(connection, provider_name, room=room, lease_s=LOOK_LEASE_S)

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
        provider = self._context.provider(task.provider)
        how = provider.capabilities.after_uncertain
        if attempt.provider_ref is not None and provider.capabilities.can_poll:
            await self._look(task, attempt)
        elif how is AfterUncertain.LOOK_UP:
            await self._look_up(provider, task, attempt)
        elif _is_past(task.deadline_at, task.now):
            await self._to_review(task, ReviewReason.SUBMIT_UNCERTAIN)
        elif how is AfterUncertain.SAME_KEY and attempt.sends - attempt.throttled < MAX_SENDS:
            await self._send_again(provider, task, attempt)
        elif not self._can_call_back(provider):
            await self._to_review(task, ReviewReason.SUBMIT_UNCERTAIN)  # no news can ever come
        else:
            await self._note_look(task, looks=task.looks, wake_in_s=self._until_deadline_s(task))

    def _can_call_back(self, provider: Provider) -> bool:
        return provider.capabilities.calls_back and self._context.settings.public_url is not None

    async def _send_again(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> None:
        answer_in_s = provider.capabilities.submit_timeout_s + ANSWER_MARGIN_S
        async with self._context.database.transaction() as connection:
            closed = dict(await gates.closed_gates(connection))
            is_closed = gates.STORAGE in closed or provider.name in closed
            if not is_closed and not await tasks.note_send(
                connection, task.id, attempt.number, answer_in_s=answer_in_s
            ):
                return  # it has moved on
        if is_closed:
            await self._note_look(task, looks=task.looks, wake_in_s=CLOSED_LOOK_S)
            return
        news = await self._dispatch.try_send(provider, task, attempt)
        await self._advance.advance(news)
        if news.setback is not None:
            gap_s = max(2.0**attempt.sends, news.retry_after_s or 0.0)
            await self._note_look(task, looks=task.looks, wake_in_s=min(gap_s, 60.0))

    async def _look_up(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> None:
        try:
            update = await provider.look_up(task.reference_of(attempt))
        except ProviderError as error:
            self._count(provider.name, error.code)
            if _is_past(task.deadline_at, task.now):
                await self._to_review(task, ReviewReason.SUBMIT_UNCERTAIN)
            else:
                await self._note_look(task, looks=task.looks, wake_in_s=CLOSED_LOOK_S)
            return
        self._count(provider.name, update.status if update else "absent")
        if update is not None:
            await self._take(task, attempt, update)
        elif task.looks + 1 >= ABSENT_LOOKS:
            await self._advance.advance(News(task.id, attempt.number, setback=Setback.PROVED_ABSENT))
        else:
            delay_s = max(provider.capabilities.visibility_delay_s, 1.0)
            await self._note_look(task, looks=task.looks + 1, wake_in_s=delay_s)

    async def _look(self, task: TaskRow, attempt: AttemptRow) -> None:
        """Poll an accepted task; at its deadline this is the last look."""
        provider = self._context.provider(task.provider)
        is_only_stored_late = task.state is State.REVIEW and attempt.outcome is AttemptOutcome.SUCCEEDED
        if is_only_stored_late and not _is_past(task.decide_by, task.now):
            await self._archive_after_all(task)
            return
        is_late = _is_past(task.deadline_at, task.now)
        if task.cancel_requested_at is not None and await self._cancel(provider, task, attempt):
            return
        update = await self._poll(provider, task, attempt)
        if update is not None and update.status not in (UpdateStatus.QUEUED, UpdateStatus.RUNNING):
            await self._take(task, attempt, update)
            return
        if task.state is State.REVIEW:
            await self._tend_review(task, attempt, update)
        elif is_late:
            await self._cancel(provider, task, attempt)
            await self._to_review(task, ReviewReason.DEADLINE)
        else:
            await self._go_on(task, attempt, update)

    async def _poll(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> ProviderUpdate | None:
        """One look; None where it says nothing (an error, or an id that we never learned)."""
        capabilities = provider.capabilities
        try:
            if attempt.provider_ref is not None and capabilities.can_poll:
                update: ProviderUpdate | None = await provider.poll(task.reference_of(attempt))
            elif attempt.provider_ref is None and capabilities.after_uncertain is AfterUncertain.LOOK_UP:
                update = await provider.look_up(task.reference_of(attempt))
            else:
                return None
        except ProviderError as error:
            self._count(provider.name, error.code)
            log.warning("poll_failed", task_id=str(task.id), provider=provider.name, excerpt=error.excerpt)
            return None
        self._count(provider.name, update.status if update else "absent")
        return update

    async def _take(self, task: TaskRow, attempt: AttemptRow, update: ProviderUpdate) -> None:
        try:
            update = await self._dispatch.stage(task.id, attempt.number, update)
        except AssetError as error:
            await self._dispatch.close_storage(error)
            return
        await self._advance.advance(News(task.id, attempt.number, update=update))

    async def _go_on(self, task: TaskRow, attempt: AttemptRow, update: ProviderUpdate | None) -> None:
        """The task runs on: plan the next look, or hand it to a person after too many without progress."""
        async with self._context.database.connection() as connection:
            pace = await self._context.paces.pace(connection, task.provider, task.upstream_model)
        looks = _looks_after(task, attempt, update, pace)
        if looks >= MAX_LOOKS_WITHOUT_PROGRESS and not await self._is_provider_stuck(task.provider):
            await self._to_review(task, ReviewReason.NO_PROGRESS)
            return
        gap_s = next_look_s(pace, max(looks, 1))
        if task.deadline_at is not None:
            gap_s = min(gap_s, max((task.deadline_at - task.now).total_seconds(), 1.0))
        if update is None:
            await self._note_look(task, looks=looks, wake_in_s=gap_s)
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
            is_confirmed = await provider.cancel(task.reference_of(attempt))
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
        if _is_past(task.decide_by, task.now):
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
        decide_in_s = (task.decide_by - task.now).total_seconds() if task.decide_by else REVIEW_LOOK_S
        await self._note_look(task, looks=task.looks, wake_in_s=max(min(REVIEW_LOOK_S, decide_in_s), 1.0))

    async def _archive_after_all(self, task: TaskRow) -> None:
        """The pictures are known and only our storage stood in the way: try again once it lets us."""
        async with self._context.database.transaction() as connection:
            if gates.STORAGE in dict(await gates.closed_gates(connection)):
                note = {"id": task.id, "version": task.version, "wake_in_s": CLOSED_LOOK_S}
                await tasks.note_progress(connection, [note])
                return
            changes = Changes(await tasks.lock_tasks(connection, [task.id]))
            if changes.rows[task.id].version == task.version:
                lifetime_s = self._context.lifetime_s(task.provider)
                changes.move(task.id, State.ARCHIVING, cause="look", wake_in_s=0.0, lifetime_s=lifetime_s)
                await changes.write(connection)

    async def _to_review(self, task: TaskRow, reason: ReviewReason) -> None:
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

    async def _note_look(self, task: TaskRow, *, looks: int, wake_in_s: float) -> None:
        async with self._context.database.transaction() as connection:
            note = {"id": task.id, "version": task.version, "looks": looks, "wake_in_s": wake_in_s}
            await tasks.note_progress(connection, [note])

    def _until_deadline_s(self, task: TaskRow) -> float:
        return max((task.deadline_at - task.now).total_seconds(), 1.0) if task.deadline_at else REVIEW_LOOK_S

    def _count(self, provider_name: str, result: str) -> None:
        POLLS.labels(provider_name, result).inc()


def _is_past(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now


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
