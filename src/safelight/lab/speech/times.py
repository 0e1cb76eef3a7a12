"""Times in the forms that upstreams write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime


def http_date(in_s: float) -> str:
    """A moment from now, as the header Retry-After has it."""
    return format_datetime(datetime.now(UTC) + timedelta(seconds=in_s), usegmt=True)


def iso_time(at: float | None) -> str | None:
    """A time as ISO 8601 in UTC, to the microsecond."""
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
