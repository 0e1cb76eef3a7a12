"""The outermost layer: a request id and safe headers on every answer, and no error text that leaks."""

from __future__ import annotations

import secrets
import traceback

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from safelight.api.problems import REQUEST_ID, problem
from safelight.db.views import UNREACHABLE

log = structlog.get_logger()

SAFE_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_SAFE_NAMES = frozenset(name for name, _ in SAFE_HEADERS)


class Envelope:
    """Wraps the whole application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; what is not HTTP goes through untouched."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope[REQUEST_ID] = secrets.token_hex(8)
        has_started = False

        async def send_in_envelope(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                headers = message["headers"] = list(message.get("headers", ()))
                _add_safe_headers(headers)
                headers.append((b"x-request-id", request_id.encode()))
            await send(message)

        try:
            await self._app(scope, receive, send_in_envelope)
        except UNREACHABLE as error:
            _log(scope, error)
            if has_started:
                raise
            detail = (
                "The service is busy with itself. Send the same again, with the same key if you used one."
            )
            answer = problem(scope, 503, "unavailable", detail, headers={"Retry-After": "2"})
            await answer(scope, receive, send_in_envelope)
        except Exception as error:
            _log(scope, error)
            if has_started:
                raise  # the server cuts the connection, so that nobody takes half an answer for a whole one
            answer = problem(
                scope, 500, "internal", "Something went wrong here; tell the operator the request id."
            )
            await answer(scope, receive, send_in_envelope)


def _add_safe_headers(headers: list[tuple[bytes, bytes]]) -> None:
    """Add what the answer has not set itself."""
    present = _SAFE_NAMES.intersection([name for name, _ in headers])
    headers.extend(header for header in SAFE_HEADERS if header[0] not in present)


def _log(scope: Scope, error: Exception) -> None:
    # No message text: a database error quotes the row, and with it somebody's prompt.
    frames = [
        f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
    ]
    log.error(
        "request_failed",
        request_id=scope[REQUEST_ID],
        method=scope["method"],
        route=getattr(scope.get("route"), "path", ""),
        error=type(error).__name__,
        frames=frames[-8:],
    )
