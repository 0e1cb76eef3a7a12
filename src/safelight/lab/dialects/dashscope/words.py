"""DashScope's words: states, the one shape of all errors, and every way of saying no."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from safelight.lab.speech.fields import Fault
from safelight.lab.speech.reply import Ending, Reply, Way

WORDS = {
    "queued": "PENDING",
    "running": "RUNNING",
    "done": "SUCCEEDED",
    "failed": "FAILED",
    "canceled": "CANCELED",
}
INSPECTED = "Input data may contain inappropriate content."
OUTPUT_INSPECTED = "Output data may contain inappropriate content."


def said(status: int, **members: Any) -> Reply:
    """Any answer: it has a request's id."""
    return Reply(status, {"request_id": str(uuid4()), **members})


def error(name: str, status: int, code: str, message: str) -> Way:
    """A refusal."""
    return Way(name, lambda: said(status, code=code, message=message))


def fault_error(fault: Fault) -> Reply:
    """What is wrong in a request; an address that cannot be read has a code of its own."""
    code = "InvalidURL" if fault.kind == "picture" else "InvalidParameter"
    return said(400, code=code, message=f"{fault.name or 'body'}: {fault.message}")


def unknown(task_id: str) -> Reply:
    """A task that is not there, or no longer."""
    return said(200, output={"task_id": task_id, "task_status": "UNKNOWN"})


def _failure(name: str, code: str, message: str) -> Ending:
    return Ending(name, {"code": code, "message": message})


REFUSALS = {
    "invalid_request": (
        error("parameter", 400, "InvalidParameter", "num_images_per_prompt must be 1 to 4"),
        error("url", 400, "InvalidURL", "The request URL is invalid"),
        error("input", 400, "BadRequest.EmptyInput", "Required input parameter missing from request."),
    ),
    "content_blocked": (
        error("inspection", 400, "DataInspectionFailed", INSPECTED),
        error("infringement", 400, "IPInfringementSuspect", "Input data is suspected of IP infringement."),
    ),
    "credentials": (
        error("missing", 401, "InvalidApiKey", "No API-key provided."),
        error("wrong", 401, "InvalidApiKey", "Invalid API-key provided."),
        error("denied", 403, "AccessDenied", "Access denied."),
    ),
    # Money is 400 here.
    "funds": (
        error(
            "arrearage", 400, "Arrearage", "Access denied, please make sure your account is in good standing."
        ),
    ),
    "rate_limited": (
        error("none", 429, "Throttling", "Requests throttling triggered."),
        error(
            "none_rate", 429, "Throttling.RateQuota", "Requests rate limit exceeded, please try again later."
        ),
        error("none_allocation", 429, "Throttling.AllocationQuota", "Allocated quota exceeded."),
    ),
    "upstream_fault": (
        error("internal", 500, "InternalError", "An internal error has occurred."),
        error("algorithm", 500, "InternalError.Algo", "An internal error has occurred during execution."),
        error("timeout", 500, "InternalError.Timeout", "An internal timeout error has occurred."),
    ),
    "not_found": (Way("unknown", lambda: unknown("lab")),),
}
ENDINGS = {
    "failed": (
        _failure("internal", "InternalError", "An internal error has occurred."),
        _failure("algorithm", "InternalError.Algo", "An internal error has occurred during execution."),
        _failure("timeout", "InternalError.Timeout", "An internal timeout error has occurred."),
    ),
    "blocked": (
        _failure("input", "DataInspectionFailed", INSPECTED),
        _failure("output", "DataInspectionFailed", OUTPUT_INSPECTED),
        _failure("infringement", "IPInfringementSuspect", "Input data is suspected of IP infringement."),
    ),
    "invalid_request": (
        _failure("parameter", "InvalidParameter", "The size is not in the allowed range."),
        _failure("url", "InvalidURL", "The request URL is invalid, please check it."),
        _failure("input", "BadRequest.EmptyInput", "Required input parameter missing from request."),
    ),
}
VARIANTS = {"suspended": "a task that has not begun is suspended for as long"}
