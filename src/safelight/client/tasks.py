"""The asynchronous client: create, watch, cancel and list tasks, and bring their pictures home."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypedDict, Unpack

from safelight.client.batches import BatchCalls
from safelight.client.checks import checked_key, new_key, reading
from safelight.client.endpoints import WebhookEndpoints
from safelight.client.errors import ApiError, DownloadError, ServiceUnreachable
from safelight.client.exchange import LOST, Answer, Call, Exchange
from safelight.client.files import replace_file
from safelight.client.pace import IN_PROGRESS, TEMPORARY, gap_before_retry, gaps_between_looks
from safelight.client.pictures import Picture, is_name, media_type_of, read_picture
from safelight.client.streams import Bell, read_events
from safelight.client.values import Asset, Balance, Event, Page, Receipt, Task, Upload, checked_id

PATIENCE_S = 120.0
"""How long `watch` bears a service that does not answer: a restart takes seconds."""
UPLOAD_TIMEOUT_S = 180.0


class TaskFields(TypedDict, total=False):
    """The fields of a task beside its prompt; those that are None are left out."""

    model: str | None
    operation: Literal["generate", "edit"]
    n: int
    size: str | None
    aspect_ratio: str | None
    images: Sequence[Picture]
    mask: Picture | None
    options: Mapping[str, Any]
    metadata: Mapping[str, Any]
    priority: int


class AsyncClient(BatchCalls):
    """A client of one service with one API key.

    async with AsyncClient("http://127.0.0.1:8000", api_key) as client:
        receipt = await client.create("a red shoe on white", n=2)
        task = await client.wait(receipt.id)
        for asset in task.assets:
            await client.save(asset, Path(f"{asset.id}.png"))
    """

    def __init__(self, base_url: str, api_key: str) -> None:
        self._exchange = Exchange(base_url, api_key)
        self.webhooks = WebhookEndpoints(self._exchange)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._exchange.close()

    async def create(
        self, prompt: str, *, idempotency_key: str | None = None, **fields: Unpack[TaskFields]
    ) -> Receipt:
        """Submit a task; when this returns, it is accepted and its credits are held.

        Pictures that are files or bytes are uploaded first; without another word a task with `images` is an edit.
        One key goes with every try of the call, so that a lost answer never makes a second task. Give a key
        of your own, such as an order number, and store it before, to be safe against your own crash as well.

        Raises:
            ApiError: refused; nothing was stored, and the key may be used again.
            ServiceUnreachable: perhaps accepted; call again with the same key to find out.
        """
        key = checked_key(new_key() if idempotency_key is None else idempotency_key)
        is_edit = bool(fields.get("images") or fields.get("mask"))
        body: dict[str, Any] = {"operation": "edit" if is_edit else "generate", "prompt": prompt}
        body.update({name: value for name, value in fields.items() if value is not None})
        if "images" in body:
            body["images"] = [await self._name_of(image) for image in body["images"]]
        if "mask" in body:
            body["mask"] = await self._name_of(body["mask"])
        answer = await self._exchange.ask(
            Call(
                "POST",
                "/v1/tasks",
                TEMPORARY | IN_PROGRESS,
                body=json.dumps(body, ensure_ascii=False, allow_nan=False).encode(),
                headers={"Idempotency-Key": key, "Content-Type": "application/json"},
            )
        )
        with reading(answer):
            is_replayed = answer.headers.get("Idempotent-Replayed") == "true"
            return Receipt.of(answer.body, key=key, is_replayed=is_replayed)

    async def upload(self, picture: Path | bytes) -> Upload:
        """Hand in a picture for edits; the same one again has the same id, and is kept for longer.

        Raises:
            ApiError: refused: it is no picture that the service takes, or there is no space for it.
            ServiceUnreachable: no answer; call again, it costs nothing.
        """
        data = picture if isinstance(picture, bytes) else await asyncio.to_thread(read_picture, picture)
        headers = {"Content-Type": media_type_of(data)}
        answer = await self._exchange.ask(
            Call("POST", "/v1/uploads", TEMPORARY, body=data, headers=headers, timeout_s=UPLOAD_TIMEOUT_S)
        )
        with reading(answer):
            return Upload.of(answer.body)

    async def _name_of(self, picture: Picture) -> str:
        """What a task says of a picture; one of our own is uploaded."""
        if isinstance(picture, str) and is_name(picture):
            return picture
        return (await self.upload(Path(picture) if isinstance(picture, str) else picture)).id

    async def get(self, task_id: str) -> Task:
        """One task as it stands now."""
        answer = await self._exchange.ask(Call("GET", f"/v1/tasks/{checked_id(task_id)}", TEMPORARY))
        with reading(answer):
            return Task.of(answer.body)

    async def list(
        self,
        *,
        status: str | None = None,
        updated_since: datetime | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[Task]:
        """Tasks of the account, newest first; `status` is `processing`, `ready` or `failed`.

        With `updated_since` those alone that were made or have ended since then: what a lost webhook would have told.
        """
        since = updated_since.isoformat() if updated_since else None
        answer = await self._list("/v1/tasks", status=status, updated_since=since, cursor=cursor, limit=limit)
        with reading(answer):
            return Page(tuple(Task.of(item) for item in answer.body["data"]), answer.body["next_cursor"])

    async def cancel(self, task_id: str) -> Task:
        """Ask for a task to be stopped, and say how it stands then; one under way may still become ready.

        Raises:
            ApiError: 409, it is being saved or has ended.
        """
        await self._exchange.ask(Call("POST", f"/v1/tasks/{checked_id(task_id)}/cancel", TEMPORARY))
        return await self.get(task_id)

    async def erase(self, task_id: str) -> Task:
        """Erase what a finished task said and drew, for good; what it cost stays in the books.

        Raises:
            ApiError: 409, it has not ended yet.
        """
        await self._exchange.ask(Call("POST", f"/v1/tasks/{checked_id(task_id)}/erase", TEMPORARY))
        return await self.get(task_id)

    async def watch(self, task_id: str) -> AsyncIterator[Task]:
        """Yield a task whenever it has changed, until it is `ready` or `failed`.

        Changes are told by a stream; where there is none to be had, the task is looked at from time to time. A
        service that is down meanwhile is waited for, two minutes at a time.
        """
        loop = asyncio.get_running_loop()
        answered_at = loop.time()
        bell: Bell | None = None
        try:
            for gap in gaps_between_looks():
                try:
                    task = await self.get(task_id)
                except ServiceUnreachable:
                    if loop.time() - answered_at > PATIENCE_S:
                        raise
                else:
                    answered_at = loop.time()
                    yield task
                    if task.is_finished:
                        return
                bell = bell or Bell(self._exchange, checked_id(task_id))
                await bell.wait(gap)
        finally:
            if bell is not None:
                await bell.close()

    async def events(self, task_id: str | None = None, *, after: int | None = None) -> AsyncIterator[Event]:
        """Every change of all tasks from now on, or after the event with the number `after`; or of one task to its end.

        A stream that breaks off is opened again, and nothing is missed or told twice. An event of the kind `reset`
        says that some after your last one are gone, because it is older than a day: list your tasks.
        """
        path = "/v1/events" if task_id is None else f"/v1/tasks/{checked_id(task_id)}/events"
        async for event in read_events(self._exchange, path, after=after):
            yield event

    async def wait(
        self,
        task_id: str,
        *,
        timeout_s: float | None = None,
        on_progress: Callable[[Task], object] | None = None,
    ) -> Task:
        """Wait until a task has ended, either way; `on_progress` is called with each look.

        Raises:
            TimeoutError: it has not ended within `timeout_s` seconds; it goes on without us.
        """
        async with asyncio.timeout(timeout_s):
            async for task in self.watch(task_id):
                if on_progress is not None:
                    on_progress(task)
                if task.is_finished:
                    return task
        raise AssertionError("a watch ends with a finished task")

    async def event_ticket(self) -> str:
        """A ticket that lets a browser open one stream within a minute, as `/v1/events?ticket=…`."""
        answer = await self._exchange.ask(Call("POST", "/v1/event-tickets", TEMPORARY))
        with reading(answer):
            return str(answer.body["ticket"])

    async def download(self, asset: Asset) -> bytes:
        """The bytes of an asset, compared with its length and hash.

        Raises:
            DownloadError: they do not match, or keep breaking off.
        """
        tries = 0
        while True:
            tries += 1
            try:
                path = f"/v1/assets/{checked_id(asset.id)}"
                data = await self._exchange.fetch(path, most_bytes=asset.bytes)
                if hashlib.sha256(data).hexdigest() == asset.sha256.lower():
                    return data
                error = DownloadError(f"the bytes of asset {asset.id} do not match its hash")
            except LOST as loss:
                error = DownloadError(f"asset {asset.id} breaks off: {loss}")
            except ApiError as refusal:
                if refusal.status not in TEMPORARY:
                    raise
                error = DownloadError(f"asset {asset.id} cannot be had: {refusal}")
            gap = gap_before_retry(tries)
            if gap is None:
                raise error
            await asyncio.sleep(gap)

    async def save(self, asset: Asset, path: Path) -> None:
        """Download an asset into a file, which is replaced as a whole or not at all."""
        data = await self.download(asset)
        await asyncio.to_thread(replace_file, path, data)

    async def balance(self) -> Balance:
        """What the account may spend, and what its open tasks hold."""
        answer = await self._exchange.ask(Call("GET", "/v1/balance", TEMPORARY))
        with reading(answer):
            return Balance(answer.body["available"], answer.body["held"])

    async def entries(
        self, *, cursor: str | None = None, limit: int | None = None
    ) -> Page[Mapping[str, Any]]:
        """Lines of the ledger, newest first, as the service words them."""
        answer = await self._list("/v1/entries", cursor=cursor, limit=limit)
        with reading(answer):
            return Page(tuple(answer.body["data"]), answer.body["next_cursor"])

    async def _list(self, path: str, **params: str | int | None) -> Answer:
        given = {name: str(value) for name, value in params.items() if value is not None}
        return await self._exchange.ask(Call("GET", path, TEMPORARY, params=given))
