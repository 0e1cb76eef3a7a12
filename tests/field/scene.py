"""One small installation as its customers and providers meet it: the doors over HTTP, every verb at hand."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from safelight.db import accounts
from safelight.domain.provider import Capabilities, Provider, Trust
from safelight.providers.verifiers import Verifier
from safelight.service import Graph
from safelight.upstreams import read_upstreams
from tests.api.door import PEPPER, Answer, Caller, Door, running_door
from tests.lifecycle.invariants import assert_books
from tests.lifecycle.upstreams import Headers, Scripted, record_of, run_task, token_of
from tests.world import SECRET, Server, World, running_world

NAME = "lab-callback"
NOBODY_LISTENS = "http://127.0.0.1:9"
CALLS_BACK = Capabilities(calls_back=True, trust=Trust.BODY)
Callback = tuple[Headers, bytes]
Line = dict[str, Any]


@dataclass
class Sealed(Scripted):
    """A provider whose callbacks are proved by a real verifier."""

    verifier: Verifier | None = None

    async def verify_callback(self, headers: Any, raw: bytes) -> None:
        assert self.verifier is not None
        await self.verifier.verify(headers, raw)


@dataclass
class Scene:
    """A world and its door; the door's caller owns the world's tasks."""

    world: World
    door: Door

    async def called_back(
        self, task_id: UUID | None, callback: Callback, *, attempt: int = 1, provider: str = NAME
    ) -> int:
        """Have a callback arrive over HTTP; returns the status of the answer. Without a task: without a token."""
        headers, raw = callback
        token = f"/{token_of(self.world, task_id, attempt)}" if task_id else ""
        sent = [(name.decode(), value.decode("latin-1")) for name, value in headers]
        answer = await self.door.ask("POST", f"/callbacks/{provider}{token}", data=raw, headers=sent)
        assert (answer.body == b"") == (answer.status == 202), "an accepted callback is told nothing"
        return answer.status

    async def callback_lines(self, task_id: UUID, lines: list[bytes], raw: bytes, *, name: str = NAME) -> int:
        """The same with header lines exactly as given."""
        token = token_of(self.world, task_id)
        head = [
            f"POST /callbacks/{name}/{token} HTTP/1.1".encode(),
            b"Host: x",
            b"Connection: close",
            b"Content-Length: %d" % len(raw),
            *lines,
        ]
        answer = await self.door.raw(b"\r\n".join(head) + b"\r\n\r\n" + raw)
        return int(answer.split(b" ", 2)[1])

    async def view(self, task_id: UUID) -> dict[str, Any]:
        """The task as its customer sees it."""
        answer = await self.get(f"/v1/tasks/{task_id}")
        found: dict[str, Any] = answer.json
        return found

    async def get(self, path: str) -> Answer:
        """Ask as the customer; it must be there."""
        answer = await self.door.request("GET", path)
        assert answer.status == 200, answer.body
        return answer

    async def ending(self, task_id: UUID) -> tuple[str, int | None, int | None]:
        """(state, captured, released) of a task; no amounts while it is open."""
        (row,) = await self.world.rows(
            "SELECT state, captured, released FROM tasks LEFT JOIN settlements ON task_id = id WHERE id = $1",
            task_id,
        )
        return row["state"], row["captured"], row["released"]

    async def settled(self, task_id: UUID) -> int:
        """How many settlement entries a task has."""
        count: int = await self.world.value(
            "SELECT count(*) FROM entries WHERE task_id = $1 AND kind = 'settle'", task_id
        )
        return count

    async def findings(self) -> list[str]:
        """The kinds of the differences that were kept."""
        return [row["kind"] for row in await self.world.rows("SELECT kind FROM findings ORDER BY id")]

    async def drawn(self, model: str = NAME, **wish: Any) -> tuple[UUID, dict[str, Any]]:
        """A running task whose picture the lab has drawn, and the record that its callback carries."""
        before = len((await self.world.lab_ledger())["items"])
        task_id = await run_task(self.world, model, **wish)
        await self.world.until_drawn(before + 1)
        provider_ref = (await self.world.attempt(task_id)).provider_ref
        assert provider_ref is not None
        return task_id, await record_of(self.world, provider_ref)

    @contextlib.asynccontextmanager
    async def another_process(self, *providers: Provider) -> AsyncIterator[Graph]:
        """A second object graph on the same database and storage: what is left after the first one died."""
        settings = self.world.graph.settings
        graph = Graph(
            settings, self.world.database, SECRET, self.world.session, upstreams=read_upstreams(settings)
        )
        for provider in providers:
            cast("dict[str, Provider]", graph.context.providers)[provider.name] = provider
        try:
            yield graph
        finally:
            await graph.aclose()


@contextlib.asynccontextmanager
async def running_scene(server: Server, **settings: Any) -> AsyncIterator[Scene]:
    """A world whose lab calls nobody back by itself; its books must be in order at the end."""
    values = {"public_url": NOBODY_LISTENS, **settings}
    async with running_world(server, knobs={"callback_loss": 1}, **values) as world:
        parts = dataclasses.replace(world.graph.api_parts(""), pepper=PEPPER)
        async with running_door(parts) as door:
            async with world.database.transaction() as connection:
                key = await accounts.create_key(connection, world.account_id, "", PEPPER)
            door.caller = Caller(world.account_id, key)
            yield Scene(world, door)
            await assert_books(world)


def said(logs: list[Line], event: str) -> list[Line]:
    """The log lines of one event."""
    return [line for line in logs if line["event"] == event]


def assert_calm(logs: list[Line]) -> None:
    """Nothing was logged that nobody foresaw, and no line carries a traceback."""
    for line in logs:
        assert line["event"] not in ("request_failed", "look_broke", "work_broke", "loop_step_failed"), line
        assert "exc_info" not in line, line
