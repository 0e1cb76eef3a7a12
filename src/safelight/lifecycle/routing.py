"""What there is to choose from when a task needs a place: how the provider keys stand, read from rows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from safelight.db import gates, tasks
from safelight.db.statements import Connection
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.catalog import Catalog, Model, Route
from safelight.domain.routes import (
    Demand,
    KeyState,
    Place,
    Tries,
    Ways,
    choose_first,
    choose_next,
    id_of,
)

KEEP_S = 1.0
"""Seconds for which new tasks go by what was read last; each of them is added to it."""
COUNTED = 1_000
"""Waiting tasks are counted so far: beyond that a key has more than enough to do."""


class Routing:
    """Providers, their keys and how those stand.

    `keys` lists the names of each provider's keys: the first is called like the provider itself.
    """

    def __init__(self, catalog: Catalog, keys: Mapping[str, Sequence[str]]) -> None:
        self._catalog = catalog
        self._routes = [route for model in catalog.models.values() for route in model.routes]
        self._keys = keys
        self._provider_of = {key: provider for provider, names in keys.items() for key in names}
        self._states: dict[str, KeyState] = {}
        self._kept_until = 0.0

    @property
    def has_choices(self) -> bool:
        """Whether any task can go to more than one place."""
        return any(self.has_choice(model) for model in self.models)

    @property
    def models(self) -> Iterable[Model]:
        return self._catalog.models.values()

    def provider_of(self, key: str) -> str:
        """The provider that a key belongs to; statistics and prices go by it."""
        return self._provider_of.get(key, key)

    def keys_of(self, provider: str) -> Sequence[str]:
        """All keys of the provider, or of the provider of this key."""
        provider = self.provider_of(provider)
        return self._keys.get(provider, (provider,))

    def siblings(self) -> Iterable[Sequence[str]]:
        """The keys of every provider that has several."""
        return (names for names in self._keys.values() if len(names) > 1)

    def retired(self, key: str, today: date) -> list[str]:
        """Upstream models of this key's provider to which nothing new is sent any more."""
        return [route.upstream_model for route in self._routes_of(key) if not route.is_alive(today)]

    def alive(self, key: str, today: date) -> list[str]:
        """Upstream models of this key's provider to which new tasks may be sent."""
        return [route.upstream_model for route in self._routes_of(key) if route.is_alive(today)]

    def _routes_of(self, key: str) -> list[Route]:
        provider = self.provider_of(key)
        return [route for route in self._routes if route.provider == provider]

    def has_choice(self, model: Model) -> bool:
        """Whether a task of this model can go to more than one place."""
        return len(model.routes) > 1 or len(self.keys_of(model.provider)) > 1

    async def states(self, connection: Connection, *, is_fresh: bool = True) -> Mapping[str, KeyState]:
        """How every key stands that is not simply open and alone."""
        if is_fresh or self._kept_until <= time.monotonic():
            self._states = await self._read(connection)
            self._kept_until = time.monotonic() + KEEP_S
        return self._states

    def forget(self) -> None:
        """Let the next task go by fresh rows."""
        self._kept_until = 0.0

    async def _read(self, connection: Connection) -> dict[str, KeyState]:
        standing = await gates.gate_states(connection)
        counted = sorted(
            {key for names in self.siblings() for key in names} | (standing.keys() - {gates.STORAGE})
        )
        loads = await tasks.loads(connection, counted, most=COUNTED) if counted else {}
        return {key: _state_of(standing.get(key), loads[key]) for key in counted}

    def first_place(
        self, model: Model, demand: Demand, today: date, states: Mapping[str, KeyState]
    ) -> Place | None:
        """Where a new task goes; it counts at once, so that a batch is spread."""
        place = choose_first(Ways(model.routes, self._keys, states, today), demand)
        if place is not None and place.provider in self._states:
            self._states[place.provider] = self._states[place.provider].with_one_more()
        return place

    def next_place(
        self, row: TaskRow, attempts: Iterable[AttemptRow], states: Mapping[str, KeyState]
    ) -> Place | None:
        """Where the next attempt of a task goes; None: nowhere, its tries are used up."""
        model = self._catalog.find(row.model)
        ways = Ways(model.routes if model else (), self._keys, states, row.now.date())
        return choose_next(ways, demand_of(row), self.place_of(row), self._tries(attempts))

    def may_have_gone_elsewhere(self, row: TaskRow) -> bool:
        """Whether an attempt of this task that nobody remembers may have been made at another place."""
        model = self._catalog.find(row.model)
        return model is None or self.has_choice(model)

    def place_of(self, row: TaskRow) -> Place:
        """Where a task is; its route may have left the catalog."""
        model = self._catalog.find(row.model)
        lost = Route(
            provider=self.provider_of(row.provider),
            upstream_model=row.upstream_model,
            operations=(row.operation,),
        )
        routes = model.routes if model else ()
        found = next((route for route in routes if id_of(route) == id_of(lost)), lost)
        return Place(found, row.provider)

    def _tries(self, attempts: Iterable[AttemptRow]) -> Tries:
        """Attempts by route; one that never had its chance does not count."""
        counted: dict[tuple[str, str], int] = {}
        for attempt in attempts:
            if attempt.has_had_its_chance:
                route = (self.provider_of(attempt.provider), attempt.upstream_model)
                counted[route] = counted.get(route, 0) + 1
        return Tries(counted)


def demand_of(row: TaskRow) -> Demand:
    """What a task asks of a route."""
    return Demand(
        operation=row.operation,
        n=row.n,
        prompt_chars=len(row.prompt),
        size=row.size,
        aspect_ratio=row.aspect_ratio,
        images=len(row.images),
        has_mask=row.mask is not None,
        options=row.options.keys(),
    )


def _state_of(gate: gates.GateState | None, load: tasks.Load) -> KeyState:
    return KeyState(
        closed_for_s=gate.closed_for_s if gate else 0.0,
        failures=gate.failures if gate else 0,
        reason=gate.reason if gate else "",
        load=load.tasks + load.waiting,
        is_unattended=load.calls == 0 and load.waiting == 0,
    )
