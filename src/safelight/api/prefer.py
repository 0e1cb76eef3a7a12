"""What a caller prefers (RFC 7240): an answer at once, or not later than in so many seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.types import Scope

_WAIT = re.compile(r'wait\s*=\s*"?([0-9]{1,6})"?')


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer may take, and which preference of the caller made it so ("": none)."""

    seconds: float
    applied: str = ""


def patience_of(scope: Scope, most_s: float, *, default_s: float | None = None) -> Patience:
    """How long a request may be held: `default_s` (the most, unless given) or less if its `Prefer` says so.

    `wait` counts even beside `respond-async`: that is how the RFC combines them.
    """
    given = (
        b",".join(value for name, value in scope["headers"] if name == b"prefer").decode("latin-1").lower()
    )
    preferences = [text.partition(";")[0].strip() for text in given.split(",")]
    for text in preferences:
        if wait := _WAIT.fullmatch(text):
            return Patience(min(float(wait[1]), most_s), f"wait={wait[1]}")
    if "respond-async" in preferences:
        return Patience(0.0, "respond-async")
    return Patience(most_s if default_s is None else default_s)
