"""The wire: a lean HTTP/1.1 POST over kept connections, several times cheaper than a general client."""

import asyncio
from typing import cast
from urllib.parse import SplitResult, urlsplit

CONNECTIONS = 200
TRY_TIMEOUT_S = 10.0
_ANSWER_MOST = 1 << 20


class Wire:
    """Posts to any http(s) URL over at most 200 connections and tells the status; follows nothing."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._idle: dict[tuple[str, str], list[_Connection]] = {}

    async def post(self, url: str, body: bytes, headers: dict[str, str]) -> int:
        """The status of the answer; OSError (time-outs included) or ValueError if there is none."""
        parts = urlsplit(url)
        head = _head(parts, len(body), headers)
        async with self._slots, asyncio.timeout(TRY_TIMEOUT_S):
            idle = self._idle.setdefault((parts.scheme, parts.netloc), [])
            while idle:
                kept = idle.pop()
                if not kept.is_closed:
                    try:
                        return await self._ask(kept, head + body, idle)
                    except ConnectionError:
                        # The other side may close a kept connection just as we use it.
                        break
            return await self._ask(await _connect(parts), head + body, idle)

    def close(self) -> None:
        """Close the kept connections."""
        for idle in self._idle.values():
            for connection in idle:
                connection.close()

    async def _ask(self, connection: "_Connection", message: bytes, idle: list["_Connection"]) -> int:
        try:
            status = await connection.ask(message)
        except BaseException:
            connection.close()
            raise
        if connection.is_reusable:
            idle.append(connection)
        else:
            connection.close()
        return status


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.is_closed = False
        self.is_reusable = False
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._answer: asyncio.Future[int] | None = None

    async def ask(self, message: bytes) -> int:
        if self.is_closed or self._transport is None:
            raise ConnectionResetError("the connection is closed")
        self._received = b""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(message)
        return await self._answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("closed before the answer"))

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.close()
            return
        self._received += data
        try:
            status = self._read_answer()
        except ValueError as error:
            self._answer.set_exception(error)
            return
        if status is not None:
            self._answer.set_result(status)

    def _read_answer(self) -> int | None:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            if len(self._received) > _ANSWER_MOST:
                raise ValueError("endless answer head")
            return None
        lines = self._received[:end].lower().split(b"\r\n")
        if not lines[0].startswith(b"http/1."):
            raise ValueError("not an HTTP answer")
        status = int(lines[0].split(b" ", 2)[1])
        length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), None)
        # A body without a length, or too much of it, is not worth reading: the status is all that counts.
        self.is_reusable = length is not None and length <= _ANSWER_MOST and b"connection: close" not in lines
        if self.is_reusable and len(self._received) < end + 4 + (length or 0):
            return None
        return status


def _head(parts: SplitResult, length: int, headers: dict[str, str]) -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    lines = [f"POST {target} HTTP/1.1", f"Host: {host}", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _connect(parts: SplitResult) -> _Connection:
    is_tls = parts.scheme == "https"
    _, connection = await asyncio.get_running_loop().create_connection(
        _Connection, parts.hostname or "", parts.port or (443 if is_tls else 80), ssl=is_tls or None
    )
    return connection
