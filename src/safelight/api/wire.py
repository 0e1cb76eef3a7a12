"""The HTTP protocol of the door: as uvicorn speaks it, with a bound on what stands before a body."""

from __future__ import annotations

from typing import Any

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = structlog.get_logger()

HEAD_MOST_BYTES = 65_536
"""Of a request's line and headers together. The parser has no bound of its own, and gathers a long one slowly."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """Answers 431 and ends the connection of a request that does not come to its body."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._begin_next()

    def _begin_next(self) -> None:
        self._head_bytes = 0  # of the fields that have ended
        self._open_bytes = 0  # of everything since the request began
        self._is_in_head = True

    def data_received(self, data: bytes) -> None:
        """Parse; then see whether the head has ended in time."""
        super().data_received(data)
        if self._is_in_head and not self.transport.is_closing():
            self._open_bytes += len(data)
            if self._open_bytes > HEAD_MOST_BYTES:
                self.send_400_response("")

    def on_message_begin(self) -> None:
        self._begin_next()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What the parser could not read, or would not: 431 for a head that is too large."""
        is_too_large = max(self._head_bytes, self._open_bytes) > HEAD_MOST_BYTES
        log.info("request_unreadable", is_too_large=is_too_large)
        if is_too_large:
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        else:
            super().send_400_response(msg)

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEAD_MOST_BYTES:
            raise ValueError("the head is too large")  # the parser stops, and we are asked for an answer
