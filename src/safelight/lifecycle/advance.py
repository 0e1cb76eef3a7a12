"""The one door for news: callback, poll, answer and look-up all change a task here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import structlog

from safelight.db import inbox, ledger, tasks
from safelight.db.group import Group
from safelight.db.inbox import CallbackRow
from safelight.db.statements import Connection
from safelight.db.tasks import AttemptRow, TaskRow, outputs_json
from safelight.domain.failure import MAX_SENDS
from safelight.domain.news import (
    AttemptOutcome,
    Decision,
    Setback,
    Standing,
    Verdict,
    decide,
    decide_setback,
)
from safelight.domain.provider import Origin, ProviderUpdate, UpdateStatus
from safelight.domain.routes import RATE_LIMITED, Place
from safelight.domain.schedule import first_look_s, retry_after_s
from safelight.domain.task import State, is_terminal
from safelight.lifecycle.changes import Changes
from safelight.lifecycle.context import Context
from safelight.lifecycle.observing import Observation
from safelight.telemetry import NEWS, point

log = structlog.get_logger()

HINT_GAP_S = 2.0
"""A hint brings about at most one look in this time."""
RESTORED = "restored"
"""Nothing was sent: after a restore an attempt is looked for before it is made."""
NOT_THE_ATTEMPT = frozenset({RATE_LIMITED, "credentials", "funds", "too_late", "storage", RESTORED})
"""Reasons that use up no send: the limit, our own account at the provider, our own slowness or storage."""
UNCERTAIN_LOOK_S = 2.0
"""First look at an uncertain submit; the provider's visibility delay may make it later."""


@dataclass(frozen=True, slots=True)
class Callback:
    """The verified callback that carried the news; it is kept in the transaction of its effect."""

    provider: str
    body: bytes


@dataclass(frozen=True, slots=True)
class News:
    """An update or a setback about one attempt of one task.

    `looks` and `wake_in_s` come from a look that showed nothing new; `reason` says why a send was turned away
    (the words of `ProviderUnavailable`); `retry_after_s` is the provider's wish in seconds.
    """

    task_id: UUID
    attempt: int
    update: ProviderUpdate | None = None
    setback: Setback | None = None
    callback: Callback | None = None
    looks: int | None = None
    wake_in_s: float | None = None
    reason: str = ""
    retry_after_s: float | None = None
    excerpt: str = ""

    @property
    def is_throttled(self) -> bool:
        """Whether the send came to nothing for a reason that has nothing to do with this attempt."""
        return self.setback is not None and self.reason in NOT_THE_ATTEMPT

    @property
    def origin(self) -> Origin:
        return self.update.origin if self.update else Origin.ANSWER


class Advance:
    """Applies news; concurrent news share a commit."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._group: Group[News, Verdict] = Group(context.database, self._advance_many, name="advance")

    async def advance(self, news: News) -> Verdict:
        """Apply one piece of news; when this returns its effect (or its verdict) is committed."""
        verdict = await self._group.do(news)
        point("after_advance_commit")
        NEWS.labels(news.origin, verdict).inc()
        return verdict

    async def _advance_many(
        self, connection: Connection, batch: Sequence[News]
    ) -> Sequence[Verdict | Exception]:
        ids = {news.task_id for news in batch}
        accounts = await tasks.accounts_of_tasks(connection, list(ids))
        settling = {
            accounts[news.task_id] for news in batch if _may_settle(news) and news.task_id in accounts
        }
        if settling:
            await ledger.lock_accounts(connection, settling)
        rows = await tasks.lock_tasks(connection, list(accounts))
        sheet = _Sheet(
            self._context, connection, Changes(rows), await tasks.read_attempts(connection, list(rows))
        )
        await sheet.learn(batch)
        verdicts = [await sheet.apply(news) for news in batch]
        await sheet.write()
        point("before_advance_commit")
        return verdicts


def _may_settle(news: News) -> bool:
    if news.setback is not None:
        return news.setback is not Setback.NO_ANSWER
    update = news.update
    return update is not None and (
        update.status in (UpdateStatus.FAILED, UpdateStatus.BLOCKED, UpdateStatus.CANCELED)
        or (update.status is UpdateStatus.SUCCEEDED and not update.outputs)
    )


class _Sheet:
    """One batch under its locks: decides item by item, each seeing what those before it decided."""

    def __init__(
        self,
        context: Context,
        connection: Connection,
        changes: Changes,
        attempts: dict[tuple[UUID, int], AttemptRow],
    ) -> None:
        self._context = context
        self._connection = connection
        self._changes = changes
        self._attempts = attempts
        self._outcomes: dict[tuple[UUID, int], AttemptOutcome] = {
            key: attempt.outcome for key, attempt in attempts.items() if attempt.outcome
        }
        self._places: dict[UUID, Place | None] = {}
        self._refs: dict[tuple[str, str], tuple[UUID, int]] = {}
        self._applied: set[tuple[UUID, int, str]] = set()
        self._observation = Observation()
        self._callbacks: list[CallbackRow] = []
        self._hints: list[UUID] = []

    async def learn(self, batch: Sequence[News]) -> None:
        """Read what the whole batch needs: ids that are taken, callbacks that were applied."""
        refs = {
            (attempt.provider, news.update.provider_ref)
            for news in batch
            if news.update and news.update.provider_ref
            if (attempt := self._attempts.get((news.task_id, news.attempt)))
        }
        if refs:
            self._refs = await tasks.taken_provider_refs(self._connection, sorted(refs))
        await self._learn_places(batch)
        notices = [(n.task_id, n.attempt, n.update.upstream_status) for n in batch if n.callback and n.update]
        if notices:
            self._applied = await inbox.applied_before(self._connection, notices)
        observed = {(news.task_id, news.attempt) for news in batch if self._is_observed(news)}
        if observed:
            await self._observation.learn(self._connection, observed)

    async def _learn_places(self, batch: Sequence[News]) -> None:
        """Where the next attempt of each task would go, if this one has failed; what is told of has had its chance."""
        ids = {news.task_id for news in batch if _may_settle(news)}
        told = {(news.task_id, news.attempt) for news in batch if news.update}
        rows = [row for task_id, row in self._changes.rows.items() if task_id in ids]
        if not rows:
            return
        states = await self._context.routing.states(self._connection)
        for row in rows:
            made = [
                replace(attempt, accepted_at=attempt.accepted_at or row.now) if key in told else attempt
                for key, attempt in self._attempts.items()
                if key[0] == row.id
            ]
            self._places[row.id] = self._context.routing.next_place(row, made, states)

    async def apply(self, news: News) -> Verdict:
        """Decide one item and note what follows from it."""
        row = self._changes.rows.get(news.task_id)
        attempt = self._attempts.get((news.task_id, news.attempt))
        if row is None or attempt is None:
            return self._file(news, Verdict.UNKNOWN)
        if news.callback and news.callback.provider != attempt.provider:
            return self._file(news, Verdict.UNKNOWN)  # one provider's token at another provider's door
        if news.callback and self._is_about_another(news, attempt):
            return self._file(news, Verdict.UNKNOWN)
        if self._is_observed(news):
            return self._observe(news, row, attempt)
        if news.callback and self._is_repeat(news):
            return self._file(news, Verdict.DUPLICATE)
        decision = self._decide(news, row, attempt)
        self._learn_attempt(news, row, attempt, decision)
        self._keep_findings(news, row, attempt, decision)
        await self._follow(news, row, attempt, decision)
        if decision.is_look_wanted:
            self._hints.append(row.id)
        return self._file(news, decision.verdict)

    async def write(self) -> None:
        """Write the batch."""
        await self._changes.write(self._connection)
        if self._callbacks:
            await inbox.insert_callbacks(self._connection, self._callbacks)
        if self._hints:
            await tasks.bring_look_forward(self._connection, self._hints, gap_s=HINT_GAP_S)

    def _keep_findings(self, news: News, row: TaskRow, attempt: AttemptRow, decision: Decision) -> None:
        update = news.update
        if update is None:
            return
        if decision.finding:
            detail: dict[str, Any] = {
                "outputs": outputs_json(update.outputs),
                "upstream_status": update.upstream_status,
            }
            self._changes.find(decision.finding, row.id, attempt, detail, cost=update.cost)
        if decision.outcome is AttemptOutcome.SUCCEEDED and len(update.outputs) > row.n:
            detail = {"asked": row.n, "delivered": len(update.outputs)}
            self._changes.find("surplus_outputs", row.id, attempt, detail)

    def _is_observed(self, news: News) -> bool:
        return news.callback is not None and self._context.is_observed(news.callback.provider)

    def _is_about_another(self, news: News, attempt: AttemptRow) -> bool:
        """Whether the provider's own id belongs to another attempt than the token: its pictures are not for here."""
        ref = news.update.provider_ref if news.update else None
        owner = self._refs.get((attempt.provider, ref)) if ref else None
        return owner is not None and owner != (news.task_id, news.attempt)

    def _observe(self, news: News, row: TaskRow, attempt: AttemptRow) -> Verdict:
        """Keep the callback with what it would have done; the task stays as it is."""
        if news.update is None:
            return self._file(news, Verdict.UNUSABLE)
        key = (news.task_id, news.attempt)
        verdict, would_be = self._observation.judge(key, self._standing(row), news.update)
        return self._file(news, verdict, would_be)

    def _is_repeat(self, news: News) -> bool:
        return bool(news.update) and (
            (news.task_id, news.attempt, news.update.upstream_status if news.update else "") in self._applied
        )

    def _standing(self, row: TaskRow) -> Standing:
        return Standing(
            state=self._changes.state_of(row.id),
            attempt=row.attempt,
            is_cancel_requested=row.cancel_requested_at is not None,
            attempt_outcome=self._outcomes.get((row.id, row.attempt)),
            has_try_left=self._places.get(row.id) is not None,
        )

    def _decide(self, news: News, row: TaskRow, attempt: AttemptRow) -> Decision:
        standing = self._standing(row)
        if news.update is not None:
            return decide(standing, news.attempt, news.update)
        counted = attempt.sends - attempt.throttled - (1 if news.is_throttled else 0)
        setback = news.setback or Setback.NO_ANSWER
        return decide_setback(standing, news.attempt, setback, has_sends_left=counted < MAX_SENDS)

    def _learn_attempt(self, news: News, row: TaskRow, attempt: AttemptRow, decision: Decision) -> None:
        learned: dict[str, Any] = {"is_looked": news.origin in (Origin.POLL, Origin.LOOK_UP)}
        update = news.update
        if update is not None:
            learned["provider_ref"] = self._usable_ref(news, row, attempt, update)
            # News that was overtaken tells how it stood, not how it ended.
            is_over = (row.id, news.attempt) in self._outcomes
            if not is_over or decision.verdict is Verdict.DUPLICATE:
                learned["cost"] = update.cost
            if not is_over:
                learned["excerpt"] = update.excerpt[:500]
                if update.status is not UpdateStatus.HINT:
                    learned["links"] = dict(update.links)
            if decision.verdict in (Verdict.APPLIED, Verdict.PROGRESS):
                learned["upstream_status"] = update.upstream_status[:200]
                learned["is_accepted"] = decision.outcome is not AttemptOutcome.REFUSED
                learned["noticed_by"] = update.origin
            if decision.outcome is AttemptOutcome.SUCCEEDED:
                learned["outputs"] = outputs_json(update.outputs)
                learned["run_s"] = update.run_s
        else:
            learned["throttled"] = 1 if news.is_throttled else 0
            learned["excerpt"] = news.excerpt[:500]
        if decision.outcome is not None:
            self._outcomes[(row.id, news.attempt)] = decision.outcome
            self._changes.end_attempt(row.id, news.attempt, decision.outcome, decision.failure, **learned)
        else:
            self._changes.patch_attempt(row.id, news.attempt, **learned)

    def _usable_ref(
        self, news: News, row: TaskRow, attempt: AttemptRow, update: ProviderUpdate
    ) -> str | None:
        """The provider's id if it may be kept; one that contradicts what we know is a finding."""
        ref = update.provider_ref
        if ref is None or ref == attempt.provider_ref:
            return None
        owner = self._refs.setdefault((attempt.provider, ref), (row.id, news.attempt))
        if attempt.provider_ref is not None or owner != (row.id, news.attempt):
            detail = {"known": attempt.provider_ref, "told": ref}
            self._changes.find("provider_ref_conflict", row.id, attempt, detail)
            return None
        return ref

    async def _follow(self, news: News, row: TaskRow, attempt: AttemptRow, decision: Decision) -> None:
        if not decision.path:
            if decision.verdict is Verdict.PROGRESS:
                self._note_progress(news, row)
            return
        for place, target in enumerate(decision.path):
            if is_terminal(target):
                self._changes.settle(row.id, target, cause=_cause(news), failure=decision.failure)
                continue
            is_last = place == len(decision.path) - 1
            wake_in_s = await self._wake_in_s(target, news, row, attempt) if is_last else 0.0
            self._changes.move(
                row.id,
                target,
                cause=_cause(news),
                wake_in_s=wake_in_s,
                detail=decision.failure.code if decision.failure else "",
                lifetime_s=self._context.lifetime_s(attempt.provider),
            )
            if is_last and target is State.RETRYING and decision.outcome is not None:
                self._choose_place(row, decision, wake_in_s)
        if news.update is not None and not is_terminal(decision.path[-1]):
            self._note_hints(news.update, row)

    def _choose_place(self, row: TaskRow, decision: Decision, wake_in_s: float) -> None:
        """The attempt is over: the next one may go to another key, or another route, which need not wait."""
        place = self._places.get(row.id)
        if place is None or place.is_where(row.provider, row.upstream_model):
            return
        is_same_upstream = self._context.routing.provider_of(row.provider) == place.route.provider
        reason = decision.failure.code if decision.failure else ""
        self._changes.reroute(row.id, place, reason=reason, wake_in_s=wake_in_s if is_same_upstream else 0.0)

    async def _wake_in_s(self, target: State, news: News, row: TaskRow, attempt: AttemptRow) -> float:
        if target is State.RUNNING:
            if row.cancel_requested_at is not None:
                return 0.0  # the wish to cancel is passed on at once
            pace = await self._context.paces.pace(self._connection, attempt.provider, attempt.upstream_model)
            return first_look_s(pace)
        if target is State.RETRYING:
            return retry_after_s(max(attempt.sends, row.attempt), asked_s=news.retry_after_s)
        if target is State.UNCERTAIN:
            provider = self._context.providers.get(attempt.provider)
            delay_s = provider.capabilities.visibility_delay_s if provider else 0.0
            return max(UNCERTAIN_LOOK_S, delay_s)
        return 0.0  # a copy is due at once

    def _note_progress(self, news: News, row: TaskRow) -> None:
        update = news.update
        self._changes.note(
            row.id,
            percent=update.percent if update else None,
            position=update.position if update else None,
            looks=news.looks if news.looks is not None else (0 if news.callback else None),
            wake_in_s=news.wake_in_s,
        )

    def _note_hints(self, update: ProviderUpdate, row: TaskRow) -> None:
        if update.percent is not None or update.position is not None:
            self._changes.note(row.id, percent=update.percent, position=update.position)

    def _file(self, news: News, verdict: Verdict, would_be: State | None = None) -> Verdict:
        attempt = self._attempts.get((news.task_id, news.attempt))
        if news.callback is not None and verdict is not Verdict.UNKNOWN:
            status = news.update.upstream_status if news.update else ""
            self._callbacks.append(
                CallbackRow(
                    provider=news.callback.provider,
                    task_id=news.task_id,
                    attempt=news.attempt,
                    provider_ref=news.update.provider_ref if news.update else None,
                    upstream_status=status,
                    verdict=verdict,
                    body=news.callback.body,
                    is_early=attempt is not None and attempt.accepted_at is None,
                    would_be=would_be,
                )
            )
            if verdict is Verdict.APPLIED:
                self._applied.add((news.task_id, news.attempt, status))
        if verdict not in (Verdict.APPLIED, Verdict.PROGRESS):
            log.info("news_without_effect", task_id=str(news.task_id), origin=news.origin, verdict=verdict)
        return verdict


def _cause(news: News) -> str:
    return news.setback.value if news.setback else news.origin.value
