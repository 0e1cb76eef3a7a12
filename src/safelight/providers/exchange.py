"""Makes one HTTP call to an upstream and says what became of it: not sent, no answer, or answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

MAX_ANSWER_BYTES = 2 * 1024 * 1024
MAX_PICTURE_ANSWER_BYTES = 64 * 1024 * 1024
CONNECT_TIMEOUT_S = 10.0
"""Includes the wait for a free connection of the session."""

CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class OutgoingCall:
    """A call that is ready to be sent. Its parts hold secrets and stay out of its repr."""

    method: str
    url: URL = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | aiohttp.FormData | None = field(repr=False)
    timeout_s: float
    max_answer_bytes: int = MAX_ANSWER_BYTES


@dataclass(frozen=True, slots=True)
class NotSent:
    """The upstream certainly did not hear of it: DNS, refused, TLS, or no connection in time."""

    reason: str


@dataclass(frozen=True, slots=True)
class SentWithoutAnswer:
    """The upstream may have heard of it: reset, read time-out, cut or oversized answer."""

    reason: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A whole answer. Header names are lower-case; of a repeated header the first value counts."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


Outcome = NotSent | SentWithoutAnswer | Answered


Read = Callable[[aiohttp.ClientResponse, int], Awaitable[Outcome]]
"""Reads an answer of at most so many bytes."""


async def read_whole(response: aiohttp.ClientResponse, limit: int) -> Outcome:
    """The answer once all of it is there."""
    chunks: list[bytes] = []
    size = 0
    # Chunks are counted after decompression, so that a small body cannot unpack without end.
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        size += len(chunk)
        if size > limit:
            response.close()
            return SentWithoutAnswer("answer_too_large")
        chunks.append(chunk)
    return Answered(response.status, headers_of(response), b"".join(chunks))


def headers_of(response: aiohttp.ClientResponse) -> dict[str, str]:
    """The answer's headers by their lower-case names."""
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        headers.setdefault(name.lower(), value)
    return headers


async def exchange(session: aiohttp.ClientSession, call: OutgoingCall, read: Read = read_whole) -> Outcome:
    """Send one call once; redirects are answers, and cancellation passes through."""
    connect_s = min(CONNECT_TIMEOUT_S, call.timeout_s / 2)
    timeout = aiohttp.ClientTimeout(total=call.timeout_s, connect=connect_s, sock_connect=connect_s)
    try:
        async with session.request(
            call.method,
            call.url,
            headers=call.headers,
            data=call.body,
            timeout=timeout,
            allow_redirects=False,
        ) as response:
            return await read(response, call.max_answer_bytes)
    except _NEVER_SENT as error:
        return NotSent(type(error).__name__)
    # The text of these errors may hold the address, and that a token: only the type is kept.
    except (aiohttp.ClientError, TimeoutError, OSError, asyncio.IncompleteReadError) as error:
        return SentWithoutAnswer(type(error).__name__)


# Raised by aiohttp 3.14 before the first byte of a call is written: while it finds, opens or secures the
# connection. A reset while writing is a plain ClientOSError and stays on the other side of the question.
_NEVER_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientSSLError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ServerFingerprintMismatch,
    aiohttp.InvalidURL,
)
