"""Black Forest Labs' words: states, error bodies in two shapes, and every way of saying no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from safelight.lab.speech.reply import Ending, Reply, Way

WORDS = {
    # There is one word for waiting and drawing.
    "queued": "Pending",
    "running": "Pending",
    "done": "Ready",
    "failed": "Error",
}
NOT_FOUND = "Task not found"


def told(status: int, detail: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """The shape of the API reference."""
    return Reply(status, {"detail": detail}, headers or {})


def skill(status: int, error: str, message: str, **more: Any) -> Reply:
    """The shape of the official skills repository, which contradicts the reference."""
    headers = {"Retry-After": str(more["retry_after"])} if "retry_after" in more else {}
    return Reply(status, {"error": error, "message": message, "details": {}, **more}, headers)


def _missing(name: str) -> list[dict[str, Any]]:
    return [{"loc": ["body", name], "msg": "Field required", "type": "missing"}]


REFUSALS = {
    "invalid_request": (
        Way("detail", told(422, _missing("prompt"))),
        Way("bad_request", told(400, "Invalid request")),
        Way("skill", skill(422, "validation_error", "prompt is required")),
    ),
    "content_blocked": (Way("skill", skill(400, "content_policy_violation", "The prompt violated policy")),),
    "credentials": (
        Way("missing", told(403, "Not authenticated")),
        Way("wrong", told(403, "Not authenticated - Invalid Authentication")),
        Way("skill", skill(401, "invalid_api_key", "The API key is invalid or expired")),
    ),
    "funds": (
        Way("detail", told(402, "Insufficient credits")),
        Way("skill", skill(402, "insufficient_credits", "Insufficient credits")),
        # Which status goes with the code is not told by the reference, which has 403 for all that is forbidden.
        Way("skill_403", skill(403, "insufficient_credits", "Insufficient credits")),
    ),
    "rate_limited": (
        Way("none", told(429, "Rate limit exceeded")),
        Way("seconds", skill(429, "rate_limit_exceeded", "Too many requests", retry_after=1)),
        Way(
            "body",
            Reply(
                429,
                {"error": "rate_limit_exceeded", "message": "Too many requests", "retry_after": 1},
            ),
        ),
    ),
    # The same status as for too many requests, with no documented difference.
    "concurrency_limited": (Way("active_tasks", told(429, "Too many active tasks")),),
    "upstream_fault": (
        Way("internal", told(500, "Internal Server Error")),
        Way("unavailable", told(503, "Service Unavailable")),
    ),
    # The state is documented, its HTTP status is not.
    "not_found": (
        Way("status", Reply(200, {"id": "lab", "status": NOT_FOUND, "result": None})),
        Way("http_404", Reply(404, {"id": "lab", "status": NOT_FOUND, "result": None})),
    ),
}
# `error` and `message` beside the state are told by the skills repository only.
ENDINGS = {
    "failed": (
        Ending("error", {"error": "generation_timeout", "message": "Took too long to generate"}),
        Ending("internal", {"error": "internal_error", "message": "Server-side issue"}),
        Ending("silent", {}),
    ),
    "invalid_request": (
        Ending("image", {"error": "invalid_image", "message": "Input image could not be processed"}),
    ),
    "blocked": (
        Ending("policy", {"error": "content_policy_violation", "message": "The prompt violated policy"}),
        Ending(
            "request",
            {
                "status": "Request Moderated",
                "details": {"Moderation Reasons": ["Safety Filter"]},
            },
        ),
        Ending(
            "content",
            {
                "status": "Content Moderated",
                "details": {"Moderation Reasons": ["Content Moderated"]},
            },
        ),
    ),
}
VARIANTS = {
    "cluster": "only the cluster that the polling address names knows the task; the global address does not",
    "task_id": "the callback calls the id task_id, as some receivers expect it",
}
