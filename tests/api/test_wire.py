"""What stands before a body has a bound: nobody can make the door gather a header without end."""

from __future__ import annotations

import asyncio

import pytest
from yarl import URL

from safelight.api.wire import HEAD_MOST_BYTES
from tests.api.door import Door

FIRST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
PIECE = b"a" * 16_384


async def said(door: Door, *pieces: bytes) -> bytes:
    """What the door says to these bytes before it ends the connection or 5 s pass."""
    url = URL(door.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)  # so that they arrive one after the other
    except ConnectionError:
        pass  # it has answered already
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize(
    "pieces",
    [
        [FIRST, b"X: ", *[PIECE] * 8],
        [b"GET /", *[PIECE] * 8],
        [FIRST, *[b"X-%d: " % number + PIECE + b"\r\n" for number in range(8)], b"\r\n"],
        [FIRST + b"X: " + b"a" * HEAD_MOST_BYTES + b"\r\n\r\n"],
    ],
    ids=["a header", "a url", "many headers", "at once"],
)
async def test_a_head_that_does_not_end_is_refused(door: Door, pieces: list[bytes]) -> None:
    answer = await said(door, *pieces)
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b""  # cut while we still wrote
    assert (await door.request("GET", "/healthz")).status == 200


async def test_a_large_head_that_ends_and_any_body_are_served_on_one_connection(door: Door) -> None:
    head = FIRST + b"X: " + b"a" * (HEAD_MOST_BYTES // 2) + b"\r\n"
    body = b"Content-Length: %d\r\n\r\n" % (4 * len(PIECE)) + PIECE * 4
    answer = await said(door, head + b"\r\n", head + body, head + b"Connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 3


async def test_what_is_no_request_is_answered_400(door: Door) -> None:
    assert (await said(door, b"nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
