"""A lean load generator: ready-made HTTP/1.1 messages over kept connections, one in flight on each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter, process_time
from types import TracebackType
from typing import cast
from urllib.parse import urlsplit

ANSWER_WITHIN_S = 60.0
_CREATED_OR_FOUND = range(200, 300)


@dataclass(slots=True)
class Burst:
    """What one burst of messages brought; `cpu_s` is what this generator itself used of a core."""

    latencies_ms: list[float] = field(default_factory=list)
    refused: Counter[int] = field(default_factory=Counter)
    bodies: list[bytes] = field(default_factory=list)
    elapsed_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def per_s(self) -> float:
        """Answers of 2xx per second."""
        good = len(self.latencies_ms) - self.refused.total()
        return good / self.elapsed_s if self.elapsed_s else 0.0


class Load:
    """Connections to one server, kept from burst to burst."""

    def __init__(self, url: str, connections: int) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or 80
        self._count = connections
        self._connections: list[_Connection] = []

    async def __aenter__(self) -> Load:
        loop = asyncio.get_running_loop()
        opening = [loop.create_connection(_Connection, self._host, self._port) for _ in range(self._count)]
        self._connections = [connection for _, connection in await asyncio.gather(*opening)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections:
            connection.close()

    async def send(
        self, messages: Iterator[bytes], *, seconds: float | None = None, keep_bodies: bool = False
    ) -> Burst:
        """Send until the messages or the seconds are used up, and wait for the last answer.

        Raises:
            OSError: the server closed a connection, or did not answer within 60 s.
        """
        until = perf_counter() + seconds if seconds is not None else float("inf")
        sending = _Sending(messages, until, keep_bodies)
        started_at, started_cpu = perf_counter(), process_time()
        for connection in self._connections:
            connection.work_on(sending)
        try:
            async with asyncio.timeout((seconds or 0.0) + ANSWER_WITHIN_S):
                await sending.finished
        except TimeoutError:
            raise OSError(f"no answer within {ANSWER_WITHIN_S:.0f} s") from None
        sending.burst.elapsed_s = perf_counter() - started_at
        sending.burst.cpu_s = process_time() - started_cpu
        return sending.burst


class _Sending:
    """One burst under way."""

    def __init__(self, messages: Iterator[bytes], until: float, keep_bodies: bool) -> None:
        self.burst = Burst()
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.keep_bodies = keep_bodies
        self._messages = messages
        self._until = until
        self._working = 0

    def begin(self) -> None:
        self._working += 1

    def next_message(self, now: float) -> bytes | None:
        return next(self._messages, None) if now < self._until else None

    def end(self, error: Exception | None = None) -> None:
        self._working -= 1
        if self.finished.done():
            return
        if error is not None:
            self.finished.set_exception(error)
        elif self._working == 0:
            self.finished.set_result(None)


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._sending: _Sending | None = None
        self._received = b""
        self._sent_at = 0.0

    def work_on(self, sending: _Sending) -> None:
        self._sending = sending
        sending.begin()
        self._go_on(sending)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._sending is not None:
            self._sending.end(ConnectionResetError("the server closed a connection"))
            self._sending = None

    def data_received(self, data: bytes) -> None:
        self._received = received = self._received + data if self._received else data
        end = received.find(b"\r\n\r\n")
        if end < 0 or self._sending is None:
            return
        head = received[:end].lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(received) < end + 4 + length:
            return
        self._received = b""
        self._note(self._sending, int(head[9:12]), received[end + 4 :])

    def _note(self, sending: _Sending, status: int, body: bytes) -> None:
        burst = sending.burst
        burst.latencies_ms.append((perf_counter() - self._sent_at) * 1_000.0)
        if status not in _CREATED_OR_FOUND:
            burst.refused[status] += 1
        elif sending.keep_bodies:
            burst.bodies.append(body)
        self._go_on(sending)

    def _go_on(self, sending: _Sending) -> None:
        self._sent_at = perf_counter()
        message = sending.next_message(self._sent_at)
        if message is None:
            self._sending = None
            sending.end()
        elif self._transport is None:
            self._sending = None
            sending.end(ConnectionResetError("the server closed a connection"))
        else:
            self._transport.write(message)
