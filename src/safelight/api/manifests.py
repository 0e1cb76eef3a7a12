"""What became of a batch, item by item: as lines, or as a zip file that is written while it is sent."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import structlog

from safelight.api.contents import SUFFIXES
from safelight.api.shown import Links, task_json
from safelight.assets.store import AssetStore
from safelight.db import views
from safelight.db.database import Database
from safelight.errors import AssetError

log = structlog.get_logger()

ROOM = 100


class Manifest:
    """The items of one batch in order; no more than a page of them, or one picture, is held."""

    def __init__(
        self, database: Database, store: AssetStore, account_id: UUID, batch_id: UUID, links: Links
    ) -> None:
        self._database = database
        self._store = store
        self._account_id = account_id
        self._batch_id = batch_id
        self._links = links

    async def lines(self) -> AsyncIterator[bytes]:
        """One line an item."""
        async for item in self._items():
            yield _line(item)

    async def zipped(self) -> AsyncIterator[bytes]:
        """The pictures of items that are ready, named by their places, and `manifest.jsonl` at the end.

        A picture that cannot be read is left out, and its line says so.
        """
        out = _Outlet()
        told: list[bytes] = []
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            async for item in self._items():
                task = item["task"]
                item["files"] = []
                for number, asset in enumerate(task["assets"] if task else (), start=1):
                    suffix = SUFFIXES.get(asset["content_type"], "bin")
                    name = f"{item['position'] + 1:05}-{number}.{suffix}"
                    data = await self._read(UUID(asset["id"]))
                    if data is not None:
                        archive.writestr(zipfile.ZipInfo(name), data)
                        item["files"].append(name)
                        yield out.take()
                told.append(_line(item))
            archive.writestr(zipfile.ZipInfo("manifest.jsonl"), b"".join(told))
        yield out.take()

    async def _items(self) -> AsyncIterator[dict[str, Any]]:
        after = -1
        while True:
            async with self._database.connection() as connection:
                page = await views.batch_items(
                    connection, self._account_id, self._batch_id, after=after, room=ROOM
                )
            for item, task in page:
                refusal = None if item.code is None else {"code": item.code, "detail": item.detail}
                yield {
                    "position": item.position,
                    "task": task_json(task, self._links) if task else None,
                    "refusal": refusal,
                }
            if len(page) < ROOM:
                return
            after = page[-1][0].position

    async def _read(self, asset_id: UUID) -> bytes | None:
        async with self._database.connection() as connection:
            asset = await views.asset(connection, self._account_id, asset_id)
        if asset is None:
            return None
        try:
            return await self._store.get(asset.store_key)
        except AssetError as error:
            log.warning("zip_without_picture", asset_id=str(asset_id), reason=error.reason)
            return None


class _Outlet(io.RawIOBase):
    """Takes what the zip file writes, and gives it on; it cannot be read or sought in."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """What was written since the last time."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def _line(item: dict[str, Any]) -> bytes:
    return json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
