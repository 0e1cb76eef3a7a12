"""Callbacks as a whole: what a provider's are worth, and an alarm when they stop coming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from safelight.db import notices
from safelight.db.notices import Finished, Share
from safelight.db.statements import Connection
from safelight.domain.news import Verdict
from safelight.lifecycle.context import Context
from safelight.telemetry import CALLBACK_ALARM, CALLBACK_SHARE

log = structlog.get_logger()

RECENT = 20
MOST = 100
"""Finished attempts that are compared: the latest ones with those before them."""
GRACE_S = 60.0
"""A callback may be so late without being missed."""
SHARE_DAYS = 3
"""Older attempts say nothing about how callbacks come now."""
LOST_BELOW = 0.5
BACK_ABOVE = 0.8
"""Parts of the usual share: below the first the alarm is raised, above the second it is over."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Report:
    """A provider's callbacks over some days. `verdicts` counts the kept ones, `rejected` the others by reason."""

    providers: tuple[str, ...]
    mode: str
    days: int
    verdicts: dict[str, int]
    early: int
    unknown: int
    rejected: dict[str, int]
    finished: Finished

    @property
    def received(self) -> int:
        """All that came, genuine or not."""
        return sum(self.verdicts.values()) + self.unknown + self.forged

    @property
    def forged(self) -> int:
        """Those that proved nothing, or could not be read."""
        return sum(self.rejected.values())


async def report(connection: Connection, providers: Sequence[str], *, mode: str, days: int) -> Report:
    """What the callbacks of a provider's keys came to in the last days."""
    kept = await notices.verdicts(connection, providers, days=days)
    counted = await notices.counts(connection, providers, days=days)
    return Report(
        providers=tuple(providers),
        mode=mode,
        days=days,
        # Those about nothing we know are kept for a day only: their count is the one that lasts.
        verdicts={verdict: number for verdict, (number, _) in kept.items() if verdict != Verdict.UNKNOWN},
        early=sum(early for _, early in kept.values()),
        unknown=counted.pop(UNKNOWN, 0),
        rejected=counted,
        finished=await notices.finished_attempts(connection, providers, days=days, grace_s=GRACE_S),
    )


class Watch:
    """Compares the share of callbacks with what was usual. The alarm is one for all workers, and lasts in a row."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def step(self) -> None:
        """Raise and clear alarms, and show how things stand."""
        names = self._expected_to_call()
        if not names:
            return
        async with self._context.database.connection() as connection:
            found = await notices.shares(
                connection, names, recent=RECENT, most=MOST, days=SHARE_DAYS, grace_s=GRACE_S
            )
            for share in found:
                await self._judge(connection, share)
            alarms = await notices.alarms(connection)
        for name in names:
            CALLBACK_ALARM.labels(name).set(name in alarms)

    def _expected_to_call(self) -> list[str]:
        if self._context.settings.public_url is None:
            return []
        providers = self._context.providers.items()
        return sorted(name for name, provider in providers if provider.capabilities.calls_back)

    async def _judge(self, connection: Connection, share: Share) -> None:
        if share.recent < RECENT:
            return
        received = share.recent_told / share.recent
        CALLBACK_SHARE.labels(share.provider).set(received)
        alarm = (await notices.alarms(connection)).get(share.provider)
        if alarm is None:
            expected = share.earlier_told / share.earlier if share.earlier >= RECENT else 1.0
            is_lost = received < expected * LOST_BELOW
            if is_lost and await notices.raise_alarm(
                connection, share.provider, expected=expected, received=received
            ):
                log.error("callbacks_missing", provider=share.provider, expected=expected, received=received)
        elif received >= alarm.expected * BACK_ABOVE and await notices.clear_alarm(
            connection, share.provider
        ):
            log.info("callbacks_back", provider=share.provider, received=received)
