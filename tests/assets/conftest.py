"""Strangers for the asset tests: servers that answer what they are told, and connects that are watched."""

from __future__ import annotations

import asyncio
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Stranger:
    """A raw HTTP server: `answers` by request target, what it `heard`, and how often it was connected."""

    answers: dict[str, bytes | Answer] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.heard.append(head)
            self.targets.append(head.split(" ")[1])
            answer = self.answers.get(
                self.targets[-1], b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
            )
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def words(text: str) -> list[str]:
    """A long list that stays readable; split at single spaces, because other white space may be meant."""
    return text.split(" ")


def reply(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer with its true length, unless `headers` say otherwise; underscores become hyphens."""
    fields = {"Content-Length": str(len(body)), "Connection": "close"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1") + body


@pytest.fixture(name="reply")
def _reply() -> Callable[..., bytes]:
    return reply


@pytest.fixture
async def stranger() -> AsyncIterator[Stranger]:
    """One server on a free port of 127.0.0.1."""
    async for one in _start():
        yield one


@pytest.fixture
async def canary() -> AsyncIterator[Stranger]:
    """A second server, which nobody may ever reach."""
    async for one in _start():
        yield one


async def _start() -> AsyncIterator[Stranger]:
    one = Stranger()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    yield one
    server.close()
    await server.wait_closed()


@dataclass
class Connects:
    """Every address that anything tried to connect to; only `reachable` ports really are."""

    tried: list[Any] = field(default_factory=list)
    reachable: set[int] = field(default_factory=set)


@pytest.fixture
def connects(monkeypatch: pytest.MonkeyPatch) -> Connects:
    """Watch all connects of the loop and keep those to strangers from leaving the machine."""
    seen = Connects()
    original = BaseSelectorEventLoop.sock_connect

    async def watched(loop: BaseSelectorEventLoop, sock: Any, address: Any) -> None:
        is_file = isinstance(address, str)  # a socket of this machine: the database
        if not is_file:
            seen.tried.append(address)
        if not is_file and address[1] not in seen.reachable:
            raise ConnectionRefusedError(111, "refused by the test")
        await original(loop, sock, address)

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_connect", watched)
    return seen
