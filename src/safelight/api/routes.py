"""Routes: FastAPI's, so that they are documented, but straight to their handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from safelight.api.problems import problem_of
from safelight.errors import RequestError

Handler = Callable[[Request], Awaitable[Response]]


class Route(APIRoute):
    """A route whose handler takes the request and reads it itself.

    FastAPI would judge query and body before the handler has asked who is calling; and its dependency
    machinery costs as much as everything that we do for a submit.
    """

    def __init__(self, path: str, endpoint: Handler, **documented: Any) -> None:
        super().__init__(path, endpoint, **documented)
        self.app = _Straight(endpoint)


class _Straight:
    """Handler in, answer out; errors of the caller become problem documents."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._handler(Request(scope, receive, send))
        except RequestError as error:
            answer = problem_of(error, scope)
        await answer(scope, receive, send)
