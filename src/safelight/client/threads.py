"""The plain client: the asynchronous one on a thread of its own, for code without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack

from safelight.client.endpoints import PlainWebhookEndpoints
from safelight.client.tasks import AsyncClient, TaskFields
from safelight.client.values import (
    Asset,
    Balance,
    Batch,
    BatchItem,
    BatchReceipt,
    Event,
    Page,
    Receipt,
    Task,
    Upload,
)

T = TypeVar("T")


class Client:
    """As AsyncClient, call by call; it works inside a running event loop as well, such as a notebook's.

    with Client("http://127.0.0.1:8000", api_key) as client:
        task = client.wait(client.create("a red shoe on white").id)
        client.save(task.assets[0], Path("shoe.png"))
    """

    def __init__(self, base_url: str, api_key: str) -> None:
        self._client = AsyncClient(base_url, api_key)
        self.webhooks = PlainWebhookEndpoints(self._client.webhooks, self._do)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="safelight-client", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; the client cannot be used afterwards."""
        if self._loop.is_closed():
            return
        self._do(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def create(
        self, prompt: str, *, idempotency_key: str | None = None, **fields: Unpack[TaskFields]
    ) -> Receipt:
        """As AsyncClient.create."""
        return self._do(self._client.create(prompt, idempotency_key=idempotency_key, **fields))

    def upload(self, picture: Path | bytes) -> Upload:
        """As AsyncClient.upload."""
        return self._do(self._client.upload(picture))

    def get(self, task_id: str) -> Task:
        """As AsyncClient.get."""
        return self._do(self._client.get(task_id))

    def list(
        self,
        *,
        status: str | None = None,
        updated_since: datetime | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[Task]:
        """As AsyncClient.list."""
        return self._do(
            self._client.list(status=status, updated_since=updated_since, cursor=cursor, limit=limit)
        )

    def cancel(self, task_id: str) -> Task:
        """As AsyncClient.cancel."""
        return self._do(self._client.cancel(task_id))

    def erase(self, task_id: str) -> Task:
        """As AsyncClient.erase."""
        return self._do(self._client.erase(task_id))

    def watch(self, task_id: str) -> Iterator[Task]:
        """As AsyncClient.watch."""
        return self._each(self._client.watch(task_id))

    def events(self, task_id: str | None = None, *, after: int | None = None) -> Iterator[Event]:
        """As AsyncClient.events."""
        return self._each(self._client.events(task_id, after=after))

    def wait(
        self,
        task_id: str,
        *,
        timeout_s: float | None = None,
        on_progress: Callable[[Task], object] | None = None,
    ) -> Task:
        """As AsyncClient.wait; `on_progress` is called on the client's own thread."""
        return self._do(self._client.wait(task_id, timeout_s=timeout_s, on_progress=on_progress))

    def download(self, asset: Asset) -> bytes:
        """As AsyncClient.download."""
        return self._do(self._client.download(asset))

    def save(self, asset: Asset, path: Path) -> None:
        """As AsyncClient.save."""
        self._do(self._client.save(asset, path))

    def balance(self) -> Balance:
        """As AsyncClient.balance."""
        return self._do(self._client.balance())

    def entries(self, *, cursor: str | None = None, limit: int | None = None) -> Page[Mapping[str, Any]]:
        """As AsyncClient.entries."""
        return self._do(self._client.entries(cursor=cursor, limit=limit))

    def event_ticket(self) -> str:
        """As AsyncClient.event_ticket."""
        return self._do(self._client.event_ticket())

    def create_batch(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        at_once: int = 5,
        accept: Literal["all", "partly"] = "all",
        name: str = "",
        idempotency_key: str | None = None,
    ) -> BatchReceipt:
        """As AsyncClient.create_batch."""
        return self._do(
            self._client.create_batch(
                items, at_once=at_once, accept=accept, name=name, idempotency_key=idempotency_key
            )
        )

    def get_batch(self, batch_id: str) -> Batch:
        """As AsyncClient.get_batch."""
        return self._do(self._client.get_batch(batch_id))

    def list_batches(self, *, cursor: str | None = None, limit: int | None = None) -> Page[Batch]:
        """As AsyncClient.list_batches."""
        return self._do(self._client.list_batches(cursor=cursor, limit=limit))

    def cancel_batch(self, batch_id: str) -> Batch:
        """As AsyncClient.cancel_batch."""
        return self._do(self._client.cancel_batch(batch_id))

    def watch_batch(self, batch_id: str) -> Iterator[Batch]:
        """As AsyncClient.watch_batch."""
        return self._each(self._client.watch_batch(batch_id))

    def wait_batch(self, batch_id: str, *, timeout_s: float | None = None) -> Batch:
        """As AsyncClient.wait_batch."""
        return self._do(self._client.wait_batch(batch_id, timeout_s=timeout_s))

    def batch_results(self, batch_id: str) -> Iterator[BatchItem]:
        """As AsyncClient.batch_results."""
        return self._each(self._client.batch_results(batch_id))

    def save_batch(self, batch_id: str, path: Path) -> None:
        """As AsyncClient.save_batch."""
        self._do(self._client.save_batch(batch_id, path))

    def _each(self, values: AsyncIterator[T]) -> Iterator[T]:
        """One after the other; who stops early leaves no stream open behind it."""
        try:
            while (value := self._do(_next(values))) is not None:
                yield value
        finally:
            if isinstance(values, AsyncGenerator):
                self._do(values.aclose())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # An interrupted caller (Ctrl-C) must not leave its call running behind it.
            future.cancel()
            raise


async def _next(values: AsyncIterator[T]) -> T | None:
    return await anext(values, None)
