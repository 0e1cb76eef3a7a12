"""Replies: what a dialect answers, as values."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: a JSON value, or text or bytes with their content type."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def response(self) -> web.Response:
        """The answer on the wire; without a body it is empty."""
        body = self.body
        if isinstance(body, bytes):
            raw = body
        elif isinstance(body, str) and self.content_type != "application/json":
            raw = body.encode()
        else:
            raw = b"" if body is None else _encode(body).encode()
        response = web.Response(status=self.status, body=raw, headers=self.headers)
        response.content_type = self.content_type
        return response


@dataclass(frozen=True, slots=True)
class Stream:
    """Server-sent events, as the bytes of one event each."""

    events: AsyncIterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """Ends a call with a reply."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(str(reply.body))
        self.reply = reply


@dataclass(frozen=True, slots=True)
class Way:
    """One documented way of refusing; a reply that tells a time is made afresh at each call."""

    name: str
    reply: Reply | Callable[[], Reply]

    def made(self) -> Reply:
        """The reply."""
        return self.reply if isinstance(self.reply, Reply) else self.reply()


@dataclass(frozen=True, slots=True)
class Ending:
    """One documented way in which a job ends badly.

    `values` are the dialect's own, for its record to show. An upstream that answers at once may give the
    whole `reply` instead. `is_billed` if it takes money all the same.
    """

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    reply: Reply | None = None
    is_billed: bool = False
