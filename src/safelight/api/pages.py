"""Pages of lists: a limit, and a cursor that hides what it is made of."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from starlette.datastructures import QueryParams

from safelight.api.problems import FieldsRefused

DEFAULT_LIMIT = 50
MAX_LIMIT = 100
MAX_ENTRY = 2**63 - 1

PositionT = TypeVar("PositionT", UUID, int)


def read_limit(query: QueryParams) -> int:
    """How many rows are wanted.

    Raises:
        RequestError: 422.
    """
    text = query.get("limit", str(DEFAULT_LIMIT))
    if not text.isascii() or not text.isdigit() or len(text) > 3 or not 1 <= int(text) <= MAX_LIMIT:
        raise FieldsRefused([{"field": "limit", "message": f"must be an integer from 1 to {MAX_LIMIT}"}])
    return int(text)


def read_cursor(query: QueryParams, read: Callable[[bytes], PositionT]) -> PositionT | None:
    """Where the page before ended.

    Raises:
        RequestError: 422, this cursor was not made by us for this list.
    """
    text = query.get("cursor")
    if text is None:
        return None
    try:
        raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True)
        return read(raw)
    except (ValueError, binascii.Error):
        raise FieldsRefused([{"field": "cursor", "message": "is not one of ours"}]) from None


def task_position(raw: bytes) -> UUID:
    """The id of the last task."""
    return UUID(bytes=raw)


def entry_position(raw: bytes) -> int:
    """The number of the last entry."""
    number = int.from_bytes(raw)
    if len(raw) != 8 or number > MAX_ENTRY:
        raise ValueError("not an entry's number")
    return number


def page(items: Sequence[Any], limit: int, last: bytes | None) -> dict[str, Any]:
    """A page as JSON; `last` is where the next one begins if this one is full."""
    is_full = last is not None and len(items) == limit
    cursor = base64.urlsafe_b64encode(last).rstrip(b"=").decode() if is_full and last else None
    return {"data": list(items), "next_cursor": cursor}
