"""How long `Retry-After` asks to be left alone: seconds, or a date as HTTP writes it (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def read_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds from `now` on; None for what is no wish: a moment that is past, nonsense, or nothing."""
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    # A zone of "-0000" gives a time without zone; HTTP dates are in UTC.
    seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return seconds if seconds >= 0 else None
