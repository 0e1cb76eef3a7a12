"""Errors as every caller gets them: problem documents (RFC 9457) with a stable code and the request's id."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypedDict

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from safelight.api.openai.errors import error_of, speaks_openai
from safelight.errors import RequestError

MEDIA_TYPE = "application/problem+json"
REQUEST_ID = "safelight.request_id"
"""Where the envelope leaves the request's id in the scope."""

_CODES = {404: "not-found", 405: "method-not-allowed"}
_DETAILS = {404: "There is no such thing here.", 405: "This address does not take that method."}


class FieldError(TypedDict):
    """What is wrong with one field of a body or query."""

    field: str
    message: str


class FieldsRefused(RequestError):
    """422: the request was understood, but these fields do not fit."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        first = errors[0]
        super().__init__(422, "validation-failed", f"{first['field']}: {first['message']}")
        self.errors = list(errors)


class BodyTooLarge(RequestError):
    """413; `must_close` where the rest of the body is too long, or endless, to be read away."""

    def __init__(self, limit: int, *, must_close: bool, advice: str = "") -> None:
        super().__init__(413, "body-too-large", f"The body may have {limit} bytes. {advice}".strip())
        self.must_close = must_close


def not_found() -> RequestError:
    """The one answer for what does not exist and for what is another account's."""
    return RequestError(404, "not-found", _DETAILS[404])


def problem_of(error: RequestError, scope: Scope) -> Response:
    """The problem document of an error that the caller can do something about."""
    headers: dict[str, str] = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, BodyTooLarge) and error.must_close:
        headers["Connection"] = "close"
    extra = {"errors": error.errors} if isinstance(error, FieldsRefused) else None
    return problem(scope, error.status, error.problem_code, error.detail, headers=headers, extra=extra)


def problem(
    scope: Scope,
    status: int,
    code: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Response:
    """A problem document, or an error of OpenAI's API where that is spoken; `detail` is one sentence for the caller."""
    if speaks_openai(scope):
        return error_of(status, code, detail, headers=headers or {}, extra=extra or {})
    document = {
        "type": f"urn:safelight:problem:{code}",
        "title": code.replace("-", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": scope.get(REQUEST_ID, ""),
        **(extra or {}),
    }
    return Response(json.dumps(document), status, headers, MEDIA_TYPE)


async def problem_of_http(request: Request, error: Exception) -> Response:
    """The problem document of what the router itself refuses: no such address, or not with this method."""
    if not isinstance(error, HTTPException):
        raise error
    status = error.status_code
    headers = dict(error.headers or {})
    if status == 405:
        headers["Allow"] = ", ".join(_methods_of(request.scope))
    code = _CODES.get(status, HTTPStatus(status).phrase.lower().replace(" ", "-"))
    return problem(
        request.scope, status, code, _DETAILS.get(status, HTTPStatus(status).phrase), headers=headers
    )


def _methods_of(scope: Scope) -> list[str]:
    """Every method of the address: the router itself names only those of the first route that fits."""
    routes = scope["app"].routes
    fitting = [route for route in routes if route.matches(scope)[0] is not Match.NONE]
    return sorted({method for route in fitting for method in getattr(route, "methods", None) or ()})
