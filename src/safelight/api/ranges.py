"""One byte range of a download (RFC 9110, section 14)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Span:
    """`length` bytes from `start`."""

    start: int
    length: int


def read_span(header: str | None, total: int) -> Span | None:
    """What of `total` bytes is wanted; None if it lies wholly outside.

    Several ranges, other units and nonsense are ignored, as a server may: then everything is sent.
    """
    everything = Span(0, total)
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None:
        return everything
    first, last, suffix = found.groups()
    if suffix is not None:
        length = min(int(suffix), total)
        return Span(total - length, length) if length else None
    start = int(first)
    end = min(int(last) + 1, total) if last else total
    if last and int(last) < start:
        return everything
    return Span(start, end - start) if start < total else None
