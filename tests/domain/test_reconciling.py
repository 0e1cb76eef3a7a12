"""Which days are due when, and what a record says against an attempt."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from safelight.domain.news import AttemptOutcome
from safelight.domain.provider import Capabilities, Origin, ProviderUpdate, UpdateStatus
from safelight.domain.reconciling import (
    MAX_CATCH_UP_DAYS,
    Difference,
    Mode,
    Ours,
    differences,
    due_at,
    due_days,
    mode_of,
)
from safelight.domain.task import State

DAY = date(2026, 11, 28)


@pytest.mark.parametrize(
    ("zone", "hour", "at"),
    [
        ("UTC", 4, datetime(2026, 11, 29, 4, tzinfo=UTC)),
        ("UTC", 0, datetime(2026, 11, 29, 0, tzinfo=UTC)),
        ("Europe/Berlin", 4, datetime(2026, 11, 29, 3, tzinfo=UTC)),
        ("Asia/Shanghai", 4, datetime(2026, 11, 29, 20, tzinfo=UTC)),
        ("Asia/Shanghai", 8, datetime(2026, 11, 29, 0, tzinfo=UTC)),
        ("America/Los_Angeles", 17, datetime(2026, 11, 29, 1, tzinfo=UTC)),
        ("America/Los_Angeles", 15, datetime(2026, 11, 29, 23, tzinfo=UTC)),
    ],
)
def test_a_day_is_due_at_the_first_such_hour_of_the_zone_after_its_end(
    zone: str, hour: int, at: datetime
) -> None:
    assert due_at(DAY, hour=hour, zone=ZoneInfo(zone)) == at


def test_an_hour_that_is_skipped_or_comes_twice_comes_once() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert due_at(date(2026, 3, 28), hour=2, zone=berlin) == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert due_at(date(2026, 10, 24), hour=2, zone=berlin) == datetime(2026, 10, 25, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "zone", ["UTC", "Asia/Shanghai", "America/Los_Angeles", "Europe/Berlin", "Asia/Kathmandu"]
)
@pytest.mark.parametrize("hour", [0, 4, 13, 23])
def test_every_day_of_a_year_is_due_once_after_its_end_and_within_a_day_and_an_hour(
    zone: str, hour: int
) -> None:
    days = [date(2026, 1, 1) + timedelta(days=number) for number in range(365)]
    moments = [due_at(day, hour=hour, zone=ZoneInfo(zone)) for day in days]
    for day, moment in zip(days, moments, strict=True):
        end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
        assert timedelta() <= moment - end <= timedelta(hours=25), day
    assert moments == sorted(set(moments))


def test_days_that_are_due_begin_with_the_first_attempt_and_end_with_the_last_whole_day() -> None:
    now = datetime(2026, 11, 29, 4, 30, tzinfo=UTC)
    zone = ZoneInfo("UTC")
    first = date(2026, 11, 26)
    assert due_days(first, now, hour=4, zone=zone) == [first, date(2026, 11, 27), DAY]
    assert due_days(first, now, hour=5, zone=zone) == [first, date(2026, 11, 27)]
    assert due_days(date(2026, 11, 29), now, hour=4, zone=zone) == []
    assert len(due_days(date(2020, 1, 1), now, hour=4, zone=zone)) == MAX_CATCH_UP_DAYS


def ours(state: State, outcome: AttemptOutcome | None = None, **more: object) -> Ours:
    values = {"is_current": True, "is_known": True, "cost": None, **more}
    return Ours(state=state, outcome=outcome, **values)  # type: ignore[arg-type]  # a mixed dictionary


def theirs(status: UpdateStatus, cost: float | None = None) -> ProviderUpdate:
    return ProviderUpdate(status, Origin.RECONCILIATION, provider_ref="up-1", cost=cost)


DONE = theirs(UpdateStatus.SUCCEEDED)
GONE = theirs(UpdateStatus.FAILED)
GOES_ON = theirs(UpdateStatus.RUNNING)


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (ours(State.RUNNING), DONE, [Difference.MISSED]),
        (ours(State.RUNNING), GONE, [Difference.MISSED]),
        (ours(State.REVIEW), DONE, [Difference.MISSED]),
        (ours(State.RUNNING), GOES_ON, []),
        (ours(State.UNCERTAIN, is_known=False), GOES_ON, [Difference.MISSED]),
        (ours(State.SUCCEEDED, AttemptOutcome.SUCCEEDED), DONE, []),
        (ours(State.ARCHIVING, AttemptOutcome.SUCCEEDED), DONE, []),
        (ours(State.FAILED, AttemptOutcome.SUCCEEDED), DONE, []),
        (ours(State.FAILED, AttemptOutcome.FAILED), DONE, [Difference.ORPHAN_RESULT]),
        (ours(State.FAILED), DONE, [Difference.ORPHAN_RESULT]),
        (ours(State.RUNNING, AttemptOutcome.ABANDONED, is_current=False), DONE, [Difference.ORPHAN_RESULT]),
        (ours(State.FAILED, AttemptOutcome.FAILED), GONE, []),
        (ours(State.FAILED), GOES_ON, []),
        (ours(State.SUCCEEDED, AttemptOutcome.SUCCEEDED), GONE, [Difference.CONTRADICTION]),
    ],
)
def test_what_a_record_says_against_an_attempt(
    one: Ours, other: ProviderUpdate, found: list[Difference]
) -> None:
    assert list(differences(one, other)) == found


@pytest.mark.parametrize(
    ("our_cost", "their_cost", "differ"),
    [(1.0, 1.0, False), (0.1 + 0.2, 0.3, False), (1.0, 2.0, True), (None, 2.0, False), (1.0, None, False)],
)
def test_amounts_differ_only_where_both_are_known(
    our_cost: float | None, their_cost: float | None, differ: bool
) -> None:
    one = ours(State.SUCCEEDED, AttemptOutcome.SUCCEEDED, cost=our_cost)
    found = list(differences(one, theirs(UpdateStatus.SUCCEEDED, their_cost)))
    assert found == ([Difference.AMOUNT_DIFFERS] if differ else [])


def test_a_provider_is_asked_in_the_best_way_that_it_has() -> None:
    assert mode_of(Capabilities(can_list=True)) is Mode.LIST
    assert mode_of(Capabilities()) is Mode.ID
    assert mode_of(Capabilities(is_synchronous=True, can_poll=False)) is Mode.NONE
