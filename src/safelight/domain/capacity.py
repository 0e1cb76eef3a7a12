"""What a provider's limits leave free: pure numbers, counted from rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from safelight.domain.provider import Capabilities

NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Taken:
    """What of a provider's limits is taken; `sent` are the submits within the window of its rate."""

    calls: int
    tasks: int
    images: int
    sent: int


@dataclass(frozen=True, slots=True)
class Free:
    """What is left: calls that may begin, and images that they may ask for."""

    calls: int
    images: int

    @property
    def is_none(self) -> bool:
        return self.calls < 1 or self.images < 1


def rate_window(capabilities: Capabilities) -> tuple[float, int]:
    """A declared rate as whole calls in a window of seconds: 0.5 a second is 1 in 2 s, 2.5 is 3 in 1.2 s."""
    rate = capabilities.calls_per_s
    if rate is None:
        return 1.0, NO_LIMIT
    most = math.ceil(rate)
    return most / rate, most


def free_of(capabilities: Capabilities, taken: Taken, *, is_probing: bool) -> Free:
    """What is free; a provider that has failed gets one probe at a time."""
    _, most = rate_window(capabilities)
    calls = min(capabilities.max_calls - taken.calls, most - taken.sent)
    if capabilities.max_active_tasks is not None:
        calls = min(calls, capabilities.max_active_tasks - taken.tasks)
    if is_probing:
        calls = min(calls, 1 - min(taken.calls, 1))
    images = NO_LIMIT if capabilities.max_active is None else capabilities.max_active - taken.images
    return Free(calls, images)
