"""A customer's receiver of webhooks: keeps what it was told, and answers as a test says."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import Any, Self
from unittest import mock
from uuid import UUID

from aiohttp import web
from standardwebhooks.webhooks import Webhook

from safelight.domain.webhook import Outcome
from safelight.lifecycle.endpoints import Secret
from tests.world import Server, World, running_world


@dataclass(frozen=True)
class Told:
    """One call as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    def verified(self, secret: str, *, later_s: float = 0) -> Any:
        """What the official library makes of it; `later_s` is by how much a test has moved the database's clock."""

        class Later(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Self:
                return super().now(tz) + timedelta(seconds=later_s)

        with mock.patch("standardwebhooks.webhooks.datetime", Later):
            return Webhook(secret).verify(self.body, self.headers)


@dataclass(frozen=True)
class Reply:
    """An answer; a status of 0 hangs up, -1 never answers, and one that `drips` never ends."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    drips: bool = False


@dataclass
class Receiver:
    """`replies` are given in turn on a path, then `usual` for ever."""

    origin: str = ""
    usual: Reply = Reply()
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    on_call: Callable[[Told], Any] | None = None
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str = "/hooks") -> str:
        return self.origin + path

    def on(self, path: str) -> list[Told]:
        return [told for told in self.told if told.path == path]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        told = Told(request.method, request.path, headers, await request.read())
        self.told.append(told)
        if self.on_call is not None:
            await self.on_call(told)
        scripted = self.replies.get(request.path)
        reply = scripted.pop(0) if scripted else self.usual
        if reply.status <= 0:
            if reply.status < 0:
                await self.closing.wait()
            assert request.transport is not None
            request.transport.abort()
        if reply.drips:
            answer = web.StreamResponse(status=reply.status)
            await answer.prepare(request)
            await answer.write(reply.body)
            await self.closing.wait()
            return answer
        return web.Response(status=max(reply.status, 200), body=reply.body, headers=reply.headers)


@contextlib.asynccontextmanager
async def running_receiver(**values: Any) -> AsyncIterator[Receiver]:
    """A receiver on a free port."""
    made = Receiver(**values)
    app = web.Application(client_max_size=1_000_000)
    app.router.add_route("*", "/{rest:.*}", made.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=2_048).start()
        made.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        made.closing.set()
        await runner.cleanup()


@dataclass
class Mailroom:
    """A world, and a receiver that the operator allows."""

    world: World
    receiver: Receiver

    async def register(
        self, path: str = "/hooks", *, account_id: UUID | None = None, **values: Any
    ) -> Secret:
        return await self.world.graph.endpoints.register(
            account_id or self.world.account_id, url=self.receiver.url(path), **values
        )

    async def finish_task(self, **wish: Any) -> UUID:
        """A task from its submit to its end."""
        task_id = await self.world.submit("lab-sync", **wish)
        await self.world.dispatch("lab-sync")
        await self.world.archive_all()
        assert await self.world.state(task_id) == "succeeded"
        return task_id

    async def cancel_task(self) -> UUID:
        """A task that its customer cancels at once: the quickest end."""
        task_id = await self.world.submit()
        await self.world.cancel.cancel(self.world.account_id, task_id)
        return task_id

    async def deliver(self, room: int = 100) -> list[Outcome]:
        """Make every try that is due, both to endpoints that failed last and to others."""
        outcomes: list[Outcome] = []
        for is_failing in (False, True):
            letters, _ = await self.world.graph.notify.claim(room, is_failing=is_failing)
            outcomes += await asyncio.gather(
                *(self.world.graph.notify.deliver(letter, is_failing=is_failing) for letter in letters)
            )
        return outcomes

    async def deliveries(self) -> list[tuple[str, str, int]]:
        """(status, reason, tries) of every delivery, oldest first."""
        rows = await self.world.rows("SELECT status, reason, tries FROM deliveries ORDER BY id")
        return [(row["status"], row["reason"], row["tries"]) for row in rows]

    async def endpoint(self, endpoint_id: UUID) -> dict[str, Any]:
        (row,) = await self.world.rows(
            "SELECT *, wake_at = 'infinity' AS sleeps FROM webhook_endpoints WHERE id = $1", endpoint_id
        )
        return dict(row)


@contextlib.asynccontextmanager
async def running_mailroom(server: Server, **settings: Any) -> AsyncIterator[Mailroom]:
    """A world whose customers may be told at one receiver of this machine."""
    async with (
        running_receiver() as receiver,
        running_world(server, allowed_origins=(receiver.origin,), **settings) as world,
    ):
        yield Mailroom(world, receiver)
