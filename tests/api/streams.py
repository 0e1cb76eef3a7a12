"""Reads a stream of live events as a client does."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.api.door import Caller, Door


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; a comment has neither name nor number."""

    name: str
    number: int
    document: Any

    @property
    def stage(self) -> str:
        stage: str = self.document["progress"]["stage"]
        return stage


@dataclass
class Stream:
    """An open stream."""

    answer: aiohttp.ClientResponse
    comments: int = 0

    async def next(self, within_s: float = 60.0) -> Frame:
        """The next frame that is no comment."""
        async with asyncio.timeout(within_s):
            frame = await self._read()
        assert frame is not None, "the stream has ended"
        return frame

    async def take(self, count: int) -> list[Frame]:
        return [await self.next() for _ in range(count)]

    async def rest(self, within_s: float = 60.0) -> list[Frame]:
        """Everything up to the end of the stream."""
        found = []
        async with asyncio.timeout(within_s):
            while (frame := await self._read()) is not None:
                found.append(frame)
        return found

    async def until_comment(self, within_s: float = 60.0) -> None:
        """Read until a sign of life comes."""
        async with asyncio.timeout(within_s):
            while await self.answer.content.readline() != b": \n":
                pass

    async def _read(self) -> Frame | None:
        fields: dict[str, str] = {}
        while line := (await self.answer.content.readline()).decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if line == "\n" and "event" in fields:
                return Frame(fields["event"], int(fields["id"]), json.loads(fields["data"]))
            if line == "\n":
                fields = {}
            else:
                fields[name] = value
        return None


@contextlib.asynccontextmanager
async def streaming(
    door: Door, path: str, *, by: Caller | None = None, key: bool = True, **headers: str
) -> AsyncIterator[Stream]:
    """An open stream; `key=False` shows no API key; a header's underscores become hyphens."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key:
        sent |= (by or door.caller).headers
    async with door.session.get(door.url + path, headers=sent) as answer:
        assert answer.status == 200, await answer.text()
        yield Stream(answer)
