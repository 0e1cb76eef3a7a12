"""The guard before the own shapes: the gateway, the API key, the refusals that knobs ask for."""

from __future__ import annotations

import hmac

from aiohttp import web

from safelight.lab.answers import Handler, polite
from safelight.lab.gateway import through_gateway
from safelight.lab.refusal import Refusal
from safelight.lab.studio import Studio
from safelight.lab.voice import OWN_REFUSALS


class Guard:
    """Lets in who has the key."""

    def __init__(self, *, api_key: str, studio: Studio) -> None:
        self._expected = f"Bearer {api_key}".encode()
        self._studio = studio

    def before(self, handler: Handler, role: str) -> Handler:
        """The handler behind the guard, polite."""

        async def let_in(request: web.Request) -> web.StreamResponse:
            given = request.headers.get("Authorization", "").encode(errors="replace")
            if not hmac.compare_digest(given, self._expected):
                raise Refusal(401, "unauthorized", "the API key is missing or wrong")
            if refusal := self._studio.moods.refusal("", role):
                raise OWN_REFUSALS[refusal[0]]
            return await handler(request)

        kind = polite(let_in)

        async def handle(request: web.Request) -> web.StreamResponse:
            return await through_gateway(
                request, lambda: kind(request), name="", role=role, studio=self._studio
            )

        return handle
