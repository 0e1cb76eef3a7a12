"""A running lab and a receiver of callbacks, for the tests in this folder."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from safelight.lab import Knobs, running_lab

AUTH = {"Authorization": "Bearer lab-key"}
QUICK = {"latency_s": [0, 0]}


class Upstream:
    """Talks to one lab over real HTTP."""

    def __init__(self, base: str, session: aiohttp.ClientSession) -> None:
        self.base = base
        self.session = session

    async def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and JSON of one call with the key."""
        async with self.session.request(
            method, self.base + path, json=body, headers=AUTH | (headers or {})
        ) as answer:
            return answer.status, await answer.json()

    async def submit(self, shape: str = "poll", **fields: Any) -> tuple[int, Any]:
        """Submit a small picture of that shape."""
        headers = fields.pop("headers", None)
        body = {"prompt": "a cat at night", "n": 1, "size": "64x64", "reference": "ref-1"} | fields
        path = "/sync/v1/images" if shape == "sync" else f"/{shape}/v1/jobs"
        return await self.call("POST", path, body, headers)

    async def finished(self, job_id: str, shape: str = "poll") -> Any:
        """Poll until the job is final."""
        while True:
            _, record = await self.call("GET", f"/{shape}/v1/jobs/{job_id}")
            if record["finished_at"] is not None:
                return record
            await asyncio.sleep(0.01)

    async def ledger(self) -> Any:
        """The witness."""
        return (await self.call("GET", "/lab/ledger"))[1]


class Receiver:
    """Takes callbacks and remembers them in order, with how their signature fared."""

    def __init__(self) -> None:
        self.url = ""
        self.statuses_to_answer: list[int] = []
        self.notices: list[tuple[str, dict[str, Any]]] = []

    async def take(self, request: web.Request) -> web.Response:
        """POST /callbacks"""
        raw = await request.read()
        genuine = hmac.new(b"lab-secret", raw, hashlib.sha256).hexdigest()
        given = request.headers.get("X-Signature")
        verdict = "none" if given is None else "genuine" if given == genuine else "forged"
        self.notices.append((verdict, json.loads(raw)))
        return web.Response(status=self.statuses_to_answer.pop(0) if self.statuses_to_answer else 204)

    def words(self) -> list[str]:
        """The status words of genuine notices in the order of arrival."""
        return [notice["status"] for verdict, notice in self.notices if verdict == "genuine"]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, at most ten seconds."""
        async with asyncio.timeout(60):
            while not holds():  # noqa: ASYNC110 - conditions of any kind
                await asyncio.sleep(0.01)


@asynccontextmanager
async def open_upstream(
    data_dir: Path, knobs: dict[str, Any] | None = None, *, port: int = 0
) -> AsyncIterator[Upstream]:
    """A lab in this process."""
    lab = running_lab(
        host="127.0.0.1",
        port=port,
        data_dir=data_dir,
        knobs=Knobs().merged(QUICK | (knobs or {})),
        api_key="lab-key",
        callback_secret="lab-secret",
    )
    async with lab as real_port, aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20)) as session:
        yield Upstream(f"http://127.0.0.1:{real_port}", session)
