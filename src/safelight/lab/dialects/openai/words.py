"""OpenAI's words: error bodies, and every way of saying no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from safelight.lab.speech.fields import Fault
from safelight.lab.speech.reply import Ending, Reply, Way
from safelight.lab.speech.times import http_date

RETRY_S = 1
_CODES = {
    "missing": "missing_required_parameter",
    "unknown": "unknown_parameter",
    "type": "invalid_type",
    "value": "invalid_value",
    # What a picture that cannot be read gets is not documented beyond its type.
    "picture": "invalid_image_file",
    "header": "unsupported_content_type",
}


def error(
    status: int,
    message: str,
    *,
    kind: str = "invalid_request_error",
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Reply:
    """The one shape of all errors."""
    body = {"message": message, "type": kind, "param": param, "code": code, **more}
    return Reply(status, {"error": body}, {"x-request-id": "req_lab", **(headers or {})})


def fault_error(fault: Fault) -> Reply:
    """What is wrong in a request, with the name of the parameter."""
    name = fault.name or None
    messages = {
        "missing": f"Missing required parameter: '{name}'.",
        "unknown": f"Unknown parameter: '{name}'.",
        "body": "We could not parse the body of your request.",
    }
    message = messages.get(fault.kind, f"Invalid value for '{name}': {fault.message}.")
    return error(400, message, code=_CODES.get(fault.kind), param=name)


def _moderated(stage: str) -> Reply:
    return error(
        400,
        "Your request was rejected by the safety system.",
        kind="image_generation_user_error",
        code="moderation_blocked",
        moderation_details={"moderation_stage": stage, "categories": ["violence"]},
    )


def _limited(headers: Mapping[str, str]) -> Reply:
    known = {
        "x-ratelimit-limit-requests": "5",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1s",
    }
    return error(
        429,
        "Rate limit reached for images per minute.",
        kind="requests",
        code="rate_limit_exceeded",
        headers={**known, **headers},
    )


_SERVER_ERROR = error(
    500, "The server had an error while processing your request.", kind="server_error", code="server_error"
)

REFUSALS = {
    "invalid_request": (
        Way(
            "value",
            error(400, "Invalid value for 'size': not supported.", code="invalid_value", param="size"),
        ),
        Way("unknown", error(400, "Unknown parameter: 'sise'.", code="unknown_parameter", param="sise")),
        Way(
            "missing",
            error(
                400,
                "Missing required parameter: 'prompt'.",
                code="missing_required_parameter",
                param="prompt",
            ),
        ),
        # Retired models are gone like ones that never were; the status is the one of other endpoints.
        Way(
            "model",
            error(404, "The model does not exist or was shut down.", code="model_not_found", param="model"),
        ),
    ),
    "content_blocked": (
        Way("input", _moderated("input")),
        Way("output", _moderated("output")),
        Way(
            "policy",
            error(400, "Your request was rejected by our safety system.", code="content_policy_violation"),
        ),
    ),
    "credentials": (
        Way("missing", error(401, "You didn't provide an API key.")),
        Way("wrong", error(401, "Incorrect API key provided.", code="invalid_api_key")),
    ),
    "funds": (
        Way(
            "quota",
            error(
                429,
                "You exceeded your current quota, please check your plan and billing details.",
                kind="insufficient_quota",
                code="insufficient_quota",
            ),
        ),
        Way(
            "hard_limit",
            error(400, "Billing hard limit has been reached.", code="billing_hard_limit_reached"),
        ),
    ),
    "rate_limited": (
        Way("seconds", _limited({"retry-after": str(RETRY_S)})),
        Way("ms", _limited({"retry-after-ms": "250"})),
        Way("date", lambda: _limited({"retry-after": http_date()})),
        Way("none", _limited({})),
    ),
    "upstream_fault": (
        Way("500", _SERVER_ERROR),
        Way("502", error(502, "Bad gateway.", kind="server_error")),
        Way("503", error(503, "The engine is currently overloaded.", kind="server_error")),
    ),
}
ENDINGS = {
    "failed": (
        Ending("server_error", reply=_SERVER_ERROR),
        # As streams of others have shown it.
        Ending(
            "generation_failed",
            reply=error(
                500,
                "Image generation failed",
                kind="image_generation_server_error",
                code="image_generation_failed",
            ),
        ),
    ),
    "blocked": (Ending("output", reply=_moderated("output")),),
}
