"""Reading a body from a stranger: capped in bytes, in time and in what it unpacks to."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from safelight.errors import AssetError

_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How much time and how many bytes one fetch may take; `min_rate` is bytes a second."""

    max_bytes: int = 50_000_000
    resolve_s: float = 5.0
    connect_s: float = 5.0
    first_byte_s: float = 15.0
    total_s: float = 120.0
    min_rate: float = 1_000.0
    rate_window_s: float = 10.0
    redirects: int = 3
    connections: int = 100
    url_characters: int = 2_048


@dataclass(frozen=True, slots=True)
class Posted:
    """What came back to something that we sent: of the body only how it begins."""

    status: int
    headers: Mapping[str, str]
    start: bytes


async def read_posted(response: aiohttp.ClientResponse, limits: FetchLimits) -> Posted:
    """Status and headers, and at most `max_bytes` of the body as they came, within `rate_window_s` seconds."""
    start = bytearray()
    with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(limits.rate_window_s):
            while len(start) < limits.max_bytes and (part := await response.content.readany()):
                start += part
    if not response.content.at_eof():
        # The rest is not worth waiting for, and the connection cannot be used again.
        response.close()
    return Posted(response.status, response.headers, bytes(start[: limits.max_bytes]))


async def read_body(response: aiohttp.ClientResponse, limits: FetchLimits) -> bytes:
    """The whole, unpacked body, or AssetError: `empty`, `truncated`, `too_large`, `too_slow`, `upstream`."""
    if (response.content_length or 0) > limits.max_bytes:
        raise _too_large(limits)
    unpack = _unpacker(response)
    pace = _Pace(limits)
    parts: list[bytes] = []
    received = unpacked = 0
    while packed := await _next_part(response, pace):
        received += len(packed)
        pace.add(len(packed))
        part = _unpack(unpack, packed, room=limits.max_bytes - unpacked) if unpack else packed
        unpacked += len(part)
        if max(received, unpacked) > limits.max_bytes:
            raise _too_large(limits)
        parts.append(part)
    _check_complete(response, unpack, received)
    body = b"".join(parts)
    if not body[:4_096].strip() and not body.strip():
        raise AssetError("empty", "the answer has no content", is_retryable=True)
    return body


class _Pace:
    """Windows of fixed length, each of which must bring its share of bytes."""

    def __init__(self, limits: FetchLimits) -> None:
        self._length_s = limits.rate_window_s
        self._share = limits.min_rate * limits.rate_window_s
        self._loop = asyncio.get_running_loop()
        self._got = 0
        self.ends_at = self._loop.time() + self._length_s

    def add(self, count: int) -> None:
        self._got += count
        if self._loop.time() >= self.ends_at:
            self.turn()

    def turn(self) -> None:
        """Close the window: raise `too_slow` if it brought too little, else start the next."""
        if self._got < self._share:
            raise AssetError("too_slow", "the body came below the minimum rate", is_retryable=True)
        self._got = 0
        self.ends_at = self._loop.time() + self._length_s


async def _next_part(response: aiohttp.ClientResponse, pace: _Pace) -> bytes:
    """The next piece as it came, b"" at the end."""
    while True:
        try:
            async with asyncio.timeout_at(pace.ends_at):
                return await response.content.readany()
        except aiohttp.ServerTimeoutError:
            raise
        except TimeoutError:
            pace.turn()
        except (aiohttp.ClientError, OSError) as error:
            raise AssetError(
                "truncated", f"the body broke off ({type(error).__name__})", is_retryable=True
            ) from None


def _unpacker(response: aiohttp.ClientResponse) -> zlib._Decompress | None:
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding in ("", "identity"):
        return None
    if coding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(_GZIP_OR_ZLIB)
    raise AssetError("upstream", "the answer has a coding that we did not ask for", is_retryable=False)


def _unpack(unpack: zlib._Decompress, packed: bytes, *, room: int) -> bytes:
    """At most `room` + 1 bytes, so that a bomb is seen before it fills the memory."""
    try:
        return unpack.decompress(packed, room + 1)
    except zlib.error:
        raise AssetError("truncated", "the packed body is broken", is_retryable=True) from None


def _check_complete(response: aiohttp.ClientResponse, unpack: zlib._Decompress | None, received: int) -> None:
    expected = response.content_length
    is_short = expected is not None and received != expected
    if is_short or (received and unpack is not None and not unpack.eof):
        detail = f"the body has {received} bytes, {expected if is_short else 'more'} were promised"
        raise AssetError("truncated", detail, is_retryable=True)


def _too_large(limits: FetchLimits) -> AssetError:
    return AssetError("too_large", f"the body is over {limits.max_bytes} bytes", is_retryable=False)
