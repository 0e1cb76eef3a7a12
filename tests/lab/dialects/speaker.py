"""A speaker: a right client of one upstream, for the tests that go through all dialects."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import aiohttp
from PIL import Image

PROMPT = "a red fox in the snow"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, below the dialect's prefix; a body is `json`, or `data` with its content type."""

    method: str
    path: str
    json: Any = None
    data: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    raw: bytes
    body: Any


class Speaker:
    """What a right client does; subclass it in `speakers/<name>.py` and set `SPEAKER` to one of it."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        """A right submit of one small picture or of n."""
        raise NotImplementedError

    def edit(self, picture_url: str) -> Asked | None:
        """A right submit with a picture that is fetched or, where the upstream takes none by URL, `PICTURE`."""
        return None

    def before_edit(self) -> Asked | None:
        """What comes before `edit`, where pictures are handed over by a call of their own."""
        return None

    def poll(self, accepted: Any) -> Asked | None:
        """How the job is polled, from the answer to its submit; None for an upstream that draws at once."""
        return None

    def listing(self) -> Asked | None:
        """How jobs are listed."""
        return None

    def cancel(self, accepted: Any) -> Asked | None:
        """How the job is canceled."""
        return None

    def is_final(self, polled: Answered) -> bool:
        """Whether a poll's answer says that the job has ended."""
        raise NotImplementedError

    def result(self, accepted: Any) -> Asked | None:
        """How the result is fetched, where a poll does not have it."""
        return None

    def pictures(self, last: Answered) -> list[str | bytes]:
        """Addresses or bytes of the pictures in the last answer: the poll's, the result's or the submit's."""
        raise NotImplementedError

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        """Whether a callback's signature holds, by means that are not the lab's; its first secret is known."""
        raise NotImplementedError


def speaker(name: str) -> Speaker:
    """The speaker of a dialect."""
    found: Speaker = import_module(f"tests.lab.dialects.speakers.{name.replace('-', '_')}").SPEAKER
    return found


class Visitor:
    """Talks to one dialect of a running lab."""

    def __init__(self, base: str, name: str, session: aiohttp.ClientSession) -> None:
        self.base = base
        self.name = name
        self.speaker = speaker(name)
        self.session = session

    async def ask(self, asked: Asked | None) -> Answered:
        """Send it."""
        assert asked is not None
        url = asked.path if asked.path.startswith("http") else f"{self.base}/{self.name}{asked.path}"
        async with self.session.request(
            asked.method, url, json=asked.json, data=asked.data, headers=asked.headers, allow_redirects=False
        ) as answer:
            raw = await answer.read()
            body = await answer.json() if answer.content_type == "application/json" and raw else None
            return Answered(answer.status, answer.headers, raw, body)

    async def submit(self, **wish: Any) -> Answered:
        """Submit; the answer, whatever it is."""
        return await self.ask(self.speaker.submit(**wish))

    async def finished(self, submitted: Answered) -> Answered:
        """The last answer about a job: polled until it is final, and its result fetched if it has one."""
        poll = self.speaker.poll(submitted.body)
        if poll is None:
            return submitted
        async with asyncio.timeout(60):
            while not self.speaker.is_final(answered := await self.ask(poll)):  # noqa: ASYNC110 - seen from outside only
                await asyncio.sleep(0.02)
        result = self.speaker.result(submitted.body)
        return answered if result is None else await self.ask(result)

    async def turn(self, **knobs: Any) -> None:
        """Turn the lab's knobs, all others back to the start."""
        async with self.session.post(f"{self.base}/lab/knobs", json={"reset": True, **knobs}) as answer:
            assert answer.status == 200, await answer.text()

    async def read(self, path: str) -> Any:
        """One of the lab's own pages."""
        async with self.session.get(f"{self.base}{path}") as answer:
            return await answer.json()

    async def accepted(self) -> int:
        """How many jobs the lab has accepted."""
        return int((await self.read("/lab/ledger"))["accepted"])

    async def item(self, *, is_told: bool = False) -> Any:
        """The witness of the last job, once it has ended or, if asked for, its callbacks have been sent."""
        async with asyncio.timeout(60):
            while True:
                items = (await self.read("/lab/ledger"))["items"]
                if items and items[-1]["outcome"] != "open" and items[-1]["is_told"] >= is_told:
                    return items[-1]
                await asyncio.sleep(0.02)


@cache
def picture(mode: str = "RGB", form: str = "PNG") -> bytes:
    """A small real picture."""
    file = io.BytesIO()
    Image.new(mode, (320, 320), "navy" if mode == "RGB" else 0).save(file, form)
    return file.getvalue()


def data_url(raw: bytes, form: str = "png") -> str:
    """A picture as a data URL."""
    return f"data:image/{form};base64,{base64.b64encode(raw).decode()}"
