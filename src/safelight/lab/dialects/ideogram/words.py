"""Ideogram's words: error bodies, and every way of saying no."""

from __future__ import annotations

from typing import Any

from safelight.lab.speech.reply import Ending, Reply, Way

WORDS = {"queued": "pending", "running": "pending", "done": "completed", "failed": "failed"}


def error(status: int, message: str, **more: Any) -> Reply:
    """A text, and where an account's limit was met, which one."""
    return Reply(status, {"error": message, **more})


_UNSAFE = error(422, "The prompt or an image did not pass the safety check")
_FAULT = error(500, "Internal server error")

REFUSALS = {
    "invalid_request": (
        Way("invalid", error(400, "Invalid input provided")),
        Way("model", error(404, "There is no such endpoint")),
        Way("too_large", error(413, "The request is too large")),
    ),
    "content_blocked": (Way("safety", _UNSAFE),),
    "credentials": (
        Way("missing", error(401, "Unauthorized: the header Api-Key is missing")),
        Way("wrong", error(401, "Unauthorized")),
        Way("forbidden", error(403, "Forbidden")),
    ),
    "funds": (
        Way("insufficient_funds", error(402, "Not enough credits", reject_reason="insufficient_funds")),
        Way("daily_limit", error(402, "The daily limit is reached", reject_reason="daily_limit")),
        Way("in_429", error(429, "A subscription is required", reject_reason="subscription_required")),
    ),
    "rate_limited": (
        # Documented for polls: a thousand in ten seconds.
        Way("seconds", Reply(429, {"error": "Too many requests"}, {"Retry-After": "1"})),
    ),
    "concurrency_limited": (
        # Ten by default; it is pictures that are counted. Both statuses have all reasons.
        Way("in_402", error(402, "Too many requests in flight", reject_reason="inflight_limit")),
        Way(
            "inflight",
            error(
                429,
                "Too many requests in flight",
                reject_reason="inflight_limit",
                max_inflight_requests=10,
                task_completion_speed="fast",
            ),
        ),
    ),
    "upstream_fault": (
        Way("internal", _FAULT),
        Way("unavailable", error(503, "The endpoint is temporarily unavailable")),
    ),
    "not_found": (Way("generation", error(404, "There is no such generation")),),
}
ENDINGS = {
    # The reasons but the one of the policy are not documented.
    "failed": (Ending("failed", {"status": "failed", "failure_reason": "generation_error"}, reply=_FAULT),),
    "blocked": (
        # Such pictures cost as much as others.
        Ending("unsafe", {"status": "completed"}, is_billed=True),
        Ending("policy", {"status": "failed", "failure_reason": "content_policy_violation"}, reply=_UNSAFE),
    ),
}
