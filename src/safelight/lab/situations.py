"""Situations: the lab's own words for every way in which an upstream says no."""

from __future__ import annotations

REFUSALS = (
    "invalid_request",
    "content_blocked",
    "credentials",
    "funds",
    "rate_limited",
    "concurrency_limited",
    "upstream_fault",
    "not_found",
)
"""What may be answered instead of accepting; `not_found` is for polls."""

ENDINGS = ("failed", "blocked", "invalid_request")
"""How an accepted job may end badly."""


class UnknownWay(Exception):
    """A knob asks for a way that the upstream does not have: a mistake of the test, told loudly."""
