"""Bodies and the idempotency key: read with a cap, parsed strictly, told apart by a fingerprint."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
from typing import Any, NoReturn

from starlette.requests import Request

from safelight.api.headers import Headers
from safelight.api.problems import BodyTooLarge
from safelight.errors import RequestError

MAX_DEPTH = 32
READ_S = 60.0
"""How long a body may take to arrive; the server itself has no such deadline."""
MAX_DISCARDED = 64 * 1024 * 1024
"""An announced body up to this size is read away after a refusal, so that its sender sees the answer."""

_JSON_TYPE = re.compile(rb"application/json(?:\s*;\s*charset\s*=\s*\"?utf-8\"?)?\s*", re.IGNORECASE)
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def check_json_headers(headers: Headers) -> None:
    """Refuse what is not declared as plain JSON.

    Raises:
        RequestError: 415.
    """
    declared = headers.get(b"content-type", b"")
    if declared != b"application/json" and not _JSON_TYPE.fullmatch(declared):
        raise RequestError(415, "unsupported-media-type", "Send the body as application/json in UTF-8.")
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise RequestError(415, "unsupported-media-type", "Send the body without Content-Encoding.")


def read_idempotency_key(headers: Headers) -> str:
    """The idempotency key, bare or as a quoted string.

    Raises:
        RequestError: 400, it is missing, malformed, or there more than once.
    """
    raw = headers.get(b"idempotency-key")
    if raw is None:
        raise RequestError(400, "idempotency-key-missing", "Send an Idempotency-Key header.")
    text = raw.decode("latin-1")
    quoted = _QUOTED.fullmatch(text) if text.startswith('"') else None
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else text
    if not _KEY.fullmatch(key) or (not quoted and key[0] == '"'):
        detail = "Send one Idempotency-Key of 1 to 255 printable ASCII characters without spaces."
        raise RequestError(400, "idempotency-key-invalid", detail)
    return key


async def read_body(
    request: Request, headers: Headers, limit: int, *, advice: str = "", within_s: float = READ_S
) -> bytes:
    """The whole body, of which never more than `limit` bytes and a bit are held.

    `advice` is a sentence for whoever sends more.

    Raises:
        RequestError: 413 as soon as it is known to be too large, 408 if it does not arrive in time,
            400 if the caller goes away.
    """
    announced = _content_length(headers)
    if announced is not None and announced > limit:
        raise BodyTooLarge(limit, must_close=announced > MAX_DISCARDED, advice=advice)
    try:
        async with asyncio.timeout(within_s):
            body = await _read(request, limit)
    except TimeoutError:
        raise RequestError(408, "request-timeout", "The body did not arrive in time.") from None
    if len(body) > limit:
        raise BodyTooLarge(limit, must_close=True, advice=advice)
    return body


async def _read(request: Request, limit: int) -> bytes:
    message = await request.receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        pieces = bytearray(body)
        while message.get("more_body") and len(pieces) <= limit:
            message = await request.receive()
            pieces += message.get("body", b"")
        body = bytes(pieces)
    if message["type"] == "http.disconnect":
        raise RequestError(400, "incomplete-body", "The body broke off.")
    return body


def _content_length(headers: Headers) -> int | None:
    text = headers.get(b"content-length")
    if text is None:
        return None
    if not text.isdigit() or len(text) > 18:
        raise RequestError(400, "bad-request", "Content-Length is not a number.")
    return int(text)


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object of a body, read strictly.

    Raises:
        RequestError: 400 for a byte order mark, invalid UTF-8 or JSON, NaN, Infinity, a number beyond a
            double, a key that is there twice, more than 32 levels, or anything but an object.
    """
    if raw.startswith(b"\xef\xbb\xbf"):
        raise _invalid("The body begins with a byte order mark.")
    try:
        parsed = _decoder.decode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise _invalid("The body is not valid UTF-8.") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        detail = str(error) if isinstance(error, _Refused) else "The body is not valid JSON."
        raise _invalid(detail) from None
    if not isinstance(parsed, dict):
        raise _invalid("The body is not a JSON object.")
    # Only what has enough brackets can be too deep.
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and not _is_within(parsed, MAX_DEPTH):
        raise _too_deep()
    return parsed


def canonical(value: Any) -> bytes:
    """One spelling for equal JSON: sorted keys, no spaces. Numbers stay as they were written (1 is not 1.0).

    Half a surrogate pair gets through, because the key is looked up before the text is judged.
    """
    return _encode(value).encode("utf-8", "surrogatepass")


def fingerprint(body: dict[str, Any]) -> bytes:
    """What tells one body from another under the same idempotency key: 32 bytes."""
    return hashlib.sha256(canonical(body)).digest()


class _Refused(ValueError):
    """Valid JSON to a lenient reader, but not to us; the text is for the caller."""


def _refuse_constant(name: str) -> NoReturn:
    raise _Refused(f"{name} is not JSON.")


def _read_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused("A number is too large.")
    return value


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused("A key is there twice in one object.")
    return found


_decoder = json.JSONDecoder(
    object_pairs_hook=_read_object, parse_float=_read_float, parse_constant=_refuse_constant
)


def _is_within(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        return levels > 0 and all(_is_within(inner, levels - 1) for inner in value.values())
    if isinstance(value, list):
        return levels > 0 and all(_is_within(inner, levels - 1) for inner in value)
    return True


def _invalid(detail: str) -> RequestError:
    return RequestError(400, "invalid-json", detail)


def _too_deep() -> RequestError:
    return _invalid(f"The body is nested deeper than {MAX_DEPTH} levels.")
