"""Gemini's words: error bodies, and every way of saying no, many of them with the status 200."""

from __future__ import annotations

from typing import Any

from safelight.lab.speech.reply import Ending, Reply, Way

_TYPES = "type.googleapis.com/google.rpc"
_QUOTA = "GenerateRequestsPer{}PerProjectPerModel"


def error(code: int, status: str, message: str, *details: dict[str, Any]) -> Reply:
    """The one shape of all errors; the details are typed."""
    body: dict[str, Any] = {"code": code, "message": message, "status": status}
    return Reply(code, {"error": body | ({"details": list(details)} if details else {})})


def bad_field(field: str, message: str) -> Reply:
    """A field that is not as it should be."""
    violation = {"field": field, "description": message}
    detail = {"@type": f"{_TYPES}.BadRequest", "fieldViolations": [violation]}
    return error(400, "INVALID_ARGUMENT", f"{field}: {message}", detail)


def blocked_prompt(reason: str) -> Reply:
    """A prompt that is not drawn at all: no candidates, and the status 200."""
    return Reply(200, {"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 8}})


def _exhausted(period: str | None, delay: str | None) -> Reply:
    details: list[dict[str, Any]] = []
    if period is not None:
        violation = {"quotaMetric": "generate_content_requests", "quotaId": _QUOTA.format(period)}
        details.append({"@type": f"{_TYPES}.QuotaFailure", "violations": [violation]})
    if delay is not None:
        details.append({"@type": f"{_TYPES}.RetryInfo", "retryDelay": delay})
    return error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", *details)


_KEY_DETAIL = {"@type": f"{_TYPES}.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
_BLOCK_REASONS = (
    "SAFETY",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "IMAGE_SAFETY",
    "MODEL_ARMOR",
    "JAILBREAK",
)
_BLOCKED_FINISHES = (
    "SAFETY",
    "PROHIBITED_CONTENT",
    "BLOCKLIST",
    "SPII",
    "RECITATION",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
)

REFUSALS = {
    "invalid_request": (
        Way("argument", bad_field("generation_config.image_config.aspect_ratio", "is not supported")),
        Way("model", error(404, "NOT_FOUND", "models/none is not found for API version v1beta.")),
    ),
    "content_blocked": tuple(Way(reason, blocked_prompt(reason)) for reason in _BLOCK_REASONS),
    "credentials": (
        Way("missing", error(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.")),
        # A wrong key is told as a wrong argument: only the reason in the details says what it is.
        Way(
            "wrong",
            error(
                400,
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid API key.",
                _KEY_DETAIL,
            ),
        ),
        Way("denied", error(403, "PERMISSION_DENIED", "Permission denied on the resource.")),
    ),
    "funds": (
        Way(
            "precondition",
            error(
                400,
                "FAILED_PRECONDITION",
                "The free tier is not available in your country. Please enable billing on your project.",
            ),
        ),
    ),
    "rate_limited": (
        Way("body", _exhausted("Minute", "1s")),
        Way("body_fraction", _exhausted("Minute", "0.250s")),
        Way("day", _exhausted("Day", None)),
        Way("none", _exhausted(None, None)),
    ),
    "upstream_fault": (
        Way("internal", error(500, "INTERNAL", "An internal error has occurred.")),
        Way("unavailable", error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")),
        Way("deadline", error(504, "DEADLINE_EXCEEDED", "The deadline expired before it could finish.")),
    ),
}
ENDINGS = {
    "failed": (
        Ending("NO_IMAGE", {"finish": "NO_IMAGE"}),
        Ending("IMAGE_OTHER", {"finish": "IMAGE_OTHER"}),
        Ending("internal", reply=error(500, "INTERNAL", "An internal error has occurred.")),
    ),
    "blocked": tuple(Ending(reason, {"finish": reason}) for reason in _BLOCKED_FINISHES),
}
