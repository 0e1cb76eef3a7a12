"""When to look at a provider and when to try again: pure numbers, seconds throughout."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Uniform = Callable[[float, float], float]
"""Draws a number between two bounds; tests pass their own."""

MAX_LOOKS_WITHOUT_PROGRESS = 5
"""Looks past the threshold that show nothing new; then a person decides (design, section 6)."""
MIN_SAMPLES = 20
"""Succeeded attempts before the measured P95 replaces the configured default."""
FIRST_JITTER_CAP_S = 30.0
MIN_GAP_S = 5.0
MAX_POLL_GAP_S = 30.0
POLL_GROWTH = 1.5
SPREAD = 0.2
"""Every gap varies by ±20 % so that tasks never look together."""
ENOUGH_CALLBACKS = 0.5
"""Below this share of callbacks among the last tasks, a provider is carried by polling."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What the schedule needs to know of one provider and model.

    `p95_s` and `median_s` are run times; `lifetime_s` is the declared lifetime of result URLs (None where
    results do not expire on their own); `min_gap_s` is the provider's own minimum between two looks.
    """

    p95_s: float
    median_s: float
    calls_back: bool
    lifetime_s: float | None = None
    min_gap_s: float = 0.0


def threshold_s(
    measured_p95_s: float | None, samples: int, *, default_s: float, floor_s: float, cap_s: float
) -> float:
    """The P95 to plan with: measured once there are enough samples, between the floor and the cap."""
    p95_s = default_s if measured_p95_s is None or samples < MIN_SAMPLES else measured_p95_s
    return min(max(p95_s, floor_s), cap_s)


def first_look_s(pace: Pace, uniform: Uniform = random.uniform) -> float:
    """Seconds from the start of a run to the first look.

    With callbacks: P95 + uniform(0, min(30 s, P95)). Without: near the median, ±20 %.
    """
    if pace.calls_back:
        return pace.p95_s + uniform(0.0, min(FIRST_JITTER_CAP_S, pace.p95_s))
    return max(_spread(pace.median_s, uniform), pace.min_gap_s)


def next_look_s(pace: Pace, looks: int, uniform: Uniform = random.uniform) -> float:
    """Seconds to the next look after `looks` looks that showed no progress (at least 1)."""
    if pace.calls_back:
        gap_s = _spread(max(MIN_GAP_S, pace.p95_s * 2.0 ** min(max(looks - 1, 0), 64) / 2.0), uniform)
        if pace.lifetime_s is not None:
            gap_s = min(gap_s, pace.lifetime_s / 3.0)
    else:
        gap_s = _spread(min(pace.median_s * POLL_GROWTH ** min(looks, 64), MAX_POLL_GAP_S), uniform)
    return max(gap_s, pace.min_gap_s)


def retry_after_s(tries: int, *, asked_s: float | None = None, uniform: Uniform = random.uniform) -> float:
    """Back-off before try number `tries` + 1: 1, 2, 4 … 60 s, ±20 %, never before the provider's own wish.

    A wish beyond one hour or a negative one is not believed: `Retry-After: 99999` has been seen.
    """
    backoff_s = _spread(min(2.0 ** min(max(tries - 1, 0), 16), 60.0), uniform)
    if asked_s is None or not 0.0 <= asked_s <= 3600.0:
        return backoff_s
    return max(backoff_s, asked_s)


def _spread(gap_s: float, uniform: Uniform) -> float:
    return gap_s * uniform(1.0 - SPREAD, 1.0 + SPREAD)
