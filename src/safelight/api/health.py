"""For whoever runs this: alive, ready, and figures."""

from __future__ import annotations

import asyncio
import contextlib
from time import monotonic

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from safelight.api.described import described
from safelight.api.parts import ApiParts
from safelight.db import adminviews, views
from safelight.domain.task import ReviewReason, State, is_terminal
from safelight.errors import RequestError
from safelight.telemetry import GATE_FAILURES, GATES_CLOSED, OPEN_TASKS, REVIEWS_OPEN

READY_WITHIN_S = 3.0
COUNT_EVERY_S = 5.0


class Health:
    """The routes `/healthz`, `/readyz` and `/metrics`; they need no key."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._counted_until = 0.0

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        router = app.router
        text = {200: "text/plain"}
        router.add_api_route(
            "/healthz",
            self.alive,
            methods=["GET"],
            **described("Is the process alive?", text, needs_key=False),
        )
        router.add_api_route(
            "/readyz", self.ready, methods=["GET"], **described("Can it work?", text, needs_key=False)
        )
        router.add_api_route(
            "/metrics",
            self.metrics,
            methods=["GET"],
            **described("Prometheus metrics", text, needs_key=False),
        )

    async def alive(self, _request: Request) -> Response:
        """The process runs."""
        return Response(b"ok\n", media_type="text/plain")

    async def ready(self, _request: Request) -> Response:
        """The database answers and has the schema of this version."""
        is_ready = False
        # TimeoutError is among the errors of an unreachable database.
        with contextlib.suppress(*views.UNREACHABLE):
            async with asyncio.timeout(READY_WITHIN_S):
                is_ready = await self._parts.is_ready()
        if not is_ready:
            detail = "The database does not answer, or has another version's schema."
            raise RequestError(503, "unavailable", detail, retry_after_s=2)
        return Response(b"ready\n", media_type="text/plain")

    async def metrics(self, _request: Request) -> Response:
        """Figures in the text format of Prometheus."""
        if monotonic() >= self._counted_until:
            self._counted_until = monotonic() + COUNT_EVERY_S
            await self._count()
        return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _count(self) -> None:
        async with self._parts.database.connection() as connection:
            found = await views.open_tasks_by_state(connection)
            gates = await views.gates(connection)
            reviews = await adminviews.reviews_by_reason(connection)
        for name, is_closed, failures in gates:
            GATES_CLOSED.labels(name).set(is_closed)
            GATE_FAILURES.labels(name).set(failures)
        for reason in ReviewReason:
            REVIEWS_OPEN.labels(reason).set(reviews.get(reason, 0))
        for state in State:
            if not is_terminal(state):
                OPEN_TASKS.labels(state).set(found.get(state, 0))
