"""How fast a provider and model really are: measured from rows, kept for a short while."""

from __future__ import annotations

import time
from collections.abc import Mapping

from safelight.db import tasks
from safelight.db.statements import Connection
from safelight.domain.catalog import Catalog, Model
from safelight.domain.provider import Capabilities, Provider
from safelight.domain.schedule import ENOUGH_CALLBACKS, MIN_SAMPLES, Pace, threshold_s

KEEP_S = 15.0
"""Seconds a measured pace is used before it is measured again."""
CALLBACK_SAMPLES = 20
"""Ended tasks that tell whether callbacks still arrive."""


class Paces:
    """Paces by provider and upstream model. `calls_back` needs an address that providers can reach."""

    def __init__(self, catalog: Catalog, providers: Mapping[str, Provider], *, has_public_url: bool) -> None:
        self._providers = providers
        self._has_public_url = has_public_url
        self._models = {(model.provider, model.upstream_model): model for model in catalog.models.values()}
        self._kept: dict[tuple[str, str], tuple[float, Pace]] = {}

    async def pace(self, connection: Connection, provider: str, upstream_model: str) -> Pace:
        """The pace to plan with now."""
        key = (provider, upstream_model)
        kept = self._kept.get(key)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        pace = await self._measure(connection, provider, upstream_model)
        self._kept[key] = (time.monotonic() + KEEP_S, pace)
        return pace

    async def _measure(self, connection: Connection, provider: str, upstream_model: str) -> Pace:
        model = self._models.get((provider, upstream_model)) or _UNKNOWN_MODEL
        found = self._providers.get(provider)
        capabilities = found.capabilities if found else Capabilities()
        times = await tasks.run_times(connection, provider, upstream_model)
        p95_s = threshold_s(
            times.p95_s,
            times.samples,
            default_s=model.default_p95_s,
            floor_s=model.p95_floor_s,
            cap_s=model.p95_cap_s,
        )
        is_measured = times.samples >= MIN_SAMPLES and times.median_s is not None
        median_s = times.median_s if is_measured and times.median_s is not None else p95_s / 2.0
        calls_back = capabilities.calls_back and self._has_public_url
        if calls_back:
            ended, called_back = await tasks.callback_share(connection, provider)
            calls_back = ended < CALLBACK_SAMPLES or called_back >= ended * ENOUGH_CALLBACKS
        return Pace(
            p95_s=p95_s,
            median_s=max(min(median_s, p95_s), 0.05),
            calls_back=calls_back,
            lifetime_s=capabilities.result_lifetime_s,
            min_gap_s=capabilities.min_poll_gap_s,
        )


_UNKNOWN_MODEL = Model("", "", "", (), 0)
"""For tasks whose model has left the catalog: the plain defaults."""
