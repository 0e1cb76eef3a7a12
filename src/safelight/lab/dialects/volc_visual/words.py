"""The words of Volcengine Visual: its envelope, that of the gateway before it, and every no of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Way

GOOD = 10000
WORDS = {"queued": "in_queue", "running": "generating", "done": "done", "failed": "expired"}
OPTIONS = {"scale": Option(0.35), "seed": Option(20_261_129), "use_pre_llm": Option(False)}
INPUT_PICTURE, INPUT_TEXT, OUTPUT_PICTURE = (
    "Pre Img Risk Not Pass",
    "Text Risk Not Pass",
    "Post Img Risk Not Pass",
)
VARIANTS = {"inline": "Pictures come as base64, even where addresses were asked for."}
MODERATED = {
    50411: INPUT_PICTURE,
    50412: INPUT_TEXT,
    50413: "Post Text Risk Not Pass: sensitive or copyrighted words",
    50511: OUTPUT_PICTURE,
    50512: "Post Text Risk Not Pass",
    50518: "Pre Img Risk Not Pass: copyright",
    50519: "Post Img Risk Not Pass: copyright",
}


def envelope(code: int, data: Any, message: str) -> dict[str, Any]:
    """What every answer of the service is wrapped in; `status` repeats the code."""
    head = {"code": code, "data": data, "message": message, "request_id": uuid4().hex}
    return {**head, "status": code, "time_elapsed": "1.5ms"}


def refusal(status: int, code: int, message: str) -> Reply:
    """A no of the service."""
    return Reply(status, envelope(code, None, message))


def turned_away(status: int, code: str, number: int | None, message: str) -> Reply:
    """A no of the gateway, which has a shape of its own."""
    error = {"Code": code, "Message": message} | ({} if number is None else {"CodeN": number})
    metadata = {"RequestId": uuid4().hex, "Service": "cv", "Region": "cn-north-1", "Error": error}
    return Reply(status, {"ResponseMetadata": metadata})


def _no(name: str, status: int, code: int, message: str) -> Way:
    return Way(name, lambda: refusal(status, code, message))


def _away(name: str, status: int, code: str, number: int | None, message: str) -> Way:
    return Way(name, lambda: turned_away(status, code, number, message))


def _bad_end(
    name: str, http: int, code: int, message: str, word: str = "", urls: Sequence[str] | None = None
) -> Ending:
    data = {"status": word, "image_urls": urls} if word else None
    return Ending(name, {"http": http, "code": code, "message": message, "data": data})


REFUSALS = {
    # The number is not verified: the pages that are known list moderation, limits and faults only.
    "invalid_request": (_no("parameter", 400, 50200, "Request Parameter Invalid"),),
    # Statuses are known from copies of the documentation only: the code counts under a 200 as well.
    "content_blocked": (
        *(_no(str(code), 400, code, text) for code, text in MODERATED.items()),
        _no("in_200", 200, 50412, INPUT_TEXT),
    ),
    # The gateway is that of all Volcengine APIs; numbers and statuses are those of BytePlus' page of common errors.
    "credentials": (
        _away("signature", 401, "SignatureDoesNotMatch", 100010, "The request signature does not match."),
        _away("access_key", 401, "InvalidAccessKey", 100009, "The access key is invalid."),
        _away("token", 401, "MissingAuthenticationToken", 100003, "Request is missing its token."),
        _away("missing", 401, "MissingSignature", 100005, "The request is missing signature."),
        _away("info", 400, "MissingRequestInfo", 100004, "The request is missing information."),
        _away("timestamp", 400, "InvalidTimestamp", 100006, "The signature of the request is expired."),
        _away("authorization", 400, "InvalidAuthorization", None, "The Authorization header is invalid."),
        _away("credential", 400, "InvalidCredential", None, "The credential in the header is invalid."),
        _away("policy", 403, "LackPolicy", 100012, "Request was rejected because of lack of policy."),
        _away("denied", 403, "AccessDenied", 100013, "User is not authorized to perform this."),
    ),
    "rate_limited": (
        _no("none", 429, 50429, "Request Has Reached API Limit"),
        _no("in_200", 200, 50429, "Request Has Reached API Limit"),
        _away("gateway", 429, "FlowLimitExceeded", 100018, "Request was rejected because of flow limit."),
    ),
    "concurrency_limited": (
        _no("none", 429, 50430, "Request Has Reached API Concurrent Limit"),
        _no("in_200", 200, 50430, "Request Has Reached API Concurrent Limit"),
    ),
    "upstream_fault": (
        _no("internal", 500, 50500, "Internal Error"),
        _no("in_200", 200, 50500, "Internal Error"),
        _no("rpc", 500, 50501, "Internal RPC Error"),
        _no("moderation", 400, 50520, "Risk Internal Error"),
        _no("moderation_text", 400, 50521, "Antidirt Internal Error"),
        _no("moderation_copyright", 400, 50522, "Image Copyright Internal Error"),
    ),
    "not_found": (Way("state", lambda: Reply(200, envelope(GOOD, {"status": "not_found"}, "Success"))),),
}
ENDINGS = {
    "failed": (
        # A task is remembered for twelve hours; then, or when it was too long in the line, it is so called.
        Ending("expired"),
        _bad_end("done_with_error", 200, 50500, "Internal Error", "done"),
        _bad_end("moderation_down", 400, 50520, "Risk Internal Error", "done"),
    ),
    "blocked": (
        *(_bad_end(str(code), 400, code, text) for code, text in MODERATED.items()),
        _bad_end("done_but_blocked", 200, 50511, OUTPUT_PICTURE, "done"),
        _bad_end("flagged", 200, 50511, OUTPUT_PICTURE, "done", ["https://visual.example/withheld.png"]),
    ),
}
