"""A date that the lab tells is never sooner than it means, whatever part of a second it is told in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from safelight.domain.retryafter import read_retry_after
from safelight.lab.speech.times import DATE_IN_S, http_date


@pytest.mark.parametrize("in_s", [0.0, 0.001, 0.5, 0.999, 1.0, 59.7, DATE_IN_S])
def test_a_date_for_retry_after_is_rounded_up(in_s: float) -> None:
    before = datetime.now(UTC)
    told = read_retry_after(http_date(in_s), before)
    after = datetime.now(UTC)
    assert told is not None
    assert in_s <= told < in_s + 1 + (after - before).total_seconds()
