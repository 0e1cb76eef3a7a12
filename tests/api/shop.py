"""A whole service as OpenAI's own client meets it: door, worker and lab, all over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import aiohttp
import openai
from fastapi import FastAPI

from safelight.api.app import create_app
from safelight.api.parts import ApiParts
from safelight.api.server import listening, running_api, url_of
from safelight.api.waiting import Waiting
from safelight.domain.catalog import Catalog
from safelight.settings import Settings
from tests.api.door import PEPPER, Caller, Door
from tests.places import new_data_dir
from tests.world import Server, World, running_world

ResultT = TypeVar("ResultT")
SHOE = "a red shoe on white"


@dataclass
class Shop:
    """A running service whose worker is started where a test needs pictures."""

    door: Door
    world: World
    app: FastAPI

    @property
    def base_url(self) -> str:
        return f"{self.door.url}/v1"

    @property
    def waiting(self) -> Waiting:
        found: Waiting = self.app.state.waiting
        return found

    @property
    def held(self) -> int:
        """How many requests are held right now."""
        return len(self.waiting._watched)

    def client(self, **options: Any) -> openai.AsyncOpenAI:
        """The asynchronous client, unchanged but for its address and key; it repeats nothing unless told to."""
        values = {"base_url": self.base_url, "api_key": self.door.caller.key, "max_retries": 0, **options}
        return openai.AsyncOpenAI(**values)

    async def in_thread(self, call: Callable[[openai.OpenAI], ResultT], **options: Any) -> ResultT:
        """What the synchronous client makes of a call."""
        values = {"base_url": self.base_url, "api_key": self.door.caller.key, "max_retries": 0, **options}

        def ask() -> ResultT:
            with openai.OpenAI(**values) as client:
                return call(client)

        return await asyncio.to_thread(ask)

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """A worker runs inside the context."""
        worker = self.world.graph.worker()
        await worker.start()
        try:
            yield
        finally:
            await worker.stop()

    async def until(self, condition: Callable[[], Any], timeout_s: float = 60.0) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(timeout_s):
            while not condition():  # noqa: ASYNC110 - what is looked at sends no event
                await asyncio.sleep(0.02)

    async def tasks(self) -> list[UUID]:
        """Every task of the calling account."""
        rows = await self.world.rows(
            "SELECT id FROM tasks WHERE account_id = $1 ORDER BY id", self.door.caller.account_id
        )
        return [row["id"] for row in rows]


def _with_masks(catalog: Catalog) -> Catalog:
    """The same models, taking masks: the lab looks at no mask, but keeps what it was given."""
    return Catalog(dataclasses.replace(model, takes_mask=True) for model in catalog.models.values())


@contextlib.asynccontextmanager
async def running_shop(server: Server, **settings: Any) -> AsyncIterator[Shop]:
    """A service with a lab; callbacks find it."""
    data_dir = new_data_dir()
    place = Settings(data_dir=data_dir, port=0)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, data_dir, ignore_errors=True)
        listener = await stack.enter_async_context(listening(place))
        url = url_of(place, listener)
        quick = {"poll_interval_s": 0.05, "sweep_interval_s": 0.2, **settings}
        world = await stack.enter_async_context(running_world(server, public_url=url, **quick))
        parts: ApiParts = world.graph.api_parts("")
        parts = dataclasses.replace(parts, pepper=PEPPER, catalog=_with_masks(parts.catalog))
        app = create_app(parts)
        await stack.enter_async_context(running_api(app, parts.settings, listener))
        connector = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        door = Door(url, parts, session, Caller(UUID(int=0), ""))
        door.caller = await door.new_caller()
        yield Shop(door, world, app)


def small(**given: Any) -> dict[str, Any]:
    """The fields of a small picture."""
    return {"prompt": SHOE, "size": "64x64", **given}
