"""What is no body has a bound: nobody can make the door gather a header, a trailer or an extension without end."""

from __future__ import annotations

import asyncio

import pytest
from yarl import URL

from safelight.api.wire import HEAD_MOST_BYTES
from tests.api.door import Door

FIRST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
PIECE = b"a" * 16_384


CHUNKED = (
    b"POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Idempotency-Key: k\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer "
)


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


@pytest.mark.parametrize(
    "pieces",
    [
        [b"1;", *[PIECE] * 8],
        [b"1;" + b"a" * (4 * HEAD_MOST_BYTES) + b"\r\n{\r\n"],
        [*[b"1;" + b"a" * 1_000 + b"\r\n \r\n"] * 200],
        [b"1\r\n{\r\n0\r\nX: ", *[PIECE] * 8],
        [b"1\r\n{\r\n0\r\n", *[b"X: " + PIECE + b"\r\n"] * 8],
        [b"1\r\n \r\n" * 20_000 + b"0\r\nX: ", *[PIECE] * 8],
    ],
    ids=[
        "an extension",
        "at once",
        "many extensions",
        "a trailer",
        "many trailers",
        "a trailer after chunks",
    ],
)
async def test_what_stands_around_chunks_and_does_not_end_is_refused(door: Door, pieces: list[bytes]) -> None:
    answer = await said(door, CHUNKED + door.caller.key.encode() + b"\r\n\r\n", *pieces)
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b""  # cut while we still wrote
    assert (await door.request("GET", "/healthz")).status == 200


async def test_a_body_in_very_small_chunks_is_served(door: Door) -> None:
    body = b'{"prompt": "x"' + b" " * 40_000 + b"}"
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\nX: y\r\n\r\n"
    last = FIRST + b"Connection: close\r\n\r\n"
    answer = await said(door, CHUNKED + door.caller.key.encode() + b"\r\n\r\n", chunks, last)
    assert answer.startswith(b"HTTP/1.1 202 ")
    assert answer.count(b"HTTP/1.1 200 OK") == 1


async def test_a_trailer_is_no_header(door: Door) -> None:
    chunks = (
        b'\r\n\r\nf\r\n{"prompt": "x"}\r\n0\r\nAuthorization: Bearer %s\r\n\r\n' % door.caller.key.encode()
    )
    end = FIRST + b"Connection: close\r\n\r\n"
    assert (await said(door, CHUNKED + b"nobody" + chunks + end)).startswith(b"HTTP/1.1 401 ")
    unsigned = CHUNKED.removesuffix(b"Authorization: Bearer ").removesuffix(b"\r\n")
    assert (await said(door, unsigned + chunks + end)).startswith(b"HTTP/1.1 401 ")


async def test_a_connection_is_closed_without_a_second_answer_once_there_is_one(door: Door) -> None:
    refused = CHUNKED + b"nobody\r\n\r\n"
    answer = await said(door, refused, b"1\r\n{\r\n0\r\nX: ", *[PIECE] * 8)
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert b" 431 " not in answer
