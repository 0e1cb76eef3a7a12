"""A job's fate: every random decision about it, taken once at acceptance and kept in the ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import Any, Self

from safelight.lab.knobs import Knobs

FORGERIES = ("wrong", "none", "non_ascii", "wrong_key")


@dataclass(slots=True)
class Fate:
    """What will become of one job."""

    latency_s: float = 0.0
    outcome: str = "done"
    ending_way: str = ""
    variant: str | None = None
    delivered: int = 1
    is_running_notice_lost: bool = False
    is_end_notice_lost: bool = False
    callback_copies: int = 1
    is_reordered: bool = False
    callback_delay_s: float = 0.0
    callback_replay_s: float | None = None
    callback_stale_s: float | None = None
    is_reserialised: bool = False
    is_unsigned: bool = False
    secret_rotated: str | None = None
    forgery: str = ""
    is_early: bool = False
    is_hanging: bool = False
    is_answer_lost: bool = False
    is_dreaming: bool = False
    is_small: bool = False
    expire_result_s: float | None = None
    html_result: float = 0.0
    truncate_result: float = 0.0
    slow_result: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Only what differs from the default, to keep ledger lines short."""
        return {name: value for name in _DEFAULTS if (value := getattr(self, name)) != _DEFAULTS[name]}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The fate as it was written by to_json."""
        return cls(**values)


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Fate)}


def decide_fate(knobs: Knobs, *, n: int, random: Random, ways: Mapping[str, Sequence[str]]) -> Fate:
    """Draw the fate of a job of n pictures; `ways` are its upstream's ways of ending, by situation."""
    outcome, way = _outcome(knobs, random, ways)
    delivered = random.randint(1, n - 1) if n > 1 and _hits(knobs.partial, random) else n
    if _hits(knobs.empty_success, random):
        delivered = 0
    is_early = _hits(knobs.callback_early, random)
    return Fate(
        latency_s=0.0 if is_early else round(random.uniform(*knobs.latency_s), 3),
        outcome=outcome,
        ending_way=way,
        variant=knobs.variant,
        delivered=delivered if outcome == "done" else 0,
        is_running_notice_lost=_hits(knobs.callback_loss, random),
        is_end_notice_lost=_hits(knobs.callback_loss, random),
        callback_copies=knobs.callback_copies,
        is_reordered=_hits(knobs.callback_reorder, random),
        callback_delay_s=_delay(knobs.callback_delay_s, random) + knobs.callback_late_s,
        callback_replay_s=knobs.callback_replay_s,
        callback_stale_s=knobs.callback_stale_s,
        is_reserialised=knobs.callback_reserialised,
        is_unsigned=knobs.callback_unsigned,
        secret_rotated=knobs.secret_rotated,
        forgery=random.choice(FORGERIES) if _hits(knobs.callback_forge, random) else "",
        is_early=is_early,
        is_hanging=_hits(knobs.hang_after_accept, random),
        is_answer_lost=_hits(knobs.lose_answer, random),
        is_dreaming=_hits(knobs.unknown_status, random),
        is_small=knobs.small_pictures,
        expire_result_s=knobs.expire_result_s,
        html_result=knobs.html_result,
        truncate_result=knobs.truncate_result,
        slow_result=knobs.slow_result,
    )


def _outcome(knobs: Knobs, random: Random, ways: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    is_blocked, is_failed = _hits(knobs.moderate, random), _hits(knobs.fail, random)
    if knobs.ending is not None:
        return knobs.ending, knobs.ending_way or ways[knobs.ending][0]
    # An upstream that can only refuse beforehand has no such ending; the studio has drawn that already.
    if is_blocked and ways.get("blocked"):
        return "blocked", random.choice(ways["blocked"])
    if is_failed and ways.get("failed"):
        return "failed", random.choice(ways["failed"])
    return "done", ""


def _hits(probability: float, random: Random) -> bool:
    return probability > 0 and random.random() < probability


def _delay(delay_s: float | tuple[float, float], random: Random) -> float:
    return random.uniform(*delay_s) if isinstance(delay_s, tuple) else delay_s
