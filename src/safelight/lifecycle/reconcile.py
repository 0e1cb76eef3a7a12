"""Theirs against ours, a provider's day at a time: page by page, resumable, the same again without effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import structlog

from safelight.db import findings, reconciliation, tasks
from safelight.db.reconciliation import AttemptSide, Place, Run
from safelight.domain.provider import Provider
from safelight.domain.reconciling import DAY, Mode, due_days, mode_of, start_of
from safelight.domain.schedule import retry_after_s
from safelight.errors import ConfigurationError, ProviderError, StaleAttempt
from safelight.lifecycle.advance import Advance
from safelight.lifecycle.comparing import Comparison, Page
from safelight.lifecycle.context import Context
from safelight.lifecycle.dispatch import Dispatch
from safelight.lifecycle.listing import wait_for_look
from safelight.telemetry import FINDINGS, RECONCILIATIONS, point

log = structlog.get_logger()

LEASE_S = 600.0
"""A page is over by then; a run whose worker died is taken up after it."""
EDGE = timedelta(hours=1)
"""The provider's list is read so far beyond both ends of the window: a record may be made late, or dated early."""
FIRST_DAY = date(2000, 1, 1)
"""No provider has a record that is older; and the first of all days a database keeps as no day."""
FRESH_S = 60.0
"""A day that is not over is looked at up to this long ago: what is younger may not be in any list yet."""
OUR_ROOM = 200
MAX_PAGES = 20_000
"""A list that does not end is not a list."""
MAX_ASKED = 5_000
"""Attempts that one run asks for by their id."""
MAX_LINES = 1_000
"""Findings that a report names one by one; all are counted, and kept as findings."""
MAX_TRIES = 12
"""A list that cannot be read: tries before the run ends as incomplete; every third begins at the first page."""
MIN_WAIT_S = 60.0


@dataclass(slots=True)
class _Sitting:
    """A run being worked on. What a preview has seen is kept here, and nowhere else."""

    run: Run
    provider: Provider
    comparison: Comparison
    seen: set[str] = field(default_factory=set)
    pages: int = 0

    @property
    def is_preview(self) -> bool:
        return self.run.id is None


class Reconcile:
    """Plans the days that are due, and carries out one run after the other."""

    def __init__(self, context: Context, advance: Advance, dispatch: Dispatch) -> None:
        self._context = context
        self._advance = advance
        self._dispatch = dispatch

    async def step(self) -> None:
        """Plan what is due, then carry out runs until none is left that nobody else works on."""
        await self.plan()
        while (run := await self._claim()) is not None:
            try:
                await self.carry_out(run)
            except StaleAttempt:
                log.info("reconciliation_overtaken", provider=run.provider, day=str(run.day))

    async def plan(self) -> None:
        """Make a row for each whole day that is due and was never reconciled; missed days are made up for."""
        async with self._context.database.connection() as connection:
            first, now = await reconciliation.first_days(connection, sorted(self._context.providers))
            due = [
                (name, day, mode_of(self._context.provider(name).capabilities))
                for name, first_day in first.items()
                for day in due_days(first_day, now, hour=self._hour(name), zone=self._zone(name))
            ]
            if due:
                await reconciliation.add_due(connection, due)

    async def begin(self, provider_name: str, day: date) -> Run | None:
        """Take a day now, up to this minute if it is not over; None while another is at it.

        Raises:
            ConfigurationError: the provider is not configured, or the day has not begun.
        """
        mode = mode_of(self._context.provider(provider_name).capabilities)
        until_at = _end_of(day, await self._context.database.now())
        async with self._context.database.transaction() as connection:
            return await reconciliation.begin(
                connection, provider_name, day, until_at=until_at, mode=mode, lease_s=LEASE_S
            )

    async def preview(self, provider_name: str, day: date) -> Run:
        """What a run would find and apply. Nothing is changed, and nothing kept.

        Raises:
            ConfigurationError: the provider is not configured, or the day has not begun.
            ProviderError: its list cannot be read.
        """
        now = await self._context.database.now()
        mode = mode_of(self._context.provider(provider_name).capabilities)
        stage = "theirs" if mode is Mode.LIST else "ours"
        run = Run(None, provider_name, day, _end_of(day, now), mode, stage, now, started_at=now)
        sitting = self._sit_down(run)
        await self._compare(sitting)
        run.finished_at = await self._context.database.now()
        return run

    async def carry_out(self, run: Run) -> Run:
        """Work on a claimed run to its end, or until its provider cannot be asked; the run as it stands then.

        Raises:
            StaleAttempt: another has taken the run over.
        """
        sitting = self._sit_down(run)
        try:
            await self._compare(sitting)
        except ProviderError as error:
            run.note = f"{error.code}: {error.excerpt}"[:500]
            if run.tries + 1 < MAX_TRIES:
                return await self._postpone(run)
            run.is_complete = False
            run.stage, run.cursor = "ours", None
            await self._keep(sitting, Page())
            await self._compare(sitting)
        async with self._context.database.transaction() as connection:
            finished = await reconciliation.finish(connection, run)
            point("before_finish_commit")
        point("after_finish_commit")
        if finished is None:
            raise StaleAttempt(f"the run over {run.provider} {run.day} was taken over")
        RECONCILIATIONS.labels(run.provider, "complete" if finished.is_complete else "incomplete").inc()
        log.info(
            "reconciled",
            provider=run.provider,
            day=str(run.day),
            is_complete=finished.is_complete,
            counts=dict(finished.counts),
        )
        return finished

    def _sit_down(self, run: Run) -> _Sitting:
        provider = self._context.provider(run.provider)
        comparison = Comparison(self._context, self._advance, self._dispatch, provider, run=run)
        return _Sitting(run, provider, comparison)

    async def _claim(self) -> Run | None:
        async with self._context.database.transaction() as connection:
            return await reconciliation.claim(connection, sorted(self._context.providers), lease_s=LEASE_S)

    async def _compare(self, sitting: _Sitting) -> None:
        if sitting.run.stage == "theirs":
            await self._read_theirs(sitting)
        await self._read_ours(sitting)

    async def _read_theirs(self, sitting: _Sitting) -> None:
        """The provider's list, from the page where the run stands."""
        run = sitting.run
        since, until = start_of(run.day) - EDGE, run.until_at + EDGE
        while run.stage == "theirs":
            await wait_for_look(self._context, sitting.provider)
            point("before_list")
            listed = await sitting.provider.list_records(since, until, run.cursor)
            point("after_list")
            page = await sitting.comparison.records(listed.records)
            sitting.pages += 1
            run.cursor = listed.next_cursor
            if run.cursor is None or sitting.pages >= MAX_PAGES:
                run.is_complete = run.is_complete and run.cursor is None
                run.stage, run.cursor = "ours", None
            await self._keep(sitting, page)

    async def _read_ours(self, sitting: _Sitting) -> None:
        """Our attempts of the window, by their start."""
        run = sitting.run
        after = Place.parse(run.cursor) if run.cursor else Place(start_of(run.day))
        while True:
            async with self._context.database.connection() as connection:
                sides = await reconciliation.attempts_of_window(
                    connection, run.provider, after, until=run.until_at, room=OUR_ROOM
                )
            if not sides:
                return
            page = await self._judge(sitting, sides)
            page.counts["attempts"] = len(sides)
            after = Place(sides[-1].sent_at, sides[-1].task_id, sides[-1].number)
            run.cursor = str(after)
            await self._keep(sitting, page)

    async def _judge(self, sitting: _Sitting, sides: Sequence[AttemptSide]) -> Page:
        run = sitting.run
        if run.mode == Mode.ID:
            if run.counts["asked"] < MAX_ASKED:
                return await sitting.comparison.attempts(sides)
            run.is_complete = False
        if run.mode != Mode.LIST or not run.is_complete:
            return Page()  # what an incomplete list does not have proves nothing
        return sitting.comparison.absent(sides, await self._seen(sitting, sides))

    async def _seen(self, sitting: _Sitting, sides: Sequence[AttemptSide]) -> set[str]:
        refs = [side.provider_ref for side in sides if side.provider_ref]
        if sitting.is_preview:
            return sitting.seen.intersection(refs)
        async with self._context.database.connection() as connection:
            return await reconciliation.seen_records(connection, sitting.run, refs)

    async def _keep(self, sitting: _Sitting, page: Page) -> None:
        """Commit a page: how far the run has come, what was seen, and the findings, together."""
        run = sitting.run
        run.counts.update(page.counts)
        lines = page.lines[: max(MAX_LINES - len(run.findings), 0)]
        run.findings.extend(lines)
        if sitting.is_preview:
            sitting.seen.update(page.refs)
            return
        async with self._context.database.transaction() as connection:
            if not await reconciliation.turn_page(connection, run, lines, lease_s=LEASE_S):
                raise StaleAttempt(f"the run over {run.provider} {run.day} was taken over")
            await reconciliation.note_records(connection, run, page.refs)
            new = await findings.insert_findings(connection, page.findings)
            if page.costs:
                await tasks.patch_attempts(connection, page.costs)
            point("before_reconcile_commit")
        for kind, task_id in new:
            FINDINGS.labels(kind).inc()
            log.warning("finding", kind=kind, provider=run.provider, task_id=str(task_id or ""))
        point("after_reconcile_commit")

    async def _postpone(self, run: Run) -> Run:
        run.tries += 1
        wait_s = max(MIN_WAIT_S, MIN_WAIT_S * retry_after_s(run.tries))
        is_from_start = run.stage == "theirs" and run.tries % 3 == 0
        async with self._context.database.transaction() as connection:
            await reconciliation.postpone(connection, run, wait_s=wait_s, is_from_start=is_from_start)
        RECONCILIATIONS.labels(run.provider, "postponed").inc()
        log.warning("reconciliation_postponed", provider=run.provider, day=str(run.day), note=run.note)
        return run

    def _hour(self, provider_name: str) -> int:
        own = self._context.table(provider_name).reconcile_hour
        return self._context.settings.reconcile_hour if own is None else own

    def _zone(self, provider_name: str) -> ZoneInfo:
        own = self._context.table(provider_name).reconcile_zone
        return ZoneInfo(own or self._context.settings.reconcile_zone)


def _end_of(day: date, now: datetime) -> datetime:
    """Where a day's window ends: with the day, or a minute ago."""
    fresh = now - timedelta(seconds=FRESH_S)
    if day < FIRST_DAY:
        raise ConfigurationError(f"{day} (UTC) is too long ago")
    if start_of(day) >= fresh:
        raise ConfigurationError(f"{day} (UTC) has not begun yet, or only just")
    return min(start_of(day + DAY), fresh)
