"""When a client asks again: which answers are worth it, and after how long (seconds)."""

from __future__ import annotations

import random
from collections.abc import Iterator

MAX_TRIES = 5
FIRST_GAP_S = 0.2
LONGEST_GAP_S = 2.0
LONGEST_RETRY_AFTER_S = 30.0
"""A service that wants us to stay away for longer is believed: the call fails, and says for how long."""

TEMPORARY = frozenset({429, 500, 502, 503, 504})
IN_PROGRESS = frozenset({409})
"""Only for a submit: the same key is being handled at this moment."""


def gap_before_retry(tries: int, retry_after_s: float | None = None) -> float | None:
    """How long to wait after so many tries; None means that there is no point in going on."""
    if tries >= MAX_TRIES or (retry_after_s or 0.0) > LONGEST_RETRY_AFTER_S:
        return None
    gap = FIRST_GAP_S * 2.0 ** (tries - 1)
    # Spread upwards only: a time that the service named is never undercut.
    return max(gap, retry_after_s or 0.0) * random.uniform(1.0, 1.2)


def gaps_between_looks() -> Iterator[float]:
    """Growing gaps between two looks at a task, from 0.2 s to 2 s, each ±20 %."""
    gap = FIRST_GAP_S
    while True:
        yield gap * random.uniform(0.8, 1.2)
        gap = min(gap * 1.3, LONGEST_GAP_S)


def seconds_of(retry_after: str | None) -> float | None:
    """A Retry-After header in seconds; its form as a date, and nonsense, count as none."""
    return float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
