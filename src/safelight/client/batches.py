"""Batches: many tasks at one blow, watched, and brought home item by item or as one file."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from safelight.client.checks import checked_key, new_key, reading
from safelight.client.errors import DownloadError, ServiceUnreachable
from safelight.client.exchange import LOST, Call, Exchange
from safelight.client.files import mode_of
from safelight.client.pace import IN_PROGRESS, TEMPORARY, gaps_between_looks
from safelight.client.values import Batch, BatchItem, BatchReceipt, Page, checked_id

PATIENCE_S = 120.0
SUBMIT_TIMEOUT_S = 600.0
PIECE = 262_144


class BatchCalls:
    """What a client does with batches."""

    _exchange: Exchange

    async def create_batch(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        at_once: int = 5,
        accept: Literal["all", "partly"] = "all",
        name: str = "",
        idempotency_key: str | None = None,
    ) -> BatchReceipt:
        """Submit up to 10,000 tasks, each an object as `POST /v1/tasks` takes it; `at_once` are at work at once.

        `accept="partly"` takes what can be had; else one item that cannot be accepted refuses the whole. The key
        goes with every try, and a batch that broke off half-way is gone on with: call again with the same key.

        Raises:
            ApiError: refused; nothing is held, and the key may be used again.
            ServiceUnreachable: perhaps accepted, wholly or in part; call again with the same key.
        """
        key = checked_key(new_key() if idempotency_key is None else idempotency_key)
        encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
        body = "".join(f"{encode(dict(item))}\n" for item in items).encode()
        params = {"at_once": str(at_once), "accept": accept, "name": name}
        headers = {"Idempotency-Key": key, "Content-Type": "application/x-ndjson"}
        answer = await self._exchange.ask(
            Call(
                "POST",
                "/v1/batches",
                TEMPORARY | IN_PROGRESS,
                body=body,
                headers=headers,
                params=params,
                timeout_s=SUBMIT_TIMEOUT_S,
            )
        )
        with reading(answer):
            is_replayed = answer.headers.get("Idempotent-Replayed") == "true"
            return BatchReceipt.of(answer.body, key=key, is_replayed=is_replayed)

    async def get_batch(self, batch_id: str) -> Batch:
        """One batch as it stands now."""
        answer = await self._exchange.ask(Call("GET", f"/v1/batches/{checked_id(batch_id)}", TEMPORARY))
        with reading(answer):
            return Batch.of(answer.body)

    async def list_batches(self, *, cursor: str | None = None, limit: int | None = None) -> Page[Batch]:
        """Batches of the account, newest first."""
        given = {"cursor": cursor, "limit": None if limit is None else str(limit)}
        params = {name: value for name, value in given.items() if value is not None}
        answer = await self._exchange.ask(Call("GET", "/v1/batches", TEMPORARY, params=params))
        with reading(answer):
            return Page(tuple(Batch.of(item) for item in answer.body["data"]), answer.body["next_cursor"])

    async def cancel_batch(self, batch_id: str) -> Batch:
        """Take back what has not begun, and ask for the rest; what is ready stays."""
        call = Call(
            "POST", f"/v1/batches/{checked_id(batch_id)}/cancel", TEMPORARY, timeout_s=SUBMIT_TIMEOUT_S
        )
        answer = await self._exchange.ask(call)
        with reading(answer):
            return Batch.of(answer.body)

    async def watch_batch(self, batch_id: str) -> AsyncIterator[Batch]:
        """Look at a batch at growing gaps and yield what is seen, until every item has ended."""
        loop = asyncio.get_running_loop()
        answered_at = loop.time()
        for gap in gaps_between_looks():
            try:
                batch = await self.get_batch(batch_id)
            except ServiceUnreachable:
                if loop.time() - answered_at > PATIENCE_S:
                    raise
            else:
                answered_at = loop.time()
                yield batch
                if batch.is_finished:
                    return
            await asyncio.sleep(gap)

    async def wait_batch(self, batch_id: str, *, timeout_s: float | None = None) -> Batch:
        """Wait until every item has ended, either way.

        Raises:
            TimeoutError: not within `timeout_s` seconds; the batch goes on without us.
        """
        async with asyncio.timeout(timeout_s):
            async for batch in self.watch_batch(batch_id):
                if batch.is_finished:
                    return batch
        raise AssertionError("a watch ends with a finished batch")

    async def batch_results(self, batch_id: str) -> AsyncIterator[BatchItem]:
        """Every item in order, with its task, or why there is none."""
        try:
            path = f"/v1/batches/{checked_id(batch_id)}/results"
            async with self._exchange.stream(path, most_line=4 * 1024 * 1024) as response:
                while line := await response.content.readline():
                    yield BatchItem.of(json.loads(line))
        except LOST as loss:
            raise ServiceUnreachable(f"the results of batch {batch_id} break off: {loss}") from None

    async def save_batch(self, batch_id: str, path: Path) -> None:
        """Save the pictures that are ready, and a manifest, as one zip file: replaced as a whole or not at all.

        Raises:
            DownloadError: it breaks off.
        """
        handle, name = await asyncio.to_thread(
            tempfile.mkstemp, prefix=f".{path.name[:80]}.", dir=path.parent
        )
        aside = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), await asyncio.to_thread(mode_of, path))
                where = f"/v1/batches/{checked_id(batch_id)}/results"
                async with self._exchange.stream(where, params={"format": "zip"}) as response:
                    async for piece in response.content.iter_chunked(PIECE):
                        await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(aside.replace, path)
        except LOST as loss:
            raise DownloadError(f"the pictures of batch {batch_id} break off: {loss}") from None
        finally:
            await asyncio.to_thread(aside.unlink, missing_ok=True)
