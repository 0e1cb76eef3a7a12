"""Retry-After in either of its forms; what it does not say clearly, it does not say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from safelight.domain.retryafter import read_retry_after

NOW = datetime(2026, 10, 21, 7, 27, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        (" 90 ", 90.0),
        ("1.5", 1.5),
        ("999999999", 999_999_999.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 30.0),
        ("Wednesday, 21-Oct-26 07:28:00 GMT", 30.0),
        ("Wed Oct 21 07:28:00 2026", 30.0),
        ("Wed, 21 Oct 2026 09:28:00 +0200", 30.0),
        ("Wed, 21 Oct 2026 07:27:30 GMT", 0.0),
    ],
)
def test_seconds_and_every_form_of_date_are_read(value: str, seconds: float) -> None:
    assert read_retry_after(value, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "soon",
        "-1",
        "1e3",
        "nan",
        "9999999999",
        "\u0663\u0660",
        "Wed, 21 Oct 2026 07:27:29 GMT",
        "Wed, 99 Oct 2026 07:28:00 GMT",
        "Wed, 21 Oct 99999999999999999999 07:28:00 GMT",
        "Wed, 21 Oct 2026 07:28:00 +999999999",
    ],
)
def test_what_is_past_or_nonsense_is_no_wish(value: str | None) -> None:
    assert read_retry_after(value, NOW) is None
