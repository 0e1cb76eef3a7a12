"""Errors as clients of the OpenAI API read them: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.types import Scope

from safelight.domain.failure import Failure, FailureClass

PREFIX = "/v1/images/"
INVALID = "invalid_request_error"
FAULT = "server_error"
DO_NOT_RETRY = {"x-should-retry": "false"}
"""The official client obeys this: by itself it would repeat 409, 429 and 5xx, each time as a new task."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One kind of error: its HTTP status, its words, and whether the same request may do better later."""

    status: int
    type: str
    code: str
    param: str | None = None
    is_final: bool = False

    def document(self, message: str, param: str | None = None) -> dict[str, Any]:
        """The error object."""
        return {"message": message, "type": self.type, "param": param or self.param, "code": self.code}

    def answer(
        self, message: str, *, param: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """The error as an answer."""
        body = json.dumps({"error": self.document(message, param)})
        hint = DO_NOT_RETRY if self.is_final else {}
        return Response(body, self.status, {**(headers or {}), **hint}, "application/json")


_RATE = Refusal(429, type="requests", code="rate_limit_exceeded")
_NO_MODEL = Refusal(404, INVALID, "model_not_found", "model")
_REFUSALS = {
    "unauthorized": Refusal(401, INVALID, "invalid_api_key"),
    "insufficient-credits": Refusal(429, "insufficient_quota", "insufficient_quota", is_final=True),
    "rate-limited": _RATE,
    "too-many-open-tasks": _RATE,
    "model-not-found": _NO_MODEL,
    "model-retired": _NO_MODEL,
    "validation-failed": Refusal(400, INVALID, "invalid_value"),
    "internal": Refusal(500, FAULT, FAULT),
    "unavailable": Refusal(503, FAULT, FAULT),
}
"""By the codes of our own problem documents; every other one keeps its status, and its code with underscores."""
_FAILURES = {
    FailureClass.CONTENT_BLOCKED: Refusal(400, "image_generation_user_error", "moderation_blocked"),
    # What was given up after several attempts is no better for being repeated within a second.
    FailureClass.UPSTREAM_FAULT: Refusal(502, FAULT, FAULT, is_final=True),
    FailureClass.ENVIRONMENT: Refusal(500, FAULT, FAULT, is_final=True),
    FailureClass.CANCELED: Refusal(409, INVALID, "task_canceled", is_final=True),
}


def speaks_openai(scope: Scope) -> bool:
    """Whether the caller of this address expects errors in these words."""
    path: str = scope.get("path", "")
    return path.startswith(PREFIX)


def error_of(
    status: int, code: str, detail: str, *, headers: Mapping[str, str], extra: Mapping[str, Any]
) -> Response:
    """What would be a problem document elsewhere; the first field at fault is named as `param`."""
    refusal = _REFUSALS.get(code)
    if refusal is None:
        refusal = Refusal(status, FAULT if status >= 500 else INVALID, code.replace("-", "_"))
    first: Mapping[str, str] = next(iter(extra.get("errors", ())), {})
    if first.get("message") == "unknown field":
        refusal = Refusal(400, INVALID, "unknown_parameter")
    return refusal.answer(detail, param=first.get("field"), headers=headers)


def refusal_of_failure(failure: Failure) -> Refusal:
    """How a task's failure is told."""
    return _FAILURES.get(failure.failure_class) or Refusal(400, INVALID, failure.code)
