"""Hand tasks to providers: intent → call → running, retrying or uncertain."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from safelight.assets.store import staging_key
from safelight.db import gates, inbox, tasks
from safelight.db.group import Group
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.capacity import free_of, rate_window
from safelight.domain.failure import TREATMENTS, Failure, FailureClass
from safelight.domain.news import Setback
from safelight.domain.provider import (
    Origin,
    Output,
    Provider,
    ProviderUpdate,
    Submission,
    Trust,
    UpdateStatus,
)
from safelight.domain.routes import RATE_LIMITED
from safelight.domain.schedule import retry_after_s
from safelight.errors import (
    AssetError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    SubmissionUncertain,
)
from safelight.lifecycle.advance import RESTORED, Advance, News
from safelight.lifecycle.context import Context
from safelight.lifecycle.handover import PUBLIC_URL_NEEDED, Handover, Pictures
from safelight.lifecycle.progress import ProgressNotes
from safelight.telemetry import SENDS, point

log = structlog.get_logger()

ANSWER_MARGIN_S = 30.0
"""Added to the declared time-out: until then a submit may still record its answer."""
SEND_WITHIN_S = 20.0
"""A send starts this soon after its claim or not at all; the rest of the lease is for the call."""
TOO_LATE = "too_late"
STORAGE_FAILED = "storage"
MAX_FAULTS = 5
"""Calls in a row that fail upstream (its own faults, time-outs, answers that say nothing) before the breaker opens.

In a row, and not a share over a window: that is one number for all workers, reached within seconds at any traffic, and
chance does no harm, since the breaker first closes for a second and one good probe opens it. A run that fails after it
was accepted does not count: the prompt may be to blame, and one customer must not stop the others.
"""
FAULTS = "faults"
OURS = frozenset({TOO_LATE, STORAGE_FAILED, PUBLIC_URL_NEEDED, RESTORED})
"""Why we turn a send away ourselves: the provider has no part in it, and its gate stays as it is."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A task with its committed attempt, to be sent now; `claimed_at` is a monotonic time in seconds.

    `is_probe` says that the provider's gate has failures or faults behind it, which a success forgets.
    """

    task: TaskRow
    attempt: AttemptRow
    claimed_at: float
    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class Claims:
    """What a permit took; `is_limited` says that more may be due than could be taken."""

    items: list[Claim]
    is_limited: bool


class Dispatch:
    """Claims what fits and sends it. No connection is held during a call."""

    def __init__(self, context: Context, advance: Advance) -> None:
        self._context = context
        self._advance = advance
        self._handover = Handover(context)
        self._unmatched: Group[tuple[str, str], list[bytes]] = Group(
            context.database, inbox.unmatched, name="unmatched"
        )

    async def claim(self, provider_name: str, room: int) -> Claims:
        """T2: claim the fairest due tasks, at most `room`, within the provider's limits, and commit."""
        provider = self._context.providers.get(provider_name)
        if provider is None or room < 1:
            return Claims([], is_limited=False)
        capabilities = provider.capabilities
        async with self._context.database.transaction() as connection:
            gate = await gates.lock_gate(connection, provider_name)
            closed = dict(await gates.closed_gates(connection))
            if gate.is_closed or gates.STORAGE in closed:
                return Claims([], is_limited=False)
            window_s, _ = rate_window(capabilities)
            taken = await tasks.capacity_taken(connection, provider_name, window_s=window_s)
            free = free_of(capabilities, taken, is_probing=gate.failures > 0)
            calls_free = min(room, free.calls)
            if calls_free < 1 or free.images < 1:
                return Claims([], is_limited=True)
            claimed = await tasks.claim_fairest(
                connection,
                provider_name,
                calls_free=calls_free,
                images_free=free.images,
                is_idle=taken.images == 0,
                answer_in_s=capabilities.submit_timeout_s + ANSWER_MARGIN_S,
                retired=self._context.routing.retired(provider_name, gate.now.date()),
            )
            point("before_claim_commit")
        point("after_claim_commit")
        now = time.monotonic()
        is_probe = gate.failures > 0 or gate.faults > 0
        items = [Claim(task, attempt, now, is_probe=is_probe) for task, attempt in claimed]
        return Claims(items, is_limited=bool(items) and len(items) >= calls_free)

    async def send(self, claim: Claim) -> None:
        """T3: call the provider and record what came of it. Whatever happens, the row says what is known."""
        provider = self._context.provider(claim.attempt.provider)
        point("before_send")
        if claim.attempt.number <= claim.task.look_until:
            # This database was restored: the attempt may have been made already, by a safelight that we forgot.
            news = News(
                claim.task.id,
                claim.attempt.number,
                setback=Setback.NO_ANSWER,
                reason=RESTORED,
                excerpt=RESTORED,
            )
        elif time.monotonic() - claim.claimed_at > SEND_WITHIN_S:
            late = ProviderUnavailable("the claim is too old to be sent", reason=TOO_LATE)
            news = self.news_of_error(claim.task, claim.attempt, late)
        else:
            news = await self.try_send(provider, claim.task, claim.attempt)
        point("after_send")
        await self._record(claim, news)
        await self._tend_gate(provider.name, news, is_probe=claim.is_probe)
        await self._match_unmatched(news, provider)

    async def _record(self, claim: Claim, news: News) -> None:
        """Write down what came of a send; if that fails, the log at least says what the upstream told."""
        try:
            await self._advance.advance(news)
        except BaseException:
            update = news.update
            log.error(
                "answer_not_recorded",
                task_id=str(claim.task.id),
                attempt=claim.attempt.number,
                provider=claim.attempt.provider,
                provider_ref=update.provider_ref if update else None,
                outcome=update.status if update else news.setback,
            )
            raise

    async def try_send(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> News:
        """One HTTP try; every outcome is news. Pictures in the answer are staged before it is recorded."""
        try:
            pictures = await self._handover.load(provider, task)
        except AssetError as error:
            return await self._without_inputs(task, attempt, error)
        except ProviderRefused as error:
            return self.news_of_error(task, attempt, error)
        notes = ProgressNotes(self._context.database, task)
        submission = self._submission(provider, task, attempt, pictures)
        try:
            point("before_submit")
            update = await provider.submit(replace(submission, report=notes.report))
            point("after_submit")
        except ProviderError as error:
            return self.news_of_error(task, attempt, error)
        finally:
            await notes.close()
        SENDS.labels(provider.name, update.status).inc()
        try:
            update = await self.stage(task.id, attempt.number, update)
        except AssetError as error:
            # The picture was made and could not be put down: with a key it can be asked for again.
            log.error("staging_failed", task_id=str(task.id), reason=error.reason)
            await self.close_storage(error)
            return News(
                task.id, attempt.number, setback=Setback.NO_ANSWER, reason="storage", excerpt="staging failed"
            )
        return News(task.id, attempt.number, update=update)

    async def _without_inputs(self, task: TaskRow, attempt: AttemptRow, error: AssetError) -> News:
        """The inputs cannot be read: nothing went out, and neither provider nor attempt is to blame."""
        log.error("inputs_unreadable", task_id=str(task.id), reason=error.reason, detail=str(error))
        if error.reason == STORAGE_FAILED:
            await self.close_storage(error)
        # A single file that is gone must not stop everybody: its task alone waits, and fails in the end.
        away = ProviderUnavailable("the inputs cannot be read", reason=STORAGE_FAILED)
        return self.news_of_error(task, attempt, away)

    async def stage(self, task_id: UUID, attempt: int, update: ProviderUpdate) -> ProviderUpdate:
        """Put pictures that came inside an answer into our storage, so that a death now costs nothing."""
        if not any(output.data for output in update.outputs):
            return update
        staged: list[Output] = []
        for position, output in enumerate(update.outputs):
            if output.data is None:
                staged.append(output)
                continue
            key = staging_key(task_id, attempt, position)
            point("before_stage")
            await self._context.store.put(key, output.data)
            point("after_stage")
            staged.append(Output(staged_key=key))
        return replace(update, outputs=tuple(staged))

    async def believable(
        self, provider: Provider, task_id: UUID, attempt: int, update: ProviderUpdate
    ) -> ProviderUpdate:
        """What a verified callback may do: a provider that is not trusted with its body only hints.

        Pictures inside it are staged; if that fails it hints as well, and the look asks for them again.
        """
        hint = replace(update, status=UpdateStatus.HINT, outputs=())
        if provider.capabilities.trust is Trust.HINT:
            return hint
        if self._context.is_observed(provider.name):
            return update  # nothing is done with its pictures
        try:
            return await self.stage(task_id, attempt, update)
        except AssetError as error:
            await self.close_storage(error)
            return hint

    def news_of_error(self, task: TaskRow, attempt: AttemptRow, error: ProviderError) -> News:
        """What a failed submit says about the attempt. The one question: may it have been accepted?"""
        SENDS.labels(attempt.provider, error.code).inc()
        log.warning(
            "send_failed",
            task_id=str(task.id),
            provider=attempt.provider,
            code=error.code,
            detail=str(error),
            excerpt=error.excerpt,
        )
        if isinstance(error, ProviderRefused):
            failure = Failure(FailureClass(error.failure_class), error.failure_code)
            is_blocked = failure.failure_class is FailureClass.CONTENT_BLOCKED
            status = UpdateStatus.BLOCKED if is_blocked else UpdateStatus.FAILED
            update = ProviderUpdate(
                status, Origin.ANSWER, upstream_status="refused", failure=failure, excerpt=error.excerpt
            )
            return News(task.id, attempt.number, update=update, retry_after_s=error.retry_after_s)
        if isinstance(error, ProviderUnavailable):
            return News(
                task.id,
                attempt.number,
                setback=Setback.TURNED_AWAY,
                reason=error.reason,
                retry_after_s=error.retry_after_s,
                excerpt=error.reason,
            )
        cause = "uncertain" if isinstance(error, SubmissionUncertain) else error.code
        return News(task.id, attempt.number, setback=Setback.NO_ANSWER, excerpt=error.excerpt or cause)

    async def close_storage(self, error: AssetError) -> None:
        """Our own storage fails: nothing is dispatched anywhere until it is tried again."""
        async with self._context.database.transaction() as connection:
            failures = await gates.gate_failures(connection, gates.STORAGE)
            for_s = retry_after_s(failures + 1)
            await gates.close_gate(
                connection, gates.STORAGE, for_s=for_s, reason=error.reason, is_failure=True
            )
            point("before_storage_gate_commit")
        point("after_storage_gate_commit")
        log.error("storage_unavailable", reason=error.reason, closed_s=round(for_s, 1))

    def _submission(
        self, provider: Provider, task: TaskRow, attempt: AttemptRow, pictures: Pictures
    ) -> Submission:
        return Submission(
            reference=attempt.reference,
            upstream_model=attempt.upstream_model,
            operation=task.operation,
            prompt=task.prompt,
            n=task.n,
            size=task.size,
            aspect_ratio=task.aspect_ratio,
            images=pictures.images,
            mask=pictures.mask,
            options=task.options,
            callback_url=self._callback_url(provider, task, attempt),
        )

    def _callback_url(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> str | None:
        public_url = self._context.settings.public_url
        if public_url is None or not provider.capabilities.calls_back:
            return None
        token = self._context.tokens.issue(task.id, attempt.number)
        return f"{public_url.rstrip('/')}/callbacks/{provider.name}/{token}"

    async def _tend_gate(self, provider_name: str, news: News, *, is_probe: bool) -> None:
        """429 closes the shared gate; what is not the task's own counts towards the breaker; an answer opens it."""
        reason = _gate_reason(news)
        if reason in OURS:
            return
        if reason is not None:
            await self._close_gate(provider_name, news, reason)
        elif _is_fault(news):
            await self._count_fault(provider_name, news)
        elif is_probe:
            await self._open_gate(provider_name)

    async def _count_fault(self, provider_name: str, news: News) -> None:
        """Enough faults in a row open the breaker, and so does a single one of a probe."""
        async with self._context.database.transaction() as connection:
            faults, failures = await gates.count_fault(connection, provider_name)
            point("before_fault_commit")
        point("after_fault_commit")
        if faults >= MAX_FAULTS or failures:
            await self._close_gate(provider_name, news, FAULTS)

    async def _close_gate(self, provider_name: str, news: News, reason: str) -> None:
        # A limit with a time to wait is no failure: after it the provider takes as many as before.
        is_failure = reason != RATE_LIMITED or news.retry_after_s is None
        async with self._context.database.transaction() as connection:
            failures = await gates.gate_failures(connection, provider_name)
            for_s = retry_after_s(failures + 1, asked_s=news.retry_after_s)
            await gates.close_gate(
                connection, provider_name, for_s=for_s, reason=reason, is_failure=is_failure
            )
            point("before_gate_commit")
        point("after_gate_commit")
        level = log.warning if reason == RATE_LIMITED else log.error
        level("gate_closed", provider=provider_name, reason=reason, closed_s=round(for_s, 1))

    async def _open_gate(self, provider_name: str) -> None:
        async with self._context.database.connection() as connection:
            point("before_gate_open")
            has_opened = await gates.open_gate(connection, provider_name)
        point("after_gate_open")
        if has_opened:
            log.info("gate_opened", provider=provider_name)

    async def _match_unmatched(self, news: News, provider: Provider) -> None:
        """Apply callbacks that came before this provider_ref was known."""
        ref = news.update.provider_ref if news.update else None
        is_heard = provider.capabilities.calls_back and not self._context.is_observed(provider.name)
        if ref is None or not is_heard:
            return
        bodies = await self._unmatched.do((provider.name, ref))
        for raw in bodies:
            point("before_match")
            update = await self.believable(provider, news.task_id, news.attempt, provider.read_callback(raw))
            await self._advance.advance(News(news.task_id, news.attempt, update=update))


def _gate_reason(news: News) -> str | None:
    """Why the provider's gate must close, or would if the reason were not ours; None if the news is no reason."""
    if news.setback is Setback.TURNED_AWAY or news.reason in OURS:
        return news.reason
    failure = news.update.failure if news.update else None
    if failure is not None and TREATMENTS[failure.failure_class].opens_breaker:
        return failure.code
    return None


def _is_fault(news: News) -> bool:
    """Whether a call failed upstream in a way that says nothing against the task."""
    failure = news.update.failure if news.update else None
    is_own_fault = failure is not None and failure.failure_class is FailureClass.UPSTREAM_FAULT
    return is_own_fault or news.setback is Setback.NO_ANSWER
