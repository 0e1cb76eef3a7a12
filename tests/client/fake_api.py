"""A service that says what it is told: the API's shapes over real HTTP, on a thread of its own."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from aiohttp import web

KEY = "sl_live_test"
PICTURE = b"\x89PNG the bytes of a picture"


@dataclass(slots=True)
class FakeApi:
    """`submits` are the next answers to a submit (a status, a drop, or a late 202), then 202 each time.

    `looks` are the next answers to GET of a task: fields that replace those of a ready one. `uploads` are the next
    statuses of an upload; `uploaded` is what came.
    """

    url: str = ""
    submits: list[Any] = field(default_factory=list)
    looks: list[Any] = field(default_factory=list)
    downloads: list[Any] = field(default_factory=list)
    heard: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    uploads: list[Any] = field(default_factory=list)
    uploaded: list[tuple[str, bytes]] = field(default_factory=list)
    n: int = 1
    retry_after: str | None = None

    def task(self, **changes: Any) -> dict[str, Any]:
        """A task that is ready, but for the changes."""
        return {
            "id": "task-1",
            "status": "ready",
            "model": "lab-callback",
            "operation": "generate",
            "prompt": "a red shoe",
            "n": self.n,
            "progress": {"stage": "done"},
            "assets": [self._asset(number) for number in range(self.n)],
            "failure": None,
            "credits": {"held": 0, "captured": self.n, "released": 0},
            "metadata": {},
            "created_at": "2026-01-01T12:00:00Z",
            "finished_at": "2026-01-01T12:00:09Z",
            **changes,
        }

    def processing(self, stage: str = "drawing", **progress: Any) -> dict[str, Any]:
        """The changes that make a task one under way."""
        return {
            "status": "processing",
            "assets": [],
            "finished_at": None,
            "progress": {"stage": stage, **progress},
            "credits": {"held": self.n, "captured": 0, "released": 0},
        }

    def failed(self) -> dict[str, Any]:
        """The changes that make a task a failed one."""
        failure = {
            "class": "content_blocked",
            "code": "moderated",
            "message": "Change it.",
            "retryable": False,
        }
        return {"status": "failed", "assets": [], "failure": failure}

    def _asset(self, number: int) -> dict[str, Any]:
        return {
            "id": f"asset-{number}",
            "url": f"{self.url}/signed/asset-{number}",
            "thumbnail_url": f"{self.url}/signed/asset-{number}/thumbnail",
            "content_type": "image/png",
            "width": 64,
            "height": 64,
            "bytes": len(PICTURE),
            "sha256": hashlib.sha256(PICTURE).hexdigest(),
        }

    async def submit(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/tasks."""
        self.keys.append(request.headers.get("Idempotency-Key"))
        self.bodies.append(await request.read())
        answer = self.submits.pop(0) if self.submits else 202
        if answer == "drop":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if answer != 202:
            return self.problem(answer)
        receipt = {
            "id": "task-1",
            "status": "processing",
            "credits": {"held": self.n, "captured": 0, "released": 0},
            "created_at": "2026-01-01T12:00:00Z",
        }
        return web.json_response(receipt, status=202)

    async def upload(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/uploads: the same picture has the same id."""
        data = await request.read()
        self.uploaded.append((request.headers["Content-Type"], data))
        answer = self.uploads.pop(0) if self.uploads else 201
        if answer != 201:
            return self.problem(answer, "picture-refused")
        digest = hashlib.sha256(data).hexdigest()
        shown = {
            "id": str(UUID(digest[:32])),
            "content_type": "image/png",
            "width": 64,
            "height": 64,
            "bytes": len(data),
            "sha256": digest,
            "created_at": "2026-01-01T12:00:00Z",
            "expires_at": "2026-01-02T12:00:00Z",
        }
        return web.json_response(shown, status=201)

    async def look(self, request: web.Request) -> web.StreamResponse:
        """GET /v1/tasks/{id}."""
        self.heard.append(("GET", request.path, dict(request.query)))
        if request.match_info["id"] != "task-1":
            return self.problem(404, "not-found")
        answer = self.looks.pop(0) if len(self.looks) > 1 else (self.looks[0] if self.looks else {})
        if answer == "drop":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return self.problem(answer) if isinstance(answer, int) else web.json_response(self.task(**answer))

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/tasks/{id}/cancel."""
        self.heard.append(("POST", request.path, {}))
        answer = self.submits.pop(0) if self.submits else 202
        return self.problem(answer, "not-cancelable") if answer != 202 else web.json_response({}, status=202)

    async def erase(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/tasks/{id}/erase."""
        self.heard.append(("POST", request.path, {}))
        answer = self.submits.pop(0) if self.submits else 200
        if answer != 200:
            return self.problem(answer, "not-erasable")
        self.looks = [{"prompt": "", "assets": []}]
        return web.json_response(self.task(**self.looks[0]))

    async def list_tasks(self, request: web.Request) -> web.StreamResponse:
        """GET /v1/tasks: two pages."""
        self.heard.append(("GET", request.path, dict(request.query)))
        if "cursor" in request.query:
            return web.json_response(
                {"data": [self.task(id="task-2", prompt="\x1b[31m old")], "next_cursor": None}
            )
        return web.json_response({"data": [self.task()], "next_cursor": "more"})

    async def balance(self, request: web.Request) -> web.StreamResponse:
        """GET /v1/balance."""
        return web.json_response({"available": 990, "held": 10})

    async def entries(self, request: web.Request) -> web.StreamResponse:
        """GET /v1/entries."""
        entry = {
            "id": 1,
            "kind": "grant",
            "task_id": None,
            "available_delta": 1000,
            "held_delta": 0,
            "note": "hello",
        }
        entry["created_at"] = "2026-01-01T12:00:00Z"
        return web.json_response({"data": [entry], "next_cursor": None})

    async def asset(self, request: web.Request) -> web.StreamResponse:
        """GET /v1/assets/{id}."""
        answer = self.downloads.pop(0) if self.downloads else PICTURE
        return self.problem(answer) if isinstance(answer, int) else web.Response(body=answer)

    def problem(self, status: int, code: str = "told-so") -> web.Response:
        """A problem document."""
        document = {"status": status, "code": code, "detail": "As it was told.", "request_id": "request-1"}
        headers = {"Retry-After": self.retry_after} if self.retry_after else {}
        return web.json_response(
            document, status=status, headers=headers, content_type="application/problem+json"
        )

    @web.middleware
    async def only_with_key(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """401 without the one key."""
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return self.problem(401, "unauthorized")
        response: web.StreamResponse = await handler(request)
        return response

    def routes(self) -> web.Application:
        """The API's addresses."""
        app = web.Application(middlewares=[self.only_with_key], client_max_size=8 * 1024 * 1024)
        app.router.add_post("/v1/tasks", self.submit)
        app.router.add_post("/v1/uploads", self.upload)
        app.router.add_get("/v1/tasks", self.list_tasks)
        app.router.add_get("/v1/tasks/{id}", self.look)
        app.router.add_post("/v1/tasks/{id}/cancel", self.cancel)
        app.router.add_post("/v1/tasks/{id}/erase", self.erase)
        app.router.add_get("/v1/assets/{id}", self.asset)
        app.router.add_get("/v1/balance", self.balance)
        app.router.add_get("/v1/entries", self.entries)
        return app


@contextmanager
def running_api() -> Iterator[FakeApi]:
    """A fake API that answers inside the context."""
    api = FakeApi()
    loop = asyncio.new_event_loop()

    async def start() -> web.AppRunner:
        runner = web.AppRunner(api.routes(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner

    runner = loop.run_until_complete(start())
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    thread = threading.Thread(target=loop.run_forever, name="fake-api")
    thread.start()
    try:
        yield api
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
