"""Hand tasks to providers: intent → call → running, retrying or uncertain."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from safelight.assets.store import staging_key
from safelight.db import gates, inbox, tasks
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.failure import Failure, FailureClass
from safelight.domain.news import Setback
from safelight.domain.provider import (
    Capabilities,
    Origin,
    Output,
    Provider,
    ProviderUpdate,
    Submission,
    UpdateStatus,
)
from safelight.domain.schedule import retry_after_s
from safelight.errors import (
    AssetError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    SubmissionUncertain,
)
from safelight.lifecycle.advance import Advance, News
from safelight.lifecycle.context import Context
from safelight.telemetry import GATES_CLOSED, SENDS, point

log = structlog.get_logger()

ANSWER_MARGIN_S = 30.0
"""Added to the declared time-out: until then a submit may still record its answer."""
SEND_WITHIN_S = 20.0
"""A send starts this soon after its claim or not at all; the rest of the lease is for the call."""
NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Claim:
    """A task with its committed attempt, to be sent now; `claimed_at` is a monotonic time in seconds."""

    task: TaskRow
    attempt: AttemptRow
    claimed_at: float


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
            taken = await tasks.capacity_taken(connection, provider_name)
            calls_free = min(room, _calls_free(capabilities, taken))
            if gate.failures:
                calls_free = min(calls_free, 1 - min(taken.calls, 1))  # one probe at a time
            images_free = (
                NO_LIMIT if capabilities.max_active is None else capabilities.max_active - taken.images
            )
            if calls_free < 1 or images_free < 1:
                return Claims([], is_limited=True)
            claimed = await tasks.claim_fairest(
                connection,
                provider_name,
                calls_free=calls_free,
                images_free=images_free,
                is_idle=taken.images == 0,
                answer_in_s=capabilities.submit_timeout_s + ANSWER_MARGIN_S,
            )
        now = time.monotonic()
        items = [Claim(task, attempt, now) for task, attempt in claimed]
        return Claims(items, is_limited=bool(items) and len(items) >= calls_free)

    async def send(self, claim: Claim) -> None:
        """T3: call the provider and record what came of it. Whatever happens, the row says what is known."""
        provider = self._context.provider(claim.task.provider)
        point("before_send")
        if time.monotonic() - claim.claimed_at > SEND_WITHIN_S:
            late = ProviderUnavailable("the claim is too old to be sent", reason="not_sent")
            news = self.news_of_error(claim.task, claim.attempt, late)
        else:
            news = await self.try_send(provider, claim.task, claim.attempt)
        point("after_send")
        await self._advance.advance(news)
        await self._tend_gate(provider.name, news)
        await self._match_unmatched(news, provider)

    async def try_send(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> News:
        """One HTTP try; every outcome is news. Pictures in the answer are staged before it is recorded."""
        try:
            update = await provider.submit(self._submission(provider, task, attempt))
        except ProviderError as error:
            return self.news_of_error(task, attempt, error)
        SENDS.labels(provider.name, update.status).inc()
        try:
            update = await self.stage(task.id, attempt.number, update)
        except AssetError as error:
            # The picture was made and could not be put down: with a key it can be asked for again.
            log.error("staging_failed", task_id=str(task.id), reason=error.reason)
            await self.close_storage(error)
            return News(task.id, attempt.number, setback=Setback.NO_ANSWER, excerpt="staging failed")
        return News(task.id, attempt.number, update=update)

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
            await self._context.store.put(key, output.data)
            staged.append(Output(staged_key=key))
        return replace(update, outputs=tuple(staged))

    def news_of_error(self, task: TaskRow, attempt: AttemptRow, error: ProviderError) -> News:
        """What a failed submit says about the attempt. The one question: may it have been accepted?"""
        SENDS.labels(task.provider, error.code).inc()
        log.warning(
            "send_failed",
            task_id=str(task.id),
            provider=task.provider,
            code=error.code,
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
                is_throttled=error.reason == "rate_limited",
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
        log.error("storage_unavailable", reason=error.reason, closed_s=round(for_s, 1))

    def _submission(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> Submission:
        return Submission(
            reference=attempt.reference,
            upstream_model=task.upstream_model,
            operation=task.operation,
            prompt=task.prompt,
            n=task.n,
            size=task.size,
            aspect_ratio=task.aspect_ratio,
            images=task.images,
            options=task.options,
            callback_url=self._callback_url(provider, task, attempt),
        )

    def _callback_url(self, provider: Provider, task: TaskRow, attempt: AttemptRow) -> str | None:
        public_url = self._context.settings.public_url
        if public_url is None or not provider.capabilities.calls_back:
            return None
        token = self._context.tokens.issue(task.id, attempt.number)
        return f"{public_url.rstrip('/')}/callbacks/{provider.name}/{token}"

    async def _tend_gate(self, provider_name: str, news: News) -> None:
        """429 closes the shared gate; an environment fault counts towards the breaker; an answer opens it."""
        if news.setback is not Setback.TURNED_AWAY:
            if news.setback is None:
                await self._open_gate(provider_name)
            return
        async with self._context.database.transaction() as connection:
            failures = await gates.gate_failures(connection, provider_name)
            for_s = retry_after_s(failures + 1, asked_s=news.retry_after_s)
            await gates.close_gate(
                connection, provider_name, for_s=for_s, reason=news.excerpt, is_failure=not news.is_throttled
            )
        GATES_CLOSED.labels(provider_name).set(1)
        level = log.warning if news.is_throttled else log.error
        level("gate_closed", provider=provider_name, reason=news.excerpt, closed_s=round(for_s, 1))

    async def _open_gate(self, provider_name: str) -> None:
        async with self._context.database.connection() as connection:
            if await gates.gate_failures(connection, provider_name):
                await gates.open_gate(connection, provider_name)
                GATES_CLOSED.labels(provider_name).set(0)
                log.info("gate_opened", provider=provider_name)

    async def _match_unmatched(self, news: News, provider: Provider) -> None:
        """Apply callbacks that came before this provider_ref was known."""
        ref = news.update.provider_ref if news.update else None
        if ref is None or not provider.capabilities.calls_back:
            return
        async with self._context.database.connection() as connection:
            bodies = await inbox.unmatched(connection, provider.name, ref)
        for raw in bodies:
            update = provider.read_callback(raw)
            await self._advance.advance(News(news.task_id, news.attempt, update=update))


def _calls_free(capabilities: Capabilities, taken: tasks.Taken) -> int:
    free = capabilities.max_calls - taken.calls
    if capabilities.calls_per_s is not None:
        free = min(free, max(int(capabilities.calls_per_s), 1) - taken.sent_last_second)
    return free
