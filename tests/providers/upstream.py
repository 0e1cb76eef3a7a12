"""A scripted upstream on 127.0.0.1: it answers what a test tells it and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from safelight.domain.provider import AttemptRef, Submission
from safelight.providers import DeclaredProvider, packaged_declaration

CREDENTIALS = {"api_key": SecretStr("canary-key-71f3"), "callback_secret": SecretStr("canary-secret-9b2e")}
TOKEN = "canarytoken5d5d"
CALLBACK_URL = f"https://shop.example/callbacks/lab-callback/{TOKEN}"


@dataclass
class Asked:
    """One call as the upstream received it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass
class Scripted:
    """An answer to give."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class Upstream:
    """Gives the scripted answers in order, the last one again and again."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.base_url = ""
        self._answers: list[Scripted] = []

    def answers(
        self, status: int, body: Mapping[str, Any] | bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Script the next answer; a mapping is sent as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._answers.append(Scripted(status, raw, dict(headers or {})))

    async def handle(self, request: web.Request) -> web.Response:
        """Keep the call and give the next answer."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        raw = await request.read()
        self.asked.append(Asked(request.method, request.path, dict(request.query), headers, raw))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)


@asynccontextmanager
async def running_upstream() -> AsyncIterator[Upstream]:
    """A scripted upstream that listens inside the context."""
    upstream = Upstream()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", upstream.handle)
    async with TestServer(app, host="127.0.0.1") as server:
        upstream.base_url = f"http://127.0.0.1:{server.port}"
        yield upstream


@asynccontextmanager
async def raw_upstream(reply: Callable[[asyncio.StreamWriter], None] | None) -> AsyncIterator[str]:
    """A socket that reads a call's head and then does what `reply` says; None keeps silent."""
    released = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if reply is None:
            await released.wait()
        else:
            reply(writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        released.set()
        server.close()
        await server.wait_closed()


def provider_of(name: str, session: aiohttp.ClientSession, base_url: str, **changes: Any) -> DeclaredProvider:
    """A packaged provider that speaks to the test's upstream; `changes` go into its submit table."""
    declaration = packaged_declaration(name)
    if changes:
        submit = declaration.submit.model_copy(update=changes)
        declaration = declaration.model_copy(update={"submit": submit})
    return DeclaredProvider(declaration, credentials=CREDENTIALS, session=session, base_url=base_url)


def submission(**changes: Any) -> Submission:
    """A submission with nothing that may be left out."""
    values: dict[str, Any] = {
        "reference": "t1-1",
        "upstream_model": "lab-poll",
        "operation": "generate",
        "prompt": "a fox",
        "n": 1,
        "size": None,
        "aspect_ratio": None,
        "images": (),
        "options": {},
        "callback_url": None,
    }
    return Submission(**{**values, **changes})


ATTEMPT = AttemptRef(reference="t1-1", provider_ref="j1", upstream_model="lab-poll", operation="generate")


def error(code: str, message: str = "the upstream's words") -> dict[str, Any]:
    """The lab's error body."""
    return {"error": {"code": code, "message": message}}


def record(**changes: Any) -> dict[str, Any]:
    """The lab's record of a running job."""
    values: dict[str, Any] = {
        "id": "j1",
        "reference": "t1-1",
        "status": "running",
        "progress": 40,
        "position": None,
        "images": [],
        "error": None,
        "cost": None,
        "run_s": None,
        "created_at": 1_795_000_000.25,
        "finished_at": None,
    }
    return {**values, **changes}
