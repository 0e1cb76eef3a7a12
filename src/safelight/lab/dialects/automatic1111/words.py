"""The webui's words: two shapes of errors, and every way of saying no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from safelight.lab.speech.fields import Fault
from safelight.lab.speech.reply import Ending, Reply, Way

_KINDS = {
    "missing": "missing",
    "unknown": "extra_forbidden",
    "type": "type_error",
    "value": "value_error",
    "body": "json_invalid",
    "header": "model_attributes_type",
}


def wrapped(
    status: int, error: str, *, detail: str = "", errors: str = "", headers: Mapping[str, str] | None = None
) -> Reply:
    """Whatever was raised, with the name of its class."""
    body = {"error": error, "detail": detail, "body": "", "errors": errors}
    return Reply(status, body, headers or {})


def http_error(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Reply:
    """An error that was raised on purpose."""
    return wrapped(status, "HTTPException", detail=detail, headers=headers)


def validation(fault: Fault) -> Reply:
    """What does not fit the schema, as a list."""
    loc: list[Any] = ["body", *fault.path]
    return Reply(422, {"detail": [{"type": _KINDS[fault.kind], "loc": loc, "msg": fault.message}]})


_BASIC = {"WWW-Authenticate": "Basic"}
_NO_MEMORY = wrapped(
    500, "OutOfMemoryError", errors="CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total)"
)

# It has no moderation, no money and no limits: requests wait for each other.
REFUSALS = {
    "invalid_request": (
        Way("validation", validation(Fault("type", ("steps",), "Input should be a valid integer"))),
        Way("sampler", http_error(404, "Sampler not found")),
        Way("script", http_error(422, "Script 'none' not found")),
        Way("no_image", http_error(404, "Init image not found")),
        # A picture that cannot be read is told as its own fault.
        Way("image", http_error(500, "Invalid encoded image")),
    ),
    "credentials": (
        Way("missing", http_error(401, "Not authenticated", _BASIC)),
        Way("wrong", http_error(401, "Incorrect username or password", _BASIC)),
    ),
    "upstream_fault": (
        Way("out_of_memory", _NO_MEMORY),
        Way(
            "nans",
            wrapped(500, "NansException", errors="A tensor with all NaNs was produced in Unet."),
        ),
        Way("runtime", wrapped(500, "RuntimeError", errors="Expected all tensors to be on the same device")),
    ),
}
ENDINGS = {"failed": (Ending("out_of_memory", reply=_NO_MEMORY),)}
VARIANTS = {"no_grid": "several pictures come without the grid before them, as its settings may say"}
