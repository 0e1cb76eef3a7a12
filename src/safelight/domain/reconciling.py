"""Theirs against ours: which days are due when, and what a record says against an attempt. Pure, UTC throughout."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from safelight.domain.news import AttemptOutcome
from safelight.domain.provider import Capabilities, ProviderUpdate, UpdateStatus
from safelight.domain.task import UPSTREAM, State

MAX_CATCH_UP_DAYS = 30
"""Missed days beyond these are not made up for: no provider keeps its records for ever."""
DAY = timedelta(days=1)

_OPEN = UPSTREAM | {State.REVIEW}
_ENDED = frozenset({UpdateStatus.SUCCEEDED, UpdateStatus.FAILED, UpdateStatus.BLOCKED, UpdateStatus.CANCELED})


class Mode(StrEnum):
    """How a provider can be asked about a day."""

    LIST = "list"
    """It lists its records by window: both sides are compared."""
    ID = "id"
    """It knows an id when asked: every attempt that did not end well is asked for."""
    NONE = "none"
    """It answers once and keeps nothing: there is only our side to count."""


class Difference(StrEnum):
    """What was found. `missed` is mended at once; the others are for a person."""

    MISSED = "missed"
    """Ours is open, theirs has ended (or ours was never answered, theirs exists): applied."""
    ORPHAN_RESULT = "orphan_result"
    """Ours ended without a picture, theirs is done."""
    CONTRADICTION = "contradiction"
    """Ours is done, theirs says that it failed."""
    AMOUNT_DIFFERS = "amount_differs"
    UNKNOWN_UPSTREAM = "unknown_upstream"
    """Ours is done, theirs does not know it."""
    ORPHAN = "orphan"
    """Theirs without ours."""


@dataclass(frozen=True, slots=True)
class Ours:
    """Where an attempt stands with us. `is_known` says that we have the provider's id of it."""

    state: State
    is_current: bool
    outcome: AttemptOutcome | None
    is_known: bool
    cost: float | None

    @property
    def is_open(self) -> bool:
        """Whether news may still move its task."""
        return self.outcome is None and self.is_current and self.state in _OPEN

    @property
    def is_done(self) -> bool:
        """Whether it brought its picture."""
        return self.outcome is AttemptOutcome.SUCCEEDED

    @property
    def is_settled_well(self) -> bool:
        """Whether there is nothing to ask the provider about: it is done, or was certainly never accepted."""
        return self.is_done or self.outcome is AttemptOutcome.REFUSED


def differences(ours: Ours, theirs: ProviderUpdate) -> Iterator[Difference]:
    """What a record of the provider's says against our attempt."""
    has_ended = theirs.status in _ENDED
    if ours.is_open:
        if has_ended or not ours.is_known:
            yield Difference.MISSED
        return
    if theirs.status is UpdateStatus.SUCCEEDED and not ours.is_done:
        yield Difference.ORPHAN_RESULT
    elif has_ended and theirs.status is not UpdateStatus.SUCCEEDED and ours.is_done:
        yield Difference.CONTRADICTION
    if has_ended and _differ(ours.cost, theirs.cost):
        yield Difference.AMOUNT_DIFFERS


def _differ(ours: float | None, theirs: float | None) -> bool:
    """Whether both are known, and not the same."""
    is_known = ours is not None and theirs is not None
    return is_known and not math.isclose(ours or 0.0, theirs or 0.0, rel_tol=1e-9, abs_tol=1e-9)


def mode_of(capabilities: Capabilities) -> Mode:
    """How this provider is asked about a day."""
    if capabilities.can_list:
        return Mode.LIST
    return Mode.ID if capabilities.can_poll else Mode.NONE


def start_of(day: date) -> datetime:
    """The first moment of a UTC day."""
    return datetime.combine(day, time(), UTC)


def due_at(day: date, *, hour: int, zone: ZoneInfo) -> datetime:
    """When a day is reconciled: the first time after its end when it is `hour` o'clock in the zone.

    Where that hour is skipped as clocks go forward it counts as the one after it; where it comes twice the first
    one counts.
    """
    end = start_of(day + DAY)
    local = end.astimezone(zone).date()
    at = datetime.combine(local, time(hour), zone).astimezone(UTC)
    return at if at >= end else datetime.combine(local + DAY, time(hour), zone).astimezone(UTC)


def due_days(first: date, now: datetime, *, hour: int, zone: ZoneInfo) -> list[date]:
    """The days that are due by now, since the first one; the oldest first, and not too many."""
    today = now.astimezone(UTC).date()
    candidates = [today - DAY * back for back in range(MAX_CATCH_UP_DAYS, 0, -1)]
    return [day for day in candidates if day >= first and due_at(day, hour=hour, zone=zone) <= now]
