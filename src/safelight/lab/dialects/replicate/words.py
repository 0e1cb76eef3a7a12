"""Replicate's words: states, problems of RFC 7807, and every way of saying no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from safelight.lab.speech.reply import Ending, Reply, Way

WORDS = {
    "queued": "starting",
    "running": "processing",
    "done": "succeeded",
    "failed": "failed",
    "canceled": "canceled",
}
EVENTS = ("start", "output", "logs", "completed")


def problem(
    status: int, title: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> Reply:
    """An error of the API."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return Reply(status, body, headers or {}, content_type="application/problem+json")


def _throttled(headers: Mapping[str, str]) -> Reply:
    return problem(429, "Too many requests", "Request was throttled.", headers=headers)


REFUSALS = {
    "invalid_request": (
        Way("input", problem(422, "Input validation failed", "- input: prompt is required\n")),
        Way(
            "version",
            problem(
                422,
                "Invalid version or not permitted",
                "The specified version does not exist (or perhaps you don't have permission to use it?)",
            ),
        ),
    ),
    "credentials": (
        Way("missing", problem(401, "Unauthenticated", "You did not pass an authentication token")),
        Way("wrong", problem(401, "Unauthenticated", "You did not pass a valid authentication token")),
    ),
    # The status is customary, the words are not documented.
    "funds": (
        Way("credit", problem(402, "Insufficient credit", "You have insufficient credit to run this model")),
    ),
    # Its client reads the header; whether it is always there, and what the body says, is not documented.
    "rate_limited": (Way("seconds", _throttled({"Retry-After": "1"})), Way("none", _throttled({}))),
    "upstream_fault": (
        Way("internal", problem(500, "Internal server error", "Something went wrong on our side")),
        Way("unavailable", problem(503, "Service unavailable", "Try again later")),
    ),
    "not_found": (Way("prediction", problem(404, "Not found", "The requested resource could not be found")),),
}
ENDINGS = {
    # There are no codes: only the model's text tells one from the other.
    "failed": (
        Ending("internal", {"error": "Prediction failed: the model did not answer."}),
        Ending("out_of_memory", {"error": "CUDA out of memory. Tried to allocate 20.00 MiB"}),
        Ending("interrupted", {"error": "Prediction interrupted; please retry (code: PA)"}),
    ),
    "blocked": (
        Ending("nsfw", {"error": "NSFW content detected. Try running it again, or try a different prompt."}),
        Ending(
            "sensitive",
            {"error": "The input or output was flagged as sensitive. Please try again. (E005) (lab)"},
        ),
    ),
}
VARIANTS = {
    "data_removed": "the prediction is finished, and its input and output are deleted already",
    "all_files": "the model gives a list, even where it usually gives one address by itself",
}
