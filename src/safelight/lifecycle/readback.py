"""Read stored pictures back: there, of the right length, whole, unchanged, and what their rows say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from uuid import UUID

from safelight.assets.pictures import PictureLimits, PicturePool
from safelight.assets.store import AssetStore
from safelight.db import audit
from safelight.db.database import Database
from safelight.errors import AssetError

_AT_ONCE = 4
# The length is compared with the row; a limit of today says nothing about a picture of yesterday.
_LIMITS = PictureLimits(max_bytes=1 << 40)


async def faulty_pictures(database: Database, store: AssetStore) -> AsyncGenerator[audit.Answer, None]:
    """What is wrong with which picture, a few pictures in memory at a time."""
    pool = PicturePool(timeout_s=60.0, limits=_LIMITS)
    try:
        async for batch in audit.asset_batches(database):
            for start in range(0, len(batch), _AT_ONCE):
                rows = batch[start : start + _AT_ONCE]
                faults = await _judge(rows, store, pool)
                # A picture may be erased while it is read.
                kept = await audit.kept_assets(database, list(faults)) if faults else set()
                found = [
                    (f"asset {row.id} of task {row.task_id}", faults[row.id], False)
                    for row in rows
                    if row.id in kept
                ]
                yield audit.Answer(len(rows), found)
    finally:
        await pool.aclose()


async def _judge(rows: Sequence[audit.AssetRow], store: AssetStore, pool: PicturePool) -> dict[UUID, str]:
    faults = await asyncio.gather(*(_fault_of(row, store, pool) for row in rows))
    return {row.id: fault for row, fault in zip(rows, faults, strict=True) if fault is not None}


async def _fault_of(row: audit.AssetRow, store: AssetStore, pool: PicturePool) -> str | None:
    try:
        data = await store.get(row.store_key)
        if len(data) != row.bytes:
            return f"has {len(data)} bytes instead of {row.bytes}"
        picture = await pool.check(data)
    except AssetError as error:
        return f"cannot be read: {error.reason} ({error})"
    if picture.sha256 != row.sha256:
        return f"has the hash {picture.sha256.hex()} instead of {row.sha256.hex()}"
    if (picture.width, picture.height) != (row.width, row.height):
        return f"is {picture.width}x{picture.height} instead of {row.width}x{row.height}"
    if picture.content_type != row.content_type:
        return f"is {picture.content_type} instead of {row.content_type}"
    return None
