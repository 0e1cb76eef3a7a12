"""Limits on how often one may knock: cheap to ask, bounded in memory, kept by this process alone."""

from __future__ import annotations

from time import monotonic

MAX_NAMES = 50_000
ROUNDING_S = 1e-6
"""Sums of gaps are not exact: without this the last one of a burst would sometimes be refused."""


class Limit:
    """At most `rate_per_s` a second and `burst` at once, for each name apart.

    A token bucket, kept as one number a name: the moment at which the bucket will be full again.
    """

    def __init__(self, rate_per_s: float, *, burst: float) -> None:
        self._gap_s = 1.0 / rate_per_s
        self._slack_s = max(burst - 1.0, 0.0) / rate_per_s
        self._full_at: dict[object, float] = {}

    def take(self, name: object) -> float:
        """Take one: 0.0 if there was one, else the seconds after which there will be."""
        now = monotonic()
        full_at = max(self._full_at.get(name, now), now)
        wait_s = full_at - now - self._slack_s
        if wait_s > ROUNDING_S:
            return wait_s
        if len(self._full_at) >= MAX_NAMES:
            self._forget(now)
        self._full_at[name] = full_at + self._gap_s
        return 0.0

    def wait_s(self, name: object) -> float:
        """What `take` would answer, without taking."""
        now = monotonic()
        wait_s = self._full_at.get(name, now) - now - self._slack_s
        return wait_s if wait_s > ROUNDING_S else 0.0

    def _forget(self, now: float) -> None:
        """Drop full buckets; should a flood of names leave none, start afresh rather than grow."""
        self._full_at = {name: full_at for name, full_at in self._full_at.items() if full_at > now}
        if len(self._full_at) >= MAX_NAMES:
            self._full_at.clear()
