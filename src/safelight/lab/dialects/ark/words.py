"""Ark's words: error bodies, and every way of saying no, also with the status 200."""

from __future__ import annotations

from safelight.lab.speech.reply import Ending, Reply, Way

OUTPUT_BLOCKED = "OutputImageSensitiveContentDetected"
_TEXTS = {
    "InputTextSensitiveContentDetected": "The input text may contain sensitive information.",
    "InputImageSensitiveContentDetected": "The input image may contain sensitive information.",
    OUTPUT_BLOCKED: "The generated image may contain sensitive information.",
    "InputTextRiskDetection": "The input text triggered risk detection.",
    "InputImageRiskDetection": "The input image triggered risk detection.",
    "OutputImageRiskDetection": "The generated image triggered risk detection.",
    "SensitiveContentDetected": "The request may contain sensitive information.",
    "SensitiveContentDetected.SevereViolation": "The request may contain severely violating content.",
    "InternalServiceError": "The service encountered an unexpected internal error.",
}


def error(status: int, code: str, message: str, *, kind: str = "BadRequest", param: str = "") -> Reply:
    """The one shape of all errors."""
    return Reply(status, {"error": {"code": code, "message": message, "param": param, "type": kind}})


def told(code: str) -> dict[str, str]:
    """An error inside of an answer, for one picture or for the whole."""
    return {"code": code, "message": _TEXTS.get(code, "The request was not carried out.")}


def told_alone(code: str) -> Reply:
    """An error that is all there is in an answer with the status 200."""
    return Reply(200, {"error": told(code)})


_FAULT = error(500, "InternalServiceError", _TEXTS["InternalServiceError"], kind="InternalServerError")

# Money, rates and the codes of keys are those commonly seen; the pages that were read do not have them.
REFUSALS = {
    "invalid_request": (
        Way("missing", error(400, "MissingParameter", "A required parameter is missing: prompt.")),
        Way("invalid", error(400, "InvalidParameter", "The parameter `size` is not valid.", param="size")),
        Way("model", error(404, "InvalidEndpointOrModel.NotFound", "There is no such model or endpoint.")),
        Way("in_200", told_alone("InvalidParameter")),
    ),
    "content_blocked": tuple(
        Way(code, error(400, code, text)) for code, text in _TEXTS.items() if code != "InternalServiceError"
    ),
    "credentials": (
        Way("missing", error(401, "AuthenticationError", "The API key is missing.", kind="Unauthorized")),
        Way("wrong", error(401, "AuthenticationError", "The API key is not valid.", kind="Unauthorized")),
    ),
    "funds": (
        Way(
            "overdue",
            error(403, "AccountOverdueError", "The account has an overdue balance.", kind="Forbidden"),
        ),
        Way("in_200", told_alone("AccountOverdueError")),
    ),
    "rate_limited": (
        Way(
            "none",
            error(
                429,
                "RateLimitExceeded.EndpointRPMExceeded",
                "The requests per minute limit is exceeded.",
                kind="TooManyRequests",
            ),
        ),
        Way("quota", error(429, "QuotaExceeded", "The quota is exceeded.", kind="TooManyRequests")),
        Way("in_200", told_alone("RateLimitExceeded.EndpointRPMExceeded")),
    ),
    "upstream_fault": (Way("internal", _FAULT),),
}
ENDINGS = {
    "failed": (
        Ending("internal", reply=_FAULT),
        Ending("error_in_200", {"code": "InternalServiceError", "where": "top"}),
        Ending("error_in_items", {"code": "InternalServiceError", "where": "items"}),
    ),
    "blocked": (
        Ending("output", reply=error(400, OUTPUT_BLOCKED, _TEXTS[OUTPUT_BLOCKED])),
        Ending("error_in_200", {"code": OUTPUT_BLOCKED, "where": "top"}),
        Ending("error_in_items", {"code": OUTPUT_BLOCKED, "where": "items"}),
    ),
}
VARIANTS = {
    "error_beside": "pictures that are missing are told by one error beside the items, not among them"
}
