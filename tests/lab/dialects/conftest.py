"""Fixtures: a lab with a visitor for each dialect, a receiver of raw callbacks, a host of pictures."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from safelight.lab.dialects import dialect_names, load_dialect
from tests.lab.dialects.speaker import Visitor, picture
from tests.lab.upstream import open_upstream

ONLY = os.environ.get("DIALECTS", "")
"""Names with commas between, while one is being written: the others are left alone."""

DIALECTS = {name: load_dialect(name) for name in (ONLY.split(",") if ONLY else dialect_names())}


@dataclass(slots=True)
class Caller:
    """The caller's side: takes callbacks as they come, and serves a picture to be sent along."""

    url: str = ""
    taken: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def callback_url(self) -> str:
        """Where callbacks go."""
        return f"{self.url}/callbacks/token-1"

    @property
    def picture_url(self) -> str:
        """Where a real picture lies."""
        return f"{self.url}/picture.png"

    async def take(self, request: web.Request) -> web.Response:
        """POST a callback."""
        self.taken.append((dict(request.headers), await request.read()))
        return web.Response(status=200)

    async def show(self, request: web.Request) -> web.Response:
        """GET the picture."""
        return web.Response(body=picture(), content_type="image/png")

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, at most ten seconds."""
        async with asyncio.timeout(60):
            while not holds():  # noqa: ASYNC110 - conditions of any kind
                await asyncio.sleep(0.01)


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    caller = Caller()
    app = web.Application()
    app.router.add_post("/callbacks/{token}", caller.take)
    app.router.add_get("/picture.png", caller.show)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    caller.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield caller
    await runner.cleanup()


@pytest.fixture(params=list(DIALECTS))
async def name(request: pytest.FixtureRequest) -> str:
    """Each dialect in turn."""
    return str(request.param)


@pytest.fixture
async def visitor(tmp_path: Path, name: str) -> AsyncIterator[Visitor]:
    """A right client of the dialect called `name`, at a lab that draws small pictures at once."""
    async with (
        open_upstream(tmp_path, {"small_pictures": True}) as lab,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(15)) as session,
    ):
        yield Visitor(lab.base, name, session)
