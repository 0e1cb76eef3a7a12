"""fal's words: statuses, error bodies, and every way of saying no."""

from __future__ import annotations

from typing import Any

from safelight.lab.speech.reply import Ending, Reply, Way
from safelight.lab.speech.view import View

WORDS = {"queued": "IN_QUEUE", "running": "IN_PROGRESS", "done": "COMPLETED", "failed": "COMPLETED"}
CANCELED = Ending("canceled", {"status": 499, "detail": "Request was cancelled", "type": "client_cancelled"})


def _model_error(kind: str, message: str, *, status: int = 422, **more: Any) -> dict[str, Any]:
    """What a model says: the detail is a list."""
    detail = [
        {"loc": ["body", "prompt"], "msg": message, "type": kind, "url": page(kind), "input": "…", **more}
    ]
    return {"status": status, "detail": detail, "type": kind if status >= 500 else "bad_request"}


def _request_error(kind: str, status: int) -> dict[str, Any]:
    """What the queue says: the detail is a text, the type stands beside it."""
    return {"status": status, "detail": kind.replace("_", " ").capitalize(), "type": kind}


def refusal(values: dict[str, Any], *, is_type_in_body: bool = True) -> Reply:
    """An error as HTTP; where the detail is a text, the type stands in the body or only in the header."""
    body = {"detail": values["detail"]}
    if is_type_in_body and isinstance(values["detail"], str):
        body["error_type"] = values["type"]
    is_retryable = values["status"] >= 500
    headers = {"X-Fal-Retryable": str(is_retryable).lower(), "X-Fal-Error-Type": values["type"]}
    return Reply(values["status"], body, headers)


def page(kind: str) -> str:
    """Where the error is explained."""
    return f"https://docs.fal.ai/errors#{kind}"


_FAULTS = {
    "request_timeout": 504,
    "startup_timeout": 504,
    "runner_scheduling_failure": 503,
    "runner_connection_timeout": 503,
    "runner_disconnected": 503,
    "runner_connection_refused": 503,
    "runner_connection_error": 503,
    "runner_incomplete_response": 502,
    "runner_server_error": 500,
    "internal_error": 500,
}
_MODEL_FAULTS = {
    "internal_server_error": 500,
    "generation_timeout": 504,
    "downstream_service_error": 400,
    "downstream_service_unavailable": 500,
}


REFUSALS = {
    "invalid_request": (
        Way("missing_field", refusal(_model_error("value_error.missing", "field required"))),
        Way("bad_call", refusal(_request_error("bad_request", 400))),
    ),
    "content_blocked": (
        Way("policy", refusal(_model_error("content_policy_violation", "flagged by a content checker"))),
        Way(
            "type_in_header",
            refusal(_request_error("content_policy_violation", 422), is_type_in_body=False),
        ),
    ),
    "credentials": (
        Way("missing", Reply(401, {"detail": "Authentication is required to access this application"})),
        Way("wrong", Reply(401, {"detail": "Invalid or expired key"})),
    ),
    # Seen in the wild, not documented.
    "funds": (
        Way(
            "locked",
            Reply(403, {"detail": "User is locked. Reason: Exhausted balance. Top up your balance."}),
        ),
    ),
    "rate_limited": (Way("none", Reply(429, {"detail": "Too many requests"})),),
    "concurrency_limited": (
        Way("in_body", refusal(_request_error("concurrent_requests_limit", 429))),
        Way("in_header", Reply(429, {}, {"X-Fal-Error-Type": "concurrent_requests_limit"})),
    ),
    "upstream_fault": (
        *(Way(kind, refusal(_request_error(kind, status))) for kind, status in _FAULTS.items()),
        Way("type_in_header", refusal(_request_error("internal_error", 500), is_type_in_body=False)),
    ),
    "not_found": (Way("request", Reply(404, {"detail": "Request not found"})),),
}

ENDINGS = {
    "failed": (
        *(Ending(kind, _request_error(kind, status)) for kind, status in _FAULTS.items()),
        *(
            Ending(kind, _model_error(kind, "the model failed", status=status))
            for kind, status in _MODEL_FAULTS.items()
        ),
    ),
    "blocked": (
        Ending("policy", _model_error("content_policy_violation", "flagged by a content checker")),
        Ending(
            "model_moderated",
            _model_error(
                "content_policy_violation",
                "the model's own moderation",
                ctx={"extra_info": {"categories": ["model_moderated"]}},
            ),
        ),
        Ending("only_a_text", _request_error("flagged_by_the_content_policy", 403) | {"has_type": False}),
        # A success by all signs but one: every picture is black, and marked so.
        Ending("black", {"status": 200, "detail": "", "type": ""}),
    ),
    "invalid_request": (
        Ending("validation", _model_error("value_error.missing", "field required")),
        Ending("image_load_error", _model_error("image_load_error", "the image could not be loaded")),
        Ending("bad_request", _request_error("bad_request", 400)),
        Ending("only_a_text", _request_error("bad_request", 422) | {"has_type": False}),
        Ending("too_large", _model_error("value_error", "too large", status=413) | {"has_type": False}),
    ),
}

VARIANTS = {
    "cluster": "only the addresses of the answer know the request, not those that are made by hand",
    "payload_error": "the callback of a success has no payload and says why: the result must be fetched",
    "other_gateway_id": "the gateway's request id differs from the request id",
}


def error_text(ending: Ending) -> str:
    """What the field `error` says of a bad end."""
    detail, status = ending.values["detail"], ending.values["status"]
    is_of_the_queue = isinstance(detail, str) and status not in (400, 422)
    return detail if is_of_the_queue else f"Invalid status code: {status}"


def is_black(view: View) -> bool:
    """Whether the model's safety check has taken every picture out."""
    return view.ending is not None and view.ending.values.get("status") == 200
