"""Requests and answers of the operator's door: bodies of one shape each, rows as JSON, pages by cursor."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from safelight.api import bodies, pages
from safelight.api.checked import CheckedBody, check_body
from safelight.api.described import ADMIN_SCHEME, described, parameter
from safelight.api.headers import Headers
from safelight.api.shown import time_text
from safelight.lifecycle.once import Answered, Once

MAX_BODY_BYTES = 65_536
KEY_HEADER = parameter(
    "Idempotency-Key",
    "header",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    "The same change under the same key is made once.",
)

BodyT = TypeVar("BodyT", bound=CheckedBody)


async def read_change(
    request: Request,
    headers: Headers,
    shape: type[BodyT],
    *,
    limit: int = MAX_BODY_BYTES,
    needs_key: bool = False,
) -> tuple[BodyT, Once | None]:
    """The body of a change, and under which key it is made, if it came with one.

    Raises:
        RequestError: 400, 408, 413, 415 as everywhere; 422 with the fields that do not fit.
    """
    bodies.check_json_headers(headers)
    has_key = needs_key or b"idempotency-key" in headers
    key = bodies.read_idempotency_key(headers) if has_key else None
    body = bodies.parse_object(await bodies.read_body(request, headers, limit))
    checked = check_body(body, shape)
    if key is None:
        return checked, None
    # What is changed stands in the address: it belongs to what the key was used for.
    fingerprint = bodies.fingerprint({"path": request.url.path, "body": body})
    return checked, Once(f"{request.method} {request.scope['route'].path}", key, fingerprint)


def changed(answer: Answered, status: int = 200) -> Response:
    """The answer to a change."""
    headers = {"Idempotent-Replayed": "true"} if answer.is_replayed else None
    return Response(answer.body, status, headers, "application/json")


def shown(document: Any, status: int = 200) -> Response:
    """Rows as JSON: times in UTC, numbers of rows as texts."""
    text = json.dumps(_named(document), ensure_ascii=False, separators=(",", ":"), default=_plain)
    return Response(text.encode("utf-8", "replace"), status, None, "application/json")


def page_of(rows: Sequence[Mapping[str, Any]], limit: int) -> Response:
    """A page; the next one begins after its last row's id."""
    last = rows[-1]["id"] if rows else None
    raw = last.bytes if isinstance(last, UUID) else None if last is None else int(last).to_bytes(8)
    return shown(pages.page(rows, limit, raw))


def admin_described(summary: str, answers: Mapping[int, Any], **documented: Any) -> dict[str, Any]:
    """As `described`, with the operator's key as the way in."""
    return described(summary, answers, scheme=ADMIN_SCHEME, **documented)


def _named(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: str(one) if name == "id" and isinstance(one, int) else _named(one)
            for name, one in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_named(one) for one in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return time_text(value)
    return float(value) if isinstance(value, Decimal) else str(value)
