"""Moods: the knobs as they stand, for all upstreams or for one, and how often each refusal is still due."""

from __future__ import annotations

from random import Random
from typing import Any

from safelight.lab.knobs import Gateway, Knobs

_COUNTED = {"refuse", "gateway"}


class Moods:
    """Knobs for everybody, and on top of them those that one upstream has for itself."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.random = Random(knobs.seed)
        self._first = knobs
        self._own: dict[str, dict[str, Any]] = {}
        self._used: dict[tuple[str, str], int] = {}

    def of(self, name: str) -> Knobs:
        """The knobs of one upstream."""
        own = self._own.get(name)
        return self.knobs if own is None else self.knobs.merged(own)

    def turn(self, changes: object, *, name: str = "") -> Knobs:
        """Replace some knobs from now on, of all or of one upstream; a seed starts the draws anew.

        `{"reset": true}` first brings back what the lab was started with. ValueError says what is wrong.
        """
        values = dict(changes) if isinstance(changes, dict) else changes
        is_reset = isinstance(values, dict) and values.pop("reset", False) is True
        base = self._first if is_reset and not name else self.knobs
        before = {} if is_reset else self._own.get(name, {})
        merged = base.merged({**before, **values} if name and isinstance(values, dict) else values)
        self._forget(is_reset, values, name)
        if not name:
            self.knobs = merged
        elif isinstance(values, dict):
            self._own[name] = {**before, **values}
        if isinstance(values, dict) and values.get("seed") is not None:
            self.random.seed(merged.seed)
        return merged

    def refusal(self, name: str, role: str) -> tuple[str, str | None] | None:
        """The situation and way in which this call has to be refused, if it has to."""
        knobs = self.of(name)
        if knobs.refuse is None:
            return None
        usual = "poll" if knobs.refuse == "not_found" else "submit"
        if not _meets(knobs.refuse_where or usual, role):
            return None
        is_due = self._is_due("refuse", name, knobs.refuse_times)
        return (knobs.refuse, knobs.refuse_way) if is_due else None

    def gateway(self, name: str, role: str) -> Gateway | None:
        """What a gateway answers in the upstream's place, if it does."""
        gateway = self.of(name).gateway
        if gateway is None or not _meets(gateway.where, role):
            return None
        return gateway if self._is_due("gateway", name, gateway.times) else None

    def _is_due(self, what: str, name: str, times: int | None) -> bool:
        used = self._used[what, name] = self._used.get((what, name), 0) + 1
        return times is None or used <= times

    def _forget(self, is_reset: bool, values: object, name: str) -> None:
        turned = _COUNTED if is_reset else _COUNTED & values.keys() if isinstance(values, dict) else set()
        if is_reset and not name:
            self._own.clear()
        for place in [at for at in self._used if at[0] in turned and name in {"", at[1]}]:
            del self._used[place]


def _meets(where: str, role: str) -> bool:
    return where == role or (where == "any" and role != "other")
