"""Where providers call us back: raw bytes in, 202 out, and nothing told to whoever is not genuine."""

from __future__ import annotations

import time

import structlog
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api.auth import too_often
from safelight.api.bodies import read_body
from safelight.api.described import described, parameter
from safelight.api.headers import address_of, headers_of
from safelight.api.limits import Limit
from safelight.api.parts import ApiParts
from safelight.api.problems import BodyTooLarge
from safelight.errors import CallbackRejected, RequestError

log = structlog.get_logger()

MAX_IN_FLIGHT = 256
"""Callbacks whose bodies are held at once: at 256 kB each they take 64 MB."""
MAX_SEGMENT = 200
LOG_GAP_S = 1.0
AWAY_S = 60
"""When to come again if what proves a callback cannot be had just now."""

_REFUSALS = {
    400: ("bad-request", "The body cannot be read."),
    401: ("unauthorized", "The callback is not authentic."),
    404: ("not-found", "There is no such thing here."),
}


class Callbacks:
    """The routes below `/callbacks`.

    Their limits are their own: callbacks use up nothing of what submits may do, nor the other way round.
    """

    def __init__(self, parts: ApiParts) -> None:
        self._receive = parts.receive
        self._max_bytes = parts.settings.max_callback_bytes
        rate = parts.settings.max_requests_per_s
        self._limit = Limit(rate, burst=rate)
        self._in_flight = 0
        self._logged_at = 0.0

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        router = app.router
        router.add_api_route("/callbacks/{provider}/{token}", self.receive, methods=["POST"], **_WITH_TOKEN)
        router.add_api_route("/callbacks/{provider}", self.receive, methods=["POST"], **_WITHOUT_TOKEN)

    async def receive(self, request: Request) -> Response:
        """Take a callback; it is verified over the raw bytes and stored when this answers."""
        wait_s = self._limit.take(address_of(request.scope))
        if wait_s or self._in_flight >= MAX_IN_FLIGHT:
            raise too_often(wait_s)
        self._in_flight += 1
        try:
            return await self._take(request)
        finally:
            self._in_flight -= 1

    async def _take(self, request: Request) -> Response:
        provider, token = request.path_params["provider"], request.path_params.get("token")
        if max(len(provider), len(token or "")) > MAX_SEGMENT:
            raise RequestError(404, *_REFUSALS[404])
        try:
            raw = await read_body(request, headers_of(request.scope), self._max_bytes)
        except BodyTooLarge:
            self._log_too_large(provider)
            raise
        try:
            await self._receive.receive(provider, token, request.scope["headers"], raw)
        except CallbackRejected as rejected:
            if rejected.status == 503:
                detail = "The callback cannot be checked just now. Send it again."
                raise RequestError(503, "unavailable", detail, retry_after_s=AWAY_S) from None
            status = rejected.status if rejected.status in _REFUSALS else 401
            raise RequestError(status, *_REFUSALS[status]) from None
        return Response(status_code=202)

    def _log_too_large(self, provider: str) -> None:
        """At most one line a second: whoever sends them has proved nothing."""
        now = time.monotonic()
        if now - self._logged_at >= LOG_GAP_S:
            self._logged_at = now
            log.warning("callback_too_large", provider=provider[:MAX_SEGMENT], limit=self._max_bytes)


_PROVIDER = parameter("provider", "path", {"type": "string"})
_TOKEN = parameter("token", "path", {"type": "string"}, "Names the attempt.")
_BODY = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
_SUMMARY = "A provider tells how an attempt stands"
_STATUSES = (400, 401, 404, 408, 413, 429)
_WITH_TOKEN = described(
    _SUMMARY, {202: None}, refusals=_STATUSES, parameters=(_PROVIDER, _TOKEN), body=_BODY, needs_key=False
)
_WITHOUT_TOKEN = described(
    _SUMMARY, {202: None}, refusals=_STATUSES, parameters=(_PROVIDER,), body=_BODY, needs_key=False
)
