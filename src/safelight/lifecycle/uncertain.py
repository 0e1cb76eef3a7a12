"""An uncertain submit to its end: the same key again, looked up, found in the list, called back, or a person."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import structlog

from safelight.db import gates, reconciliation, tasks
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.failure import MAX_SENDS
from safelight.domain.news import Setback
from safelight.domain.provider import (
    AfterUncertain,
    Origin,
    Provider,
    ProviderUpdate,
    RecordKey,
    UpdateStatus,
    UpstreamRecord,
)
from safelight.domain.recognition import Recognition, Sight, Wanted, recognise
from safelight.domain.task import ReviewReason
from safelight.errors import ProviderError
from safelight.lifecycle.advance import Advance, News
from safelight.lifecycle.context import Context
from safelight.lifecycle.dispatch import ANSWER_MARGIN_S, Dispatch
from safelight.lifecycle.listing import read_window, told_by_id
from safelight.lifecycle.looks import CLOSED_LOOK_S, Looks, count, is_past, until_deadline_s
from safelight.telemetry import point

log = structlog.get_logger()

ABSENT_LOOKS = 2
"""Looks that must not find an attempt before it counts as never accepted."""
LIST_WITHIN_S = 30.0
"""Pages are begun so long; the look is over within its lease."""
MAX_LIST_GAP_S = 60.0


class Uncertain:
    """Clears up what may have been accepted. Nothing is sent again but under its own key."""

    def __init__(self, context: Context, advance: Advance, dispatch: Dispatch, looks: Looks) -> None:
        self._context = context
        self._advance = advance
        self._dispatch = dispatch
        self._looks = looks

    async def clear_up(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> None:
        """One step for an attempt whose id at the provider is not known."""
        how = provider.capabilities.after_uncertain
        if not attempt.has_had_its_chance and self._context.routing.may_have_gone_elsewhere(task):
            await self._look_here_only(provider, task, attempt)
        elif how is AfterUncertain.LOOK_UP:
            await self._look_up(provider, task, attempt)
        elif how is AfterUncertain.LIST:
            await self._look_in_list(provider, task, attempt)
        elif is_past(task.deadline_at, task.now):
            await self._looks.to_review(task, ReviewReason.SUBMIT_UNCERTAIN)
        elif how is AfterUncertain.SAME_KEY and attempt.sends - attempt.throttled < MAX_SENDS:
            await self._send_again(provider, task, attempt)
        elif not self._may_hear(provider):
            await self._looks.to_review(task, ReviewReason.SUBMIT_UNCERTAIN)
        else:
            await self._looks.note(task, looks=task.looks, wake_in_s=until_deadline_s(task))

    async def find(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> ProviderUpdate | None:
        """What the provider says of an attempt whose id we never learned; None where that is nothing."""
        how = provider.capabilities.after_uncertain
        update: ProviderUpdate | None = None
        try:
            if how is AfterUncertain.LOOK_UP:
                update = await provider.look_up(task.reference_of(attempt))
            elif how is AfterUncertain.LIST:
                found = await self._recognise(provider, task, attempt)
                update = await self._told(provider, task, attempt, found.record) if found.record else None
            else:
                return None
        except ProviderError as error:
            count(provider.name, error.code)
            log.warning("look_up_failed", task_id=str(task.id), provider=provider.name, excerpt=error.excerpt)
            return None
        count(provider.name, update.status if update else "absent")
        return update

    async def _look_here_only(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> None:
        """After a restore nothing was sent by us, and the forgotten attempt may have been made at another place.

        Only finding it proves anything: that it is not here says nothing of the other routes and keys.
        """
        update = await self.find(provider, task, attempt)
        if update is not None:
            await self._looks.take(task, attempt, update)
        else:
            await self._looks.to_review(task, ReviewReason.SUBMIT_UNCERTAIN)

    def _may_hear(self, provider: Provider) -> bool:
        """Whether a callback may still tell; without one no news can ever come."""
        return provider.capabilities.calls_back and self._context.is_called_back(provider.name)

    async def _send_again(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> None:
        answer_in_s = provider.capabilities.submit_timeout_s + ANSWER_MARGIN_S
        async with self._context.database.transaction() as connection:
            closed = dict(await gates.closed_gates(connection))
            is_closed = gates.STORAGE in closed or provider.name in closed
            if not is_closed and not await tasks.note_send(
                connection, task.id, attempt.number, answer_in_s=answer_in_s
            ):
                return  # it has moved on
            point("before_send_again_commit")
        point("after_send_again_commit")
        if is_closed:
            await self._looks.note(task, looks=task.looks, wake_in_s=CLOSED_LOOK_S)
            return
        news = await self._dispatch.try_send(provider, task, attempt)
        await self._advance.advance(news)
        if news.setback is not None:
            gap_s = max(2.0**attempt.sends, news.retry_after_s or 0.0)
            await self._looks.note(task, looks=task.looks, wake_in_s=min(gap_s, 60.0))

    async def _look_up(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> None:
        try:
            point("before_look_up")
            update = await provider.look_up(task.reference_of(attempt))
            point("after_look_up")
        except ProviderError as error:
            await self._not_told(provider, task, error)
            return
        count(provider.name, update.status if update else "absent")
        if update is not None:
            await self._looks.take(task, attempt, update)
        else:
            await self._absent(provider, task, attempt)

    async def _look_in_list(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> None:
        try:
            found = await self._recognise(provider, task, attempt)
        except ProviderError as error:
            await self._not_told(provider, task, error)
            return
        if found.record is not None:
            await self._looks.take(task, attempt, await self._told(provider, task, attempt, found.record))
        elif found.sight is Sight.ABSENT and self._has_exact_key(provider):
            await self._absent(provider, task, attempt)
        elif is_past(task.deadline_at, task.now):
            await self._looks.to_review(task, ReviewReason.SUBMIT_UNCERTAIN)
        else:
            # It may still come up, or the others that look like it may be told apart.
            gap_s = max(provider.capabilities.visibility_delay_s, 1.0) * 2.0 ** min(task.looks, 10)
            wake_in_s = min(gap_s, MAX_LIST_GAP_S, until_deadline_s(task))
            await self._looks.note(task, looks=task.looks + 1, wake_in_s=wake_in_s)

    async def _recognise(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> Recognition:
        """Read the list for the time in which the attempt may have been made, and compare."""
        owner = (task.id, attempt.number)
        skew = timedelta(seconds=provider.capabilities.clock_skew_s)
        async with self._context.database.connection() as connection:
            since, until = await reconciliation.span_of_attempt(connection, owner)
        window = await read_window(
            self._context, provider, since - skew, until + skew, within_s=LIST_WITHIN_S
        )
        refs = [(provider.name, record.provider_ref) for record in window.records]
        async with self._context.database.connection() as connection:
            # In this order: a rival whose record becomes known in between is then taken, and no rival any more.
            has_rival = await reconciliation.has_rival(
                connection,
                provider.name,
                owner,
                prompt=task.prompt,
                upstream_model=attempt.upstream_model,
                since=since - skew,
                until=until + skew,
            )
            known = await tasks.taken_provider_refs(connection, refs) if refs else {}
        found = recognise(
            window.records,
            Wanted(owner, attempt.reference, task.prompt, attempt.upstream_model),
            is_complete=window.is_complete,
            read_token=self._context.tokens.read,
            taken={ref for (_, ref), one in known.items() if one != owner},
            has_rival=has_rival,
        )
        log.info("looked_in_list", task_id=str(task.id), provider=provider.name, sight=found.sight)
        return found

    async def _told(
        self, provider: Provider, task: TaskRow, attempt: AttemptRow, record: UpstreamRecord
    ) -> ProviderUpdate:
        """The record as news. Where it cannot be asked how it ended, its id alone lets the poller ask later."""
        try:
            update = await told_by_id(self._context, provider, task.reference_of(attempt), record)
        except ProviderError as error:
            count(provider.name, error.code)
            update = replace(record.update, status=UpdateStatus.RUNNING, outputs=(), failure=None)
        return replace(update, origin=Origin.LOOK_UP)

    def _has_exact_key(self, provider: Provider) -> bool:
        """Whether its record would name the attempt, so that not finding one proves something."""
        keys = provider.capabilities.record_keys
        has_address = self._context.settings.public_url is not None
        return RecordKey.REFERENCE in keys or (RecordKey.CALLBACK_URL in keys and has_address)

    async def _absent(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> None:
        """The provider does not know it: once may be too early, after the visibility delay it is proof."""
        if task.looks + 1 >= ABSENT_LOOKS:
            await self._advance.advance(News(task.id, attempt.number, setback=Setback.PROVED_ABSENT))
            return
        delay_s = max(provider.capabilities.visibility_delay_s, 1.0)
        await self._looks.note(task, looks=task.looks + 1, wake_in_s=delay_s)

    async def _not_told(self, provider: Provider, task: TaskRow, error: ProviderError) -> None:
        count(provider.name, error.code)
        if is_past(task.deadline_at, task.now):
            await self._looks.to_review(task, ReviewReason.SUBMIT_UNCERTAIN)
        else:
            await self._looks.note(task, looks=task.looks, wake_in_s=CLOSED_LOOK_S)
