"""A receiver on this machine: it takes callbacks as they come, and serves the pictures that edits are made of."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache

from aiohttp import web
from PIL import Image

WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Received:
    """One callback: its path, its headers and its body, byte for byte."""

    path: str
    headers: tuple[tuple[bytes, bytes], ...]
    raw: bytes


@dataclass
class Mailbox:
    """What has come in, and where to send it."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    _arrival: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, request: web.Request) -> web.Response:
        """Keep a callback and say yes."""
        self.received.append(Received(request.path_qs, request.raw_headers, await request.read()))
        self._arrival.set()
        return web.Response(text="ok")

    async def serve(self, request: web.Request) -> web.Response:
        """One of the pictures."""
        name = request.match_info["name"]
        return web.Response(body=picture(name), content_type="image/png")

    async def wait_for(self, path: str, count: int) -> list[Received]:
        """The callbacks to one path once there are so many, or what has come until the time is up."""
        try:
            async with asyncio.timeout(WAIT_S):
                while len(self.at(path)) < count:
                    self._arrival.clear()
                    await self._arrival.wait()
        except TimeoutError:
            pass
        return self.at(path)

    def at(self, path: str) -> list[Received]:
        """The callbacks to one path so far, in their order."""
        return [one for one in self.received if one.path.partition("?")[0] == path]


@asynccontextmanager
async def open_mailbox() -> AsyncIterator[Mailbox]:
    """A mailbox that listens inside the context."""
    mailbox = Mailbox()
    app = web.Application(client_max_size=1 << 22)
    app.router.add_post("/{path:.*}", mailbox.take)
    app.router.add_get("/pictures/{name}.png", mailbox.serve)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        mailbox.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield mailbox
    finally:
        await runner.cleanup()


@cache
def picture(name: str) -> bytes:
    """A small picture of its own for each name; `white`, `black` and `clear` are masks of it."""
    size = (512, 384)
    match name:
        case "white" | "black":
            image = Image.new("L", size, 0 if name == "white" else 255)
            image.paste(255 if name == "white" else 0, (128, 128, 384, 384))
        case "clear":
            image = Image.new("RGBA", size, (40, 60, 80, 255))
            image.paste((0, 0, 0, 0), (128, 128, 384, 384))
        case _:
            shade = sum(name.encode()) % 200
            image = Image.new("RGB", size, (shade, 90, 200 - shade))
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
