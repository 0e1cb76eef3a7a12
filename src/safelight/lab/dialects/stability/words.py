"""Stability's words: error bodies, answers in two forms, and every way of saying no."""

from __future__ import annotations

import base64

from safelight.lab.speech.call import Call
from safelight.lab.speech.fields import Fault
from safelight.lab.speech.reply import Ending, Reply, Way

FILTERED = "CONTENT_FILTERED"


def error(status: int, name: str, message: str) -> Reply:
    """The one shape of all errors."""
    return Reply(status, {"id": "lab-error", "name": name, "errors": [message]})


def fault_error(fault: Fault) -> Reply:
    """What is wrong in a form."""
    return error(400, "bad_request", f"{fault.name or 'body'}: {fault.message}")


def wants_json(call: Call, *, default: str) -> bool:
    """Whether the picture is to come as JSON; without the header, or for anything, as `default`."""
    given = call.headers.get("Accept", default)
    given = default if given == "*/*" else given
    if given not in {"image/*", "application/json"}:
        raise Fault("header", ("accept",), "must be image/* or application/json")
    return given == "application/json"


def picture_reply(picture: bytes, form: str, *, reason: str, seed: int, field: str | None) -> Reply:
    """A picture as JSON under that field, or as bytes with the rest in headers."""
    if field is not None:
        encoded = base64.b64encode(picture).decode()
        return Reply(200, {field: encoded, "finish_reason": reason, "seed": seed})
    return Reply(200, picture, {"finish-reason": reason, "seed": str(seed)}, f"image/{form}")


_MODERATED = error(403, "content_moderation", "Your request was flagged by our content moderation system.")
_INTERNAL = error(500, "internal_error", "An unexpected error occurred.")

REFUSALS = {
    "invalid_request": (
        Way("bad_request", error(400, "bad_request", "prompt: is required")),
        # The names that go with these two are not documented.
        Way("too_large", error(413, "payload_too_large", "The request is larger than 10 MiB.")),
        Way("unprocessable", error(422, "unprocessable_entity", "The image cannot be processed.")),
    ),
    "content_blocked": (Way("moderation", _MODERATED),),
    "credentials": (
        Way("missing", error(401, "unauthorized", "The authorization header is missing.")),
        Way("wrong", error(401, "unauthorized", "The API key is not valid.")),
    ),
    "funds": (Way("credits", error(402, "payment_required", "You lack sufficient credits.")),),
    "rate_limited": (Way("none", error(429, "rate_limit_exceeded", "More than 150 requests in 10 s.")),),
    "upstream_fault": (Way("internal", _INTERNAL),),
    "not_found": (Way("result", error(404, "not_found", "There is no such generation.")),),
}
ENDINGS = {
    "failed": (Ending("internal", reply=_INTERNAL),),
    "blocked": (
        Ending("moderation", reply=_MODERATED),
        # A picture may come along all the same, blurred; or none does.
        Ending("filtered", {"is_shown": True}),
        Ending("filtered_empty", {"is_shown": False}),
    ),
}
