"""Tasks as clients of the OpenAI API read them, with their pictures as base64 or as links."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from starlette.responses import Response, StreamingResponse

from safelight.api.contents import trouble
from safelight.api.openai.errors import refusal_of_failure
from safelight.api.shown import Links, credits_json, progress_json
from safelight.assets.store import AssetStore
from safelight.db.views import AssetView, TaskView
from safelight.domain.failure import Failure, FailureClass
from safelight.domain.task import State, is_terminal
from safelight.errors import AssetError

FORMATS = {"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp"}
"""As `output_format` says them; what is none of these is left unsaid."""


def image_task(task: TaskView) -> dict[str, Any]:
    """The one shape of a task at this door, without its pictures: of a task that is ready they follow in `data`."""
    document: dict[str, Any] = {
        "id": str(task.id),
        "object": "image.task",
        "status": _status(task.state),
        "model": task.model,
        "created": int(task.created_at.timestamp()),
        "completed_at": int(task.finished_at.timestamp()) if task.finished_at else None,
        "progress": progress_json(task),
        "credits": credits_json(task),
        "metadata": task.metadata,
    }
    failure = failure_of(task)
    if failure is not None:
        document["error"] = refusal_of_failure(failure).document(failure.message)
    if task.assets:
        first = task.assets[0]
        document["size"] = f"{first['width']}x{first['height']}"
        if first["content_type"] in FORMATS:
            document["output_format"] = FORMATS[first["content_type"]]
    return document


def failure_of(task: TaskView) -> Failure | None:
    """Why the task failed; None if it has not."""
    if task.failure_class is None or task.failure_code is None:
        return None
    return Failure(FailureClass(task.failure_class), task.failure_code)


def with_links(task: TaskView, links: Links) -> dict[str, Any]:
    """A task that is ready, with links that expire."""
    data = [{"url": links.to(task.account_id, asset["id"], "original")} for asset in task.assets]
    return {**image_task(task), "data": data}


async def with_pictures(
    task: TaskView, assets: Sequence[AssetView], store: AssetStore, headers: Mapping[str, str]
) -> Response:
    """A task that is ready, with the pictures themselves.

    They are read piece by piece while they are sent: many callers may be answered at the same time.

    Raises:
        RequestError: 404 if the first of them is gone, 503 if it cannot be read now.
    """
    head = json.dumps(image_task(task), ensure_ascii=False, separators=(",", ":")).encode()[:-1]
    pieces = _document(head + b',"data":[', assets, store)
    try:
        # What fails should fail before the headers go out.
        first = await anext(pieces)
    except AssetError as error:
        raise trouble(error) from error
    length = len(head) + len(b',"data":[') + len(b"]}") + max(0, len(assets) - 1)
    length += sum(len(_OPEN) + len(_CLOSE) + (asset.size_bytes + 2) // 3 * 4 for asset in assets)
    sent = {**headers, "Content-Length": str(length)}
    return StreamingResponse(_after(first, pieces), 200, sent, "application/json")


_OPEN, _CLOSE = b'{"b64_json":"', b'"}'


async def _document(head: bytes, assets: Sequence[AssetView], store: AssetStore) -> AsyncIterator[bytes]:
    begun = head
    for place, asset in enumerate(assets):
        begun += b"," + _OPEN if place else _OPEN
        async for piece in _base64(store.open(asset.store_key)):
            yield begun + piece
            begun = b""
        begun = _CLOSE
    yield begun + b"]}"


async def _base64(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        data = rest + piece
        whole = len(data) - len(data) % 3
        rest = data[whole:]
        yield base64.b64encode(data[:whole])
    yield base64.b64encode(rest)


async def _after(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in pieces:
        yield piece


def _status(state: State) -> str:
    if state is State.QUEUED:
        return "queued"
    if state is State.SUCCEEDED:
        return "completed"
    return "failed" if is_terminal(state) else "processing"
