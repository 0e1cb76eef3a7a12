"""Callbacks: signed notices to the caller's URL, retried, copied, forged."""

import asyncio
import hashlib
import hmac
import json
import time
from typing import Any, Protocol

from safelight.lab.job import Job
from safelight.lab.records import Records
from safelight.lab.wire import Wire

RETRY_GAPS_S = (0.5, 1.0, 2.0, 4.0, 8.0)


class Render(Protocol):
    """Says what a notice contains; asked again at every try, so that its URLs are fresh."""

    def __call__(self, job: Job) -> dict[str, Any]: ...


class Callbacks:
    """Sends notices over shared, bounded connections."""

    def __init__(self, *, records: Records, secret: str) -> None:
        self._records = records
        self._secret = secret.encode()
        self._wire = Wire()
        self._encode = json.JSONEncoder(separators=(",", ":")).encode

    async def send(self, job: Job, render: Render, tried: asyncio.Event) -> None:
        """Send a notice until it is taken or given up; `tried` is set after the first try."""
        copies = job.fate.callback_copies
        if await self._try(job, render, copies):
            tried.set()
            return
        tried.set()
        for gap_s in RETRY_GAPS_S:
            await asyncio.sleep(gap_s)
            if await self._try(job, render, copies):
                return

    async def forge(self, job: Job) -> None:
        """Send a notice that is not genuine, once."""
        body = self._body(self._records.forged_notice(job))
        genuine = self._sign(body)
        signatures = {"wrong": genuine[::-1], "non_ascii": "ß" + genuine[1:]}
        signature = signatures.get(job.fate.forgery)
        await self._post(str(job.callback_url), body, signature)

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    async def _try(self, job: Job, render: Render, copies: int) -> bool:
        body = self._body(render(job))
        signature = self._sign(body)
        url = str(job.callback_url)
        if copies == 1:
            return await self._post(url, body, signature)
        return all(await asyncio.gather(*(self._post(url, body, signature) for _ in range(copies))))

    async def _post(self, url: str, body: bytes, signature: str | None) -> bool:
        headers = {"Content-Type": "application/json"}
        if signature is not None:
            headers["X-Signature"] = signature
        try:
            return 200 <= await self._wire.post(url, body, headers) < 300
        except (OSError, ValueError):
            return False

    def _body(self, record: dict[str, Any]) -> bytes:
        record["sent_at"] = time.time()
        return self._encode(record).encode()

    def _sign(self, body: bytes) -> str:
        return hmac.digest(self._secret, body, hashlib.sha256).hex()
