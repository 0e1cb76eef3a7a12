"""Times that callers name: with their zone, and within what a calendar holds."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from safelight.api.problems import FieldsRefused

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def read_moment(field: str, text: str) -> datetime:
    """A time as RFC 3339 writes it, in UTC.

    Raises:
        RequestError: 422.
    """
    # In a query a plus that nobody escaped arrives as a space.
    text = re.sub(r" (?=[0-9]{2}:[0-9]{2}$)", "+", text)
    if _TIME.fullmatch(text):
        try:
            moment = datetime.fromisoformat(text.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        else:
            if 1970 <= moment.year <= 9_000:
                return moment
    message = "must be a time with its zone, such as 2026-01-01T12:00:00Z"
    raise FieldsRefused([{"field": field, "message": message}])
