"""Quotes, holds, captures and releases: integers of the smallest credit unit."""

from __future__ import annotations

from dataclasses import dataclass

from safelight.errors import LedgerError


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a hold ends: what is captured and what goes back. Both are at least 0."""

    captured: int
    released: int


def quote(unit_price: int, n: int) -> int:
    """The hold for n pictures: the worst case, frozen with the task.

    Raises:
        LedgerError: a negative price or a count below 1.
    """
    if unit_price < 0 or n < 1:
        raise LedgerError("a quote needs a price of at least 0 and at least one picture")
    return unit_price * n


def settlement_of(held: int, *, unit_price: int, delivered: int) -> Settlement:
    """Capture the delivered pictures, release the rest of the hold.

    Raises:
        LedgerError: more would be captured than is held.
    """
    captured = unit_price * delivered
    if delivered < 0 or captured > held:
        raise LedgerError("a settlement cannot capture more than its hold")
    return Settlement(captured=captured, released=held - captured)
