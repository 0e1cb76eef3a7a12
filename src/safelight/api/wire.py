"""The HTTP protocol of the door: as uvicorn speaks it, with a bound on everything that is no body."""

from __future__ import annotations

from typing import Any, cast

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

log = structlog.get_logger()

HEAD_MOST_BYTES = 65_536
"""Of what is no body: a request's line, headers and trailers together, or what stands around its chunks.

The parser has no bound of its own, and gathers a long field slowly.
"""
CHUNK_FREE_BYTES = 32
"""What may stand around each chunk: its size, two line ends and a short extension."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """Answers 431 and ends the connection of a request that does not come to its body, or to its end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._begin_next()

    def _begin_next(self) -> None:
        self._field_bytes = 0  # of the fields that have ended
        self._loose_bytes = 0  # of whatever belongs to no body and to no ordinary chunk
        self._is_in_head = True

    def data_received(self, data: bytes) -> None:
        """Parse; then see what of it was no body."""
        self._body_bytes = 0
        self._has_ended = False
        super().data_received(data)
        # Of a read in which one request ended, nobody knows what belongs to the next: the one after it is counted.
        if self.transport.is_closing() or self._has_ended:
            return
        # Never below zero: many small chunks leave no room for a long trailer.
        self._loose_bytes = max(0, self._loose_bytes + len(data) - self._body_bytes)
        if self._loose_bytes > HEAD_MOST_BYTES:
            self.send_400_response("")

    def on_message_begin(self) -> None:
        self._begin_next()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        if self._is_in_head:  # a trailer is no header: what stands before us has not judged it
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._is_in_head = False

    def on_chunk_header(self) -> None:
        """A chunk begins; the parser calls this by its name, uvicorn itself has no use for it."""
        self._body_bytes += CHUNK_FREE_BYTES

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._has_ended = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What the parser could not read, or would not: 431 for what is too large, and no second answer."""
        is_too_large = max(self._field_bytes, self._loose_bytes) > HEAD_MOST_BYTES
        log.info("request_unreadable", is_too_large=is_too_large)
        if not self._may_answer():
            self.transport.close()
        elif is_too_large:
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        else:
            super().send_400_response(msg)

    def _may_answer(self) -> bool:
        """Whether these bytes would be read as the answer to this request: not within another, nor after its own."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None:  # the first head of this connection has not ended
            return True
        if self._is_in_head:  # it is that of the request before
            return cycle.response_complete
        return not self.pipeline and not cycle.response_started

    def _count(self, size: int) -> None:
        self._field_bytes += size
        if self._field_bytes > HEAD_MOST_BYTES:
            raise ValueError("the head is too large")  # the parser stops, and we are asked for an answer
