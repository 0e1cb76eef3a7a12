"""The operator's figures: where tasks stand, what became of them, how fast and how sound providers are."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import datetime
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api.admin.exchange import admin_described, shown
from safelight.api.admin.keeper import Keeper
from safelight.api.admin.shapes import AdminFigures
from safelight.api.described import parameter
from safelight.api.headers import headers_of
from safelight.api.parts import ApiParts
from safelight.api.problems import FieldsRefused
from safelight.db import figures, notices, views
from safelight.lifecycle.notices import report

MAX_HOURS = 168
"""A week: the figures go through every task of their time."""
HOURLY_UP_TO = 48
"""Longer times are counted by the day."""


class Figures:
    """The route `/admin/figures`."""

    def __init__(self, parts: ApiParts, keeper: Keeper) -> None:
        self._parts = parts
        self._keeper = keeper

    def add_to(self, app: FastAPI) -> None:
        """Add the route."""
        app.router.add_api_route("/admin/figures", self.show, methods=["GET"], **_FIGURES)

    async def show(self, request: Request) -> Response:
        """Everything about the tasks that were accepted in the last hours, and how things stand now."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        hours = _read_hours(request)
        async with self._parts.database.connection() as connection:
            since_at = await figures.since(connection, hours)
            document = {
                "hours": hours,
                "since": since_at,
                "open": await views.open_tasks_by_state(connection),
                "states": await figures.states(connection, since_at),
                "endings": await figures.endings(
                    connection, since_at, "hour" if hours <= HOURLY_UP_TO else "day"
                ),
                "waits": await figures.waits(connection, since_at),
            }
        runs, providers = await self._runs(since_at), await self._providers(hours)
        return shown({**document, "runs": runs, "providers": providers})

    async def _runs(self, since_at: datetime) -> list[dict[str, Any]]:
        """Run times, each beside the time after which such an attempt is looked at."""
        async with self._parts.database.connection() as connection:
            found = await figures.runs(connection, since_at)
            for run in found:
                pace = await self._parts.paces.pace(connection, run["provider"], run["upstream_model"])
                run["looked_at_after_s"] = pace.p95_s
        return found

    async def _providers(self, hours: int) -> list[dict[str, Any]]:
        """How every provider key stands now, and what its callbacks came to on the days of that time."""
        found = []
        async with self._parts.database.connection() as connection:
            alarms = await notices.alarms(connection)
            for key in await views.provider_health(connection, sorted(self._parts.providers)):
                table = self._parts.settings.providers.get(self._parts.routing.provider_of(key.name))
                mode = table.mode if table else "apply"
                told = await report(connection, [key.name], mode=mode, days=math.ceil(hours / 24))
                callbacks = {**asdict(told), "received": told.received, "forged": told.forged}
                found.append(
                    {**asdict(key), "callbacks": callbacks, "has_callback_alarm": key.name in alarms}
                )
        return found


def _read_hours(request: Request) -> int:
    text = request.query_params.get("hours", "24")
    if not text.isascii() or not text.isdigit() or len(text) > 3 or not 1 <= int(text) <= MAX_HOURS:
        raise FieldsRefused([{"field": "hours", "message": f"must be an integer from 1 to {MAX_HOURS}"}])
    return int(text)


_HOURS = parameter("hours", "query", {"type": "integer", "minimum": 1, "maximum": MAX_HOURS, "default": 24})
_FIGURES = admin_described(
    "Figures of the last hours", {200: AdminFigures}, refusals=(422,), parameters=(_HOURS,)
)
