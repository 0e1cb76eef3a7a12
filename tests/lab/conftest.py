"""Fixtures: a lab and a receiver of its callbacks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.lab.upstream import Receiver, Upstream, open_upstream


@pytest.fixture
async def upstream(tmp_path: Path) -> AsyncIterator[Upstream]:
    async with open_upstream(tmp_path) as lab:
        yield lab


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/callbacks", receiver.take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/callbacks"
    yield receiver
    await runner.cleanup()
