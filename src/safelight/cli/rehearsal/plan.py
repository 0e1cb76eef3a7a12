"""What is rehearsed: how much, for how long, and which faults come with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    """What goes wrong. The first five are blows of a moment, the others moods of the lab that last a while."""

    KILLS = "kills"
    PAUSES = "pauses"
    DATABASE = "database"
    QUEUE = "queue"
    STORAGE = "storage"
    CALLBACKS = "callbacks"
    GATEWAY = "gateway"
    LIMITS = "limits"
    ANSWERS = "answers"
    ENDINGS = "endings"
    RESULTS = "results"


BLOWS = (Fault.KILLS, Fault.PAUSES, Fault.DATABASE, Fault.QUEUE, Fault.STORAGE)


def _gateway(how: str, *, is_accepted: bool = False, where: str = "submit") -> dict[str, Any]:
    return {"gateway": {"where": where, "how": how, "is_accepted": is_accepted}}


MOODS: Mapping[Fault, Sequence[Mapping[str, Any]]] = {
    Fault.CALLBACKS: (
        {"callback_loss": 1.0},
        {"callback_loss": 0.3, "callback_copies": 4, "callback_reorder": 0.5, "callback_delay_s": (0.0, 3.0)},
        {"callback_forge": 0.5, "callback_copies": 2},
        {"callback_early": 0.5},
    ),
    Fault.GATEWAY: (
        _gateway("html_502"),
        _gateway("html_502", is_accepted=True),
        _gateway("empty_500", is_accepted=True),
        _gateway("reset_before"),
        _gateway("reset_after_head", is_accepted=True),
        _gateway("truncated_json", is_accepted=True),
        _gateway("garbage_200", where="poll"),
        _gateway("html_502", where="result"),
    ),
    Fault.LIMITS: ({"rate_limit": 0.5}, {"rate_limit": 1.0}),
    Fault.ANSWERS: ({"lose_answer": 0.3}, {"unknown_status": 0.5}),
    Fault.ENDINGS: ({"fail": 0.3, "moderate": 0.1}, {"partial": 0.5, "empty_success": 0.1}),
    Fault.RESULTS: ({"html_result": 0.3, "truncate_result": 0.2}, {"expire_result_s": 1.0}),
}
"""What the lab does wrong, by fault: one of them at a time."""

FLAT_AFTER_S = 600.0
"""Shorter rehearsals say nothing about whether memory and files stay flat."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A rehearsal: submits come at `rate` a second until the minutes are over or `tasks` are in."""

    minutes: float = 2.0
    tasks: int | None = None
    rate: float = 4.0
    faults: tuple[Fault, ...] = tuple(Fault)
    seed: int = 1
    database_url: str | None = None
    workers: int = 2
    latency_s: tuple[float, float] = (0.2, 1.5)
    gap_s: tuple[float, float] = (1.0, 5.0)
    """Between two blows."""
    mood_s: tuple[float, float] = (3.0, 8.0)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the service, beside those of a scratch installation."""

    @property
    def blows(self) -> list[Fault]:
        """The chosen blows; the server of somebody else is never killed."""
        is_ours = self.database_url is None
        return [fault for fault in BLOWS if fault in self.faults and (is_ours or fault is not Fault.DATABASE)]

    @property
    def moods(self) -> list[Fault]:
        """The chosen moods."""
        return [fault for fault in self.faults if fault in MOODS]
