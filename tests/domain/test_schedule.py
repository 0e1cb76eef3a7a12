"""When to look and when to try again, with numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safelight.domain.schedule import MIN_SAMPLES, Pace, first_look_s, next_look_s, retry_after_s, threshold_s

CALLS_BACK = Pace(p95_s=20.0, median_s=10.0, calls_back=True)
POLLED = Pace(p95_s=20.0, median_s=4.0, calls_back=False)


def low(a: float, b: float) -> float:
    """The smallest draw."""
    return min(a, b)


def high(a: float, b: float) -> float:
    """The largest draw."""
    return max(a, b)


def middle(a: float, b: float) -> float:
    """The mean draw."""
    return (a + b) / 2


@pytest.mark.parametrize(
    ("measured_s", "samples", "expected_s"),
    [
        (None, 0, 20.0),
        (3.0, 0, 20.0),
        (3.0, 1, 20.0),
        (3.0, 19, 20.0),
        (3.0, 20, 3.0),
        (3.0, 500, 3.0),
        (None, 500, 20.0),
        (0.02, 500, 1.0),
        (0.0, 500, 1.0),
        (21_600.0, 500, 600.0),
        (600.0, 20, 600.0),
    ],
)
def test_the_p95_is_measured_from_20_samples_on_between_floor_and_cap(
    measured_s: float | None, samples: int, expected_s: float
) -> None:
    assert threshold_s(measured_s, samples, default_s=20.0, floor_s=1.0, cap_s=600.0) == expected_s


@pytest.mark.parametrize(("default_s", "expected_s"), [(0.1, 1.0), (10_000.0, 600.0)])
def test_a_default_keeps_to_floor_and_cap_too(default_s: float, expected_s: float) -> None:
    assert threshold_s(None, 0, default_s=default_s, floor_s=1.0, cap_s=600.0) == expected_s


def test_twenty_samples_are_enough() -> None:
    assert MIN_SAMPLES == 20


@pytest.mark.parametrize(
    ("p95_s", "earliest_s", "latest_s"),
    [(4.0, 4.0, 8.0), (20.0, 20.0, 40.0), (30.0, 30.0, 60.0), (120.0, 120.0, 150.0)],
)
def test_with_callbacks_the_first_look_comes_within_30_s_after_the_p95(
    p95_s: float, earliest_s: float, latest_s: float
) -> None:
    pace = Pace(p95_s=p95_s, median_s=p95_s / 2, calls_back=True)
    assert first_look_s(pace, low) == earliest_s
    assert first_look_s(pace, high) == latest_s


def test_without_callbacks_the_first_look_comes_near_the_median() -> None:
    assert first_look_s(POLLED, low) == pytest.approx(3.2)
    assert first_look_s(POLLED, middle) == pytest.approx(4.0)
    assert first_look_s(POLLED, high) == pytest.approx(4.8)


@pytest.mark.parametrize(("looks", "gap_s"), [(1, 10.0), (2, 20.0), (3, 40.0), (4, 80.0), (5, 160.0)])
def test_with_callbacks_the_gaps_double_from_half_the_p95(looks: int, gap_s: float) -> None:
    assert next_look_s(CALLS_BACK, looks, middle) == pytest.approx(gap_s)
    assert next_look_s(CALLS_BACK, looks, low) == pytest.approx(gap_s * 0.8)
    assert next_look_s(CALLS_BACK, looks, high) == pytest.approx(gap_s * 1.2)


def test_a_gap_is_never_shorter_than_5_s_with_callbacks() -> None:
    quick = Pace(p95_s=1.0, median_s=0.5, calls_back=True)
    assert [next_look_s(quick, looks, middle) for looks in (1, 2, 3, 4, 5)] == [5.0, 5.0, 5.0, 5.0, 8.0]


def test_a_gap_is_never_longer_than_a_third_of_the_life_of_results() -> None:
    pace = Pace(p95_s=20.0, median_s=10.0, calls_back=True, lifetime_s=90.0)
    assert [next_look_s(pace, looks, middle) for looks in (1, 2, 3, 9)] == [10.0, 20.0, 30.0, 30.0]


def test_a_gap_with_its_spread_stays_within_a_third_of_the_life_of_results() -> None:
    pace = Pace(p95_s=20.0, median_s=10.0, calls_back=True, lifetime_s=90.0)
    assert next_look_s(pace, 9, high) <= 30.0


def test_a_result_that_lives_briefly_is_looked_for_more_often_than_every_5_s() -> None:
    pace = Pace(p95_s=20.0, median_s=10.0, calls_back=True, lifetime_s=9.0)
    assert next_look_s(pace, 1, middle) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("looks", "gap_s"), [(1, 6.0), (2, 9.0), (3, 13.5), (4, 20.25), (5, 30.0), (60, 30.0), (5_000, 30.0)]
)
def test_without_callbacks_the_gaps_grow_by_half_up_to_30_s(looks: int, gap_s: float) -> None:
    assert next_look_s(POLLED, looks, middle) == pytest.approx(gap_s)


def test_a_provider_s_own_minimum_between_looks_is_kept() -> None:
    pace = Pace(p95_s=2.0, median_s=0.5, calls_back=False, min_gap_s=10.0)
    assert first_look_s(pace, low) == 10.0
    assert next_look_s(pace, 1, low) == 10.0


@pytest.mark.parametrize(
    ("tries", "wait_s"),
    [(0, 1.0), (1, 1.0), (2, 2.0), (3, 4.0), (6, 32.0), (7, 60.0), (100, 60.0), (10**6, 60.0)],
)
def test_the_back_off_doubles_up_to_a_minute(tries: int, wait_s: float) -> None:
    assert retry_after_s(tries, uniform=middle) == pytest.approx(wait_s)
    assert retry_after_s(tries, uniform=low) == pytest.approx(wait_s * 0.8)
    assert retry_after_s(tries, uniform=high) == pytest.approx(wait_s * 1.2)


@pytest.mark.parametrize(
    ("asked_s", "wait_s"),
    [
        (None, 1.0),
        (0.0, 1.0),
        (0.5, 1.0),
        (7.0, 7.0),
        (3_600.0, 3_600.0),
        (3_600.1, 1.0),
        (99_999.0, 1.0),
        (-5.0, 1.0),
    ],
)
def test_a_wish_to_wait_is_honoured_unless_it_is_absurd(asked_s: float | None, wait_s: float) -> None:
    assert retry_after_s(1, asked_s=asked_s, uniform=middle) == pytest.approx(wait_s)


@pytest.mark.parametrize("asked_s", [math.nan, math.inf, -math.inf])
def test_a_broken_wish_to_wait_is_not_believed(asked_s: float) -> None:
    assert retry_after_s(1, asked_s=asked_s, uniform=middle) == pytest.approx(1.0)


@given(
    p95_s=st.floats(0.05, 3_600.0),
    calls_back=st.booleans(),
    looks=st.integers(1, 1_000),
    lifetime_s=st.none() | st.floats(30.0, 86_400.0),
    draw=st.sampled_from([low, middle, high]),
)
def test_every_wait_is_a_positive_finite_number(
    p95_s: float, calls_back: bool, looks: int, lifetime_s: float | None, draw: object
) -> None:
    pace = Pace(p95_s=p95_s, median_s=p95_s / 2, calls_back=calls_back, lifetime_s=lifetime_s)
    uniform = draw if callable(draw) else middle
    for wait_s in (first_look_s(pace, uniform), next_look_s(pace, looks, uniform)):
        assert 0.0 < wait_s < math.inf


def test_looks_of_tasks_made_together_spread() -> None:
    waits = {round(first_look_s(CALLS_BACK), 3) for _ in range(200)}
    assert len(waits) > 150
    assert max(waits) - min(waits) > 10.0


def test_a_provider_that_was_stuck_for_long_still_has_a_next_look() -> None:
    """Nobody is moved while a provider is stuck, so that looks go on counting."""
    assert next_look_s(CALLS_BACK, 2_000, middle) > 0.0
