"""The HTTP door on a real server and a real database, with what a test needs to knock at it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import aiohttp
import uvicorn

from safelight.api.app import create_app
from safelight.api.parts import ApiParts
from safelight.api.wire import BoundedProtocol
from safelight.db import accounts, ledger
from safelight.db.database import Database
from safelight.domain.ids import new_id
from safelight.errors import CallbackRejected

PEPPER = b"the pepper of the tests, 32 bytes"
ADMIN_PEPPER = b"the pepper of operators' keys..."


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        assert self.headers["Content-Type"] == "application/problem+json"
        code: str = self.json["code"]
        return code


@dataclass
class FakeReceive:
    """Stands where callbacks are verified; keeps what it was given, raises what it is told."""

    rejection: CallbackRejected | Exception | None = None
    given: list[tuple[str, str | None, list[tuple[bytes, bytes]], bytes]] = field(default_factory=list)

    async def receive(
        self, provider: str, token: str | None, headers: Sequence[tuple[bytes, bytes]], raw: bytes
    ) -> None:
        self.given.append((provider, token, list(headers), raw))
        if self.rejection is not None:
            raise self.rejection


@dataclass
class Caller:
    """An account with a key."""

    account_id: UUID
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


@dataclass
class Door:
    """A running door. `caller` is an account with 1,000 credits that is this test's own."""

    url: str
    parts: ApiParts
    session: aiohttp.ClientSession
    caller: Caller
    stop: Callable[[], None] = lambda: None
    """What a process about to stop does first."""

    @property
    def database(self) -> Database:
        return self.parts.database

    async def request(self, method: str, path: str, *, by: Caller | None = None, **options: Any) -> Answer:
        """Ask, as `caller` unless `by` says otherwise or `headers` bring their own Authorization."""
        headers = dict(options.pop("headers", {}))
        if "Authorization" not in headers:
            headers |= (by or self.caller).headers
        return await self.ask(method, path, headers=headers, **options)

    async def ask(self, method: str, path: str, **options: Any) -> Answer:
        """Ask without a key."""
        if isinstance(options.get("data"), bytes):
            options["data"] = io.BytesIO(options["data"])
        url = path if path.startswith("http") else self.url + path
        async with self.session.request(method, url, allow_redirects=False, **options) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def submit(
        self,
        body: Any,
        *,
        key: str | None = None,
        by: Caller | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Submit; `body` is JSON to be or raw bytes, the key is a fresh one unless given."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", "Idempotency-Key": key or str(new_id())}
        return await self.request("POST", "/v1/tasks", data=raw, headers={**sent, **(headers or {})}, by=by)

    async def upload(self, data: bytes, *, by: Caller | None = None, **headers: str) -> Answer:
        """Upload a picture as the body itself; a header's underscores become hyphens."""
        sent = {"Content-Type": "image/png"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return await self.request("POST", "/v1/uploads", data=data, headers=sent, by=by)

    async def new_caller(self, granted: int = 1_000) -> Caller:
        """Another account."""
        async with self.database.transaction() as connection:
            account_id = await accounts.create_account(connection, f"account {new_id()}")
            if granted:
                await ledger.grant(connection, account_id, granted)
            key = await accounts.create_key(connection, account_id, "", self.parts.pepper)
        return Caller(account_id, key)

    async def rows(self) -> tuple[int, ...]:
        """How many rows a submit could have left behind, of every account."""
        tables = ("tasks", "receipts", "entries", "task_events", "uploads")
        sql = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
        async with self.database.connection() as connection:
            return tuple(await connection.fetchrow(sql) or ())

    async def raw(self, request: bytes) -> bytes:
        """Send bytes as they are and read until the server has answered or closed."""
        host, port = self.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        await writer.drain()
        try:
            return await asyncio.wait_for(reader.read(65_536), 5)
        finally:
            writer.close()

    async def break_off(self, request: bytes) -> None:
        """Send the beginning of a request and hang up."""
        host, port = self.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def running_door(parts: ApiParts) -> AsyncIterator[Door]:
    """The application of these parts on a free port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    app = create_app(parts)
    server = _Server(
        uvicorn.Config(app, http=BoundedProtocol, log_level="error", access_log=False, lifespan="off")
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await server.is_up.wait()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
        door = Door(url, parts, session, Caller(UUID(int=0), ""), app.state.live.let_go)
        door.caller = await door.new_caller()
        yield door
    app.state.live.let_go()
    server.should_exit = True
    await serving
    listener.close()


class _Server(uvicorn.Server):
    """Without signal handlers, of which the test runner has its own, and with a word when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
