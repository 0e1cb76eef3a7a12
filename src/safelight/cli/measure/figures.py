"""Figures as they are printed and as JSON, with the aims that stand beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

AIM_RATIO = 0.25
"""Durable submits per second, as a share of what the same server does of the no-op."""
AIM_DELAY_P99_MS = 500.0
"""From upstream-done to ready, with callbacks on."""
AIM_POLLS = 0.1
"""Upstream polls per task, with callbacks on."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Milliseconds: of `count` values, the nearest rank."""

    p50: float
    p95: float
    p99: float
    count: int


def quantiles(values_ms: Sequence[float]) -> Quantiles | None:
    """The quantiles of some milliseconds; None where there are none."""
    if not values_ms:
        return None
    ordered = sorted(values_ms)

    def rank(share: float) -> float:
        return round(ordered[max(math.ceil(share * len(ordered)), 1) - 1], 2)

    return Quantiles(rank(0.50), rank(0.95), rank(0.99), len(ordered))


@dataclass(frozen=True, slots=True)
class Submits:
    """(a): durable submits beside the no-op on the same server, in alternating rounds.

    `ratio` is the median of the submits' rates over the median of the no-op's; `generator_share` is the part of a
    core that the load generator used during the no-op, where it works hardest.
    """

    server: str
    connections: int
    rounds: int
    submits_per_s: float
    submit_ms: Quantiles | None
    noop_per_s: float
    noop_ms: Quantiles | None
    ratio: float
    generator_share: float


@dataclass(frozen=True, slots=True)
class Crowd:
    """(b), (c), (d): tasks sent in waves of `open_tasks`, and what became of them.

    `delay_ms` is from upstream-done to ready; `latency_s` and `loss` are the lab's knobs.
    """

    size: str
    open_tasks: int
    latency_s: tuple[float, float]
    loss: float
    tasks: int
    ready: int
    elapsed_s: float
    tasks_per_s: float
    delay_ms: Quantiles | None
    polls_per_task: float


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured; `load_1m` was the load average before we began."""

    cores: int
    load_1m: float
    python: str
    system: str
    version: str


@dataclass(frozen=True, slots=True)
class Figures:
    """All of one run."""

    machine: Machine
    is_quick: bool
    finishes_per_s: float
    submits: list[Submits]
    whole_tasks: list[Crowd]
    delays: list[Crowd]
