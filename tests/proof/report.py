"""What a layer of the proof is asked for, and what it answers."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Size(StrEnum):
    """How much of a layer is run: with every test run, within half an hour, or before a release."""

    CI = "ci"
    PROVE = "prove"
    RELEASE = "release"


@dataclass(slots=True)
class LayerReport:
    """One row of the table that `make prove` prints."""

    layer: str
    seed: int
    tried: int = 0
    figures: dict[str, int | str] = field(default_factory=dict)
    """Further totals in the order to print, such as `points reached` or `by kind`."""
    failures: list[str] = field(default_factory=list)
    """One line each, with what repeats it: a seed, a point, a mutant."""

    @property
    def is_good(self) -> bool:
        """Whether something was tried and nothing failed; a layer that tried nothing proves nothing."""
        return self.tried > 0 and not self.failures


Layer = Callable[[Size, int], Coroutine[Any, Any, LayerReport]]
"""A layer runs at a size with a seed; it raises only for faults of its own."""


def told(error: BaseException) -> str:
    """An error as one line, with the place that raised it: a bare assertion says nothing else."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(str(error).split())[:300]
    return (
        f"{type(error).__name__} {words} at {place.filename.rpartition('/')[2]}:{place.lineno}: {place.line}"
    )
