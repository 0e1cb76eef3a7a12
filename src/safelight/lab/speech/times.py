"""Times in the forms that upstreams write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

DATE_IN_S = 60.0
"""How far ahead a date of ours lies: so far that no busy machine reads it when it is past."""


def http_date(in_s: float = DATE_IN_S) -> str:
    """A moment from now as the header Retry-After has it: whole seconds, rounded up, for nobody may come sooner."""
    moment = datetime.now(UTC) + timedelta(seconds=in_s)
    whole = moment.replace(microsecond=0)
    return format_datetime(whole if whole == moment else whole + timedelta(seconds=1), usegmt=True)


def iso_time(at: float | None) -> str | None:
    """A time as ISO 8601 in UTC, to the microsecond."""
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
