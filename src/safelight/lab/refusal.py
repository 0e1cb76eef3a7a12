"""How the lab says no: one exception, one JSON error body."""

import json
from collections.abc import Mapping

from aiohttp import web


class Refusal(Exception):
    """An answer other than success, in the lab's own words."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers

    def answer(self) -> web.Response:
        """The refusal as an HTTP answer."""
        body = json.dumps({"error": {"code": self.code, "message": self.message}})
        return web.Response(
            status=self.status, text=body, content_type="application/json", headers=self.headers
        )


def invalid(message: str) -> Refusal:
    """A 400: the caller's own mistake."""
    return Refusal(400, "invalid_request", message)


def not_found(message: str = "there is nothing here") -> Refusal:
    """A 404."""
    return Refusal(404, "not_found", message)
