"""A page of a provider's records against our attempts: what was missed is applied, what differs is found."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from safelight.db import reconciliation
from safelight.db.reconciliation import AttemptSide, Found, Run
from safelight.db.tasks import outputs_json
from safelight.domain.news import Verdict
from safelight.domain.provider import Origin, Provider, ProviderUpdate, UpstreamRecord
from safelight.domain.recognition import Owner, owner_by_token
from safelight.domain.reconciling import Difference, differences, start_of
from safelight.errors import AssetError, ProviderError
from safelight.lifecycle.advance import Advance, News
from safelight.lifecycle.context import Context
from safelight.lifecycle.dispatch import Dispatch
from safelight.lifecycle.listing import told_by_id, wait_for_look
from safelight.lifecycle.looks import count

log = structlog.get_logger()

AT_ONCE = 8
"""Differences that are followed up side by side; the provider's quota of looks holds all the same."""
OUR_REFERENCE = re.compile(r"[0-9a-f]{32}-[0-9]{1,3}")
"""How every reference of ours looks, also that of an attempt which this database has lost."""
_FOR_A_PERSON = frozenset(Difference) - {Difference.MISSED}


@dataclass(slots=True)
class Page:
    """What one page came to: counts and lines for the report, rows for the table of findings."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: list[Found] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    costs: list[dict[str, Any]] = field(default_factory=list)
    refs: list[str] = field(default_factory=list)


class Comparison:
    """Compares for one run. A preview looks and finds, but applies nothing."""

    def __init__(
        self, context: Context, advance: Advance, dispatch: Dispatch, provider: Provider, *, run: Run
    ) -> None:
        self._context = context
        self._advance = advance
        self._dispatch = dispatch
        self._provider = provider
        self._run = run
        self._is_preview = run.id is None
        self._is_exclusive = context.table(provider.name).exclusive_key

    async def records(self, records: Sequence[UpstreamRecord]) -> Page:
        """A page of the provider's list, both ways."""
        page = Page(refs=[record.provider_ref for record in records])
        page.counts["records"] = len(records)
        if not records:
            return page
        read_token = self._context.tokens.read
        wanted = [(one.provider_ref, one.reference, owner_by_token(one, read_token)) for one in records]
        async with self._context.database.connection() as connection:
            sides = await reconciliation.match_records(connection, self._provider.name, wanted)
        own: dict[Owner, tuple[AttemptSide, UpstreamRecord]] = {}
        strangers: list[tuple[AttemptSide | None, UpstreamRecord]] = []
        for side, record in zip(sides, records, strict=True):
            if (
                side is not None
                and side.owner not in own
                and side.provider_ref in (None, record.provider_ref)
            ):
                own[side.owner] = (side, record)
            else:
                strangers.append((side, record))  # a second one under the same reference is one too
        await _side_by_side(self._compare(page, side, record) for side, record in own.values())
        await self._find_orphans(page, strangers)
        return page

    async def attempts(self, sides: Sequence[AttemptSide]) -> Page:
        """Some of our attempts: those that did not end well are asked for by their id."""
        page = Page()
        for side in sides:
            if side.ours.is_settled_well and side.was_missed:
                self._find(page, Difference.MISSED, side)  # an earlier run of this day applied it
        await _side_by_side(self._ask(page, side) for side in sides if self._can_ask(side))
        return page

    def _can_ask(self, side: AttemptSide) -> bool:
        can = self._provider.capabilities
        return not side.ours.is_settled_well and (
            can.can_poll if side.provider_ref is not None else can.can_look_up
        )

    def absent(self, sides: Iterable[AttemptSide], seen: set[str]) -> Page:
        """Some of our attempts that are done: those that a complete list does not have."""
        page = Page()
        keeps_s = self._provider.capabilities.record_retention_s
        for side in sides:
            is_kept = keeps_s is not None and side.sent_at > self._run.now - timedelta(seconds=keeps_s)
            if is_kept and side.ours.is_done and side.provider_ref and side.provider_ref not in seen:
                self._find(page, Difference.UNKNOWN_UPSTREAM, side)
        return page

    async def _compare(self, page: Page, side: AttemptSide, record: UpstreamRecord) -> None:
        found = set(differences(side.ours, record.update))
        try:
            if found & {Difference.MISSED, Difference.ORPHAN_RESULT}:
                record = replace(
                    record, update=await told_by_id(self._context, self._provider, side.ref, record)
                )
        except ProviderError as error:
            self._note_unreadable(page, side, error)
            return
        await self._follow(page, side, record)

    async def _ask(self, page: Page, side: AttemptSide) -> None:
        page.counts["asked"] += 1
        try:
            await wait_for_look(self._context, self._provider)
            if side.provider_ref is not None:
                update: ProviderUpdate | None = await self._provider.poll(side.ref)
            else:
                update = await self._provider.look_up(side.ref)
        except ProviderError as error:
            self._note_unreadable(page, side, error)
            return
        count(self._provider.name, update.status if update else "absent")
        ref = side.provider_ref or (update.provider_ref if update else None)
        if update is not None and ref is not None:
            await self._follow(page, side, UpstreamRecord(ref, side.reference, side.sent_at, update))

    async def _follow(self, page: Page, side: AttemptSide, record: UpstreamRecord) -> None:
        """Apply or note every difference between an attempt and what is known of its record in full."""
        theirs = record.update
        for difference in differences(side.ours, theirs):
            if difference is Difference.MISSED:
                if self._is_preview or await self._apply(side, record):
                    self._find(page, difference, side, theirs)
            elif difference is not Difference.ORPHAN_RESULT or theirs.outputs:
                self._find(page, difference, side, theirs)
        if side.was_missed:
            self._find(page, Difference.MISSED, side, theirs)  # an earlier run of this day applied it
        if side.ours.cost is None and theirs.cost is not None and not side.ours.is_open:
            page.costs.append({"task_id": side.task_id, "number": side.number, "cost": theirs.cost})

    async def _apply(self, side: AttemptSide, record: UpstreamRecord) -> bool:
        """Through the one door; False if the task has moved on meanwhile."""
        update = replace(record.update, origin=Origin.RECONCILIATION, provider_ref=record.provider_ref)
        try:
            update = await self._dispatch.stage(side.task_id, side.number, update)
        except AssetError as error:
            await self._dispatch.close_storage(error)
            return False
        verdict = await self._advance.advance(News(side.task_id, side.number, update=update))
        return verdict is Verdict.APPLIED

    async def _find_orphans(
        self, page: Page, strangers: Sequence[tuple[AttemptSide | None, UpstreamRecord]]
    ) -> None:
        """Records without an attempt: ours if they carry our mark, or if nobody else uses the key."""
        start = start_of(self._run.day)
        inside = [pair for pair in strangers if start <= pair[1].created_at < self._run.until_at]
        page.counts["strangers"] = len(inside)
        unmarked: list[UpstreamRecord] = []
        for side, record in inside:
            if side is not None or self._is_marked(record):
                self._find_orphan(page, record, side)
            elif self._is_exclusive:
                unmarked.append(record)
        if not unmarked:
            return
        spans = await self._unanswered([record.created_at for record in unmarked])
        for record in unmarked:
            if any(since <= record.created_at <= until for since, until in spans):
                page.counts["unclear"] += 1  # it may be the attempt whose answer was lost
            else:
                self._find_orphan(page, record, None)

    def _is_marked(self, record: UpstreamRecord) -> bool:
        is_ours = record.reference is not None and OUR_REFERENCE.fullmatch(record.reference) is not None
        return is_ours or owner_by_token(record, self._context.tokens.read) is not None

    async def _unanswered(self, moments: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
        skew = timedelta(seconds=self._provider.capabilities.clock_skew_s)
        async with self._context.database.connection() as connection:
            spans = await reconciliation.unanswered(
                connection, self._provider.name, since=min(moments) - skew, until=max(moments) + skew
            )
        return [(since - skew, until + skew) for since, until in spans]

    def _find(
        self, page: Page, difference: Difference, side: AttemptSide, theirs: ProviderUpdate | None = None
    ) -> None:
        told: dict[str, Any] = {
            "ours": side.ours.outcome or side.ours.state,
            "theirs": theirs.status if theirs else "unknown" if difference in _FOR_A_PERSON else "ended",
            "our_cost": side.ours.cost,
            "their_cost": theirs.cost if theirs else None,
        }
        page.counts[difference] += 1
        owner = {"task_id": str(side.task_id), "attempt": side.number, "provider_ref": side.provider_ref}
        page.lines.append({"kind": difference, **owner, **told})
        if difference in _FOR_A_PERSON:
            outputs = [output for output in (theirs.outputs if theirs else ()) if output.url]
            detail = {**told, "upstream_status": theirs.upstream_status if theirs else ""}
            if outputs:
                detail["outputs"] = outputs_json(outputs)
            self._keep(page, difference, {**owner, "detail": detail}, cost=theirs.cost if theirs else None)

    def _find_orphan(self, page: Page, record: UpstreamRecord, side: AttemptSide | None) -> None:
        told = {
            "theirs": record.update.status,
            "created_at": record.created_at.isoformat(),
            "reference": record.reference,
            "beside": str(side.task_id) if side else None,
        }
        page.counts[Difference.ORPHAN] += 1
        line = {"kind": Difference.ORPHAN, "provider_ref": record.provider_ref, **told}
        page.lines.append({**line, "their_cost": record.update.cost})
        about = {"provider_ref": record.provider_ref, "detail": told}
        self._keep(page, Difference.ORPHAN, about, cost=record.update.cost)

    def _keep(self, page: Page, kind: Difference, about: dict[str, Any], *, cost: float | None) -> None:
        page.findings.append({"kind": kind, "provider": self._provider.name, "cost": cost, **about})

    def _note_unreadable(self, page: Page, side: AttemptSide, error: ProviderError) -> None:
        """An error says nothing about the attempt."""
        page.counts["unreadable"] += 1
        count(self._provider.name, error.code)
        log.warning(
            "reconciliation_unreadable",
            provider=self._provider.name,
            task_id=str(side.task_id),
            excerpt=error.excerpt,
        )


async def _side_by_side(work: Iterable[Awaitable[None]]) -> None:
    """A few at once: together they share commits, and no provider is flooded."""
    waiting: Iterator[Awaitable[None]] = iter(work)

    async def one_after_the_other() -> None:
        for step in waiting:
            await step

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(one_after_the_other())
