"""Which way a task goes: among the routes of its model, and among the keys of a route's provider."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from safelight.domain.catalog import Route
from safelight.domain.failure import MAX_ATTEMPTS, MAX_ATTEMPTS_IN_ALL

PATIENCE_S = 60.0
"""A task waits so long for a rate limit before another route is taken.

The first route is the one that the operator prefers, and a limit that ends within a minute costs a customer little;
beyond that, waiting is worse than the second choice.
"""
BREAKS_AT_ONCE = frozenset({"credentials", "funds", "faults"})
"""Why a gate that closes once stands for a breaker: these do not pass by themselves within seconds."""
BREAKS_AFTER = 3
"""Closings in a row after which any other failure counts as lasting; the first ones are over in seconds."""
RATE_LIMITED = "rate_limited"
"""The one reason that never breaks a key, however often it comes."""

RouteId = tuple[str, str]
"""Provider and upstream model."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a task asks of a route."""

    operation: str
    n: int = 1
    prompt_chars: int = 0
    size: str | None = None
    aspect_ratio: str | None = None
    images: int = 0
    has_mask: bool = False
    options: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class KeyState:
    """How one provider key stands: its gate, and how much it has to do.

    `closed_for_s` is how long its gate stays closed; `failures` are closings in a row without a success between;
    `load` are its unfinished tasks; `is_unattended` says that none of them will be sent soon.
    """

    closed_for_s: float = 0.0
    failures: int = 0
    reason: str = ""
    load: int = 0
    is_unattended: bool = True

    @property
    def is_broken(self) -> bool:
        """Whether its breaker is open, or waits for a probe."""
        if self.failures < 1 or self.reason == RATE_LIMITED:
            return False
        return self.reason in BREAKS_AT_ONCE or self.failures >= BREAKS_AFTER

    @property
    def is_out(self) -> bool:
        """Whether its waiting tasks are better off elsewhere."""
        return self.closed_for_s > (0.0 if self.is_broken else PATIENCE_S)

    @property
    def wait_s(self) -> float:
        """How long a new task would wait. A broken key takes a single one, as a probe, when its time has come."""
        if not self.is_broken:
            return self.closed_for_s
        is_probe_due = self.closed_for_s <= 0.0 and self.is_unattended
        return 0.0 if is_probe_due else math.inf

    def with_one_more(self) -> KeyState:
        """The same key with one more task."""
        return replace(self, load=self.load + 1, is_unattended=False)


@dataclass(frozen=True, slots=True)
class Place:
    """One key of one route: where a task is, or goes."""

    route: Route
    provider: str

    def is_where(self, provider: str, upstream_model: str) -> bool:
        """Whether this is the place that a task's columns name."""
        return self.provider == provider and self.route.upstream_model == upstream_model


@dataclass(frozen=True, slots=True)
class Ways:
    """What there is to choose from: a model's routes in order, the keys of each provider, and how they stand."""

    routes: Sequence[Route]
    keys: Mapping[str, Sequence[str]]
    states: Mapping[str, KeyState]
    today: date

    def wait_s(self, place: Place) -> float:
        """How long a task would wait there."""
        return self._state(place.provider).wait_s

    def best_key(self, route: Route, current: str = "") -> Place:
        """The key of a route that would send a task soonest; of several, the least loaded."""
        keys = self.keys.get(route.provider) or (current or route.provider,)

        def rank(key: str) -> tuple[float, int, bool]:
            state = self._state(key)
            return state.wait_s, state.load, key != current

        return Place(route, min(keys, key=rank))

    def _state(self, key: str) -> KeyState:
        return self.states.get(key, _UNTOUCHED)


_UNTOUCHED = KeyState()


@dataclass(frozen=True, slots=True)
class Tries:
    """How many attempts a task has had, by route; those that never had a chance are not among them."""

    by_route: Mapping[RouteId, int] = field(default_factory=dict)

    def may_follow_at(self, route: Route) -> bool:
        """Whether one more attempt is allowed there."""
        is_any_left = sum(self.by_route.values()) < MAX_ATTEMPTS_IN_ALL
        return is_any_left and self.by_route.get(id_of(route), 0) < MAX_ATTEMPTS


def id_of(route: Route) -> RouteId:
    """What tells a route from the others of its model."""
    return route.provider, route.upstream_model


def fits(route: Route, demand: Demand) -> bool:
    """Whether a route can do what a task asks for, within its own bounds."""
    return (
        demand.operation in route.operations
        and demand.n <= route.max_n
        and demand.prompt_chars <= route.max_prompt_chars
        and demand.images <= route.max_images
        and (route.takes_mask or not demand.has_mask)
        and (route.options is None or set(demand.options) <= set(route.options))
        and _offers(route.sizes, demand.size)
        and _offers(route.aspect_ratios, demand.aspect_ratio)
    )


def choose_first(ways: Ways, demand: Demand) -> Place | None:
    """Where a new task goes: the first route that can take it soon, else the first that can take it at all.

    A task was checked against what the first route offers when it came in.
    """
    places = [
        ways.best_key(route)
        for place, route in enumerate(ways.routes)
        if route.is_alive(ways.today) and (place == 0 or fits(route, demand))
    ]
    soon = (place for place in places if ways.wait_s(place) <= PATIENCE_S)
    return next(soon, places[0] if places else None)


def choose_next(ways: Ways, demand: Demand, current: Place, tries: Tries) -> Place | None:
    """Where the next attempt of a task goes whose former attempts were certainly not accepted, or have failed.

    Its own route comes first while it has a try left, and is waited for if no other can take the task soon. None:
    there is nowhere to go.
    """
    own = id_of(current.route)
    others = [route for route in ways.routes if id_of(route) != own and fits(route, demand)]
    places = [
        ways.best_key(route, current.provider if id_of(route) == own else "")
        for route in (current.route, *others)
        if route.is_alive(ways.today) and tries.may_follow_at(route)
    ]
    soon = (place for place in places if ways.wait_s(place) <= PATIENCE_S)
    may_stay = bool(places) and id_of(places[0].route) == own
    return next(soon, places[0] if may_stay else None)


def _offers(offered: Sequence[str], asked: str | None) -> bool:
    """As the catalog writes it: an empty word stands for anything."""
    return asked is None or asked in offered or "" in offered
