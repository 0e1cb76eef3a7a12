"""How fast a provider and model really are: measured from rows over all its keys, kept for a short while."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from safelight.db import tasks
from safelight.db.statements import Connection
from safelight.domain.catalog import Catalog, Route
from safelight.domain.provider import Capabilities, Provider
from safelight.domain.routes import id_of
from safelight.domain.schedule import ENOUGH_CALLBACKS, MIN_SAMPLES, Pace, threshold_s
from safelight.lifecycle.routing import Routing

KEEP_S = 15.0
"""Seconds a measured pace is used before it is measured again."""
CALLBACK_SAMPLES = 20
"""Ended tasks that tell whether callbacks still arrive."""


class Paces:
    """Paces by provider and upstream model. `calls_back` needs an address that providers can reach.

    The callbacks of `observed` providers change nothing: polling carries those.
    """

    def __init__(
        self,
        catalog: Catalog,
        providers: Mapping[str, Provider],
        routing: Routing,
        *,
        has_public_url: bool,
        observed: Collection[str] = (),
    ) -> None:
        self._providers = providers
        self._routing = routing
        self._has_public_url = has_public_url
        self._observed = frozenset(observed)
        self._routes = {id_of(route): route for model in catalog.models.values() for route in model.routes}
        self._kept: dict[tuple[str, str], tuple[float, Pace]] = {}

    async def pace(self, connection: Connection, provider: str, upstream_model: str) -> Pace:
        """The pace to plan with now; `provider` may be any of its keys."""
        key = (self._routing.provider_of(provider), upstream_model)
        kept = self._kept.get(key)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        pace = await self._measure(connection, *key)
        self._kept[key] = (time.monotonic() + KEEP_S, pace)
        return pace

    async def _measure(self, connection: Connection, provider: str, upstream_model: str) -> Pace:
        route = self._routes.get((provider, upstream_model)) or _UNKNOWN_ROUTE
        keys = self._routing.keys_of(provider)
        found = self._providers.get(provider)
        capabilities = found.capabilities if found else Capabilities()
        times = await tasks.run_times(connection, keys, upstream_model)
        p95_s = threshold_s(
            times.p95_s,
            times.samples,
            default_s=route.default_p95_s,
            floor_s=route.p95_floor_s,
            cap_s=route.p95_cap_s,
        )
        is_measured = times.samples >= MIN_SAMPLES and times.median_s is not None
        median_s = times.median_s if is_measured and times.median_s is not None else p95_s / 2.0
        calls_back = capabilities.calls_back and self._has_public_url and provider not in self._observed
        if calls_back:
            ended, called_back = await tasks.callback_share(connection, keys)
            calls_back = ended < CALLBACK_SAMPLES or called_back >= ended * ENOUGH_CALLBACKS
        return Pace(
            p95_s=p95_s,
            median_s=max(min(median_s, p95_s), 0.05),
            calls_back=calls_back,
            lifetime_s=capabilities.result_lifetime_s,
            min_gap_s=capabilities.min_poll_gap_s,
        )


_UNKNOWN_ROUTE = Route(provider="", upstream_model="", operations=())
"""For tasks whose route has left the catalog: the plain defaults."""
