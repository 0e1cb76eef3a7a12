"""Stored bytes that belong to nobody: found by a listing, and deleted when they are old enough."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

from safelight.assets.store import AssetStore
from safelight.db import audit
from safelight.db.database import Database

STRAY_AFTER = timedelta(hours=48)
"""Bytes are stored before their row, so young ones without a row are nothing unusual."""

_BATCH = 1_000


class Strays:
    """One listing of the store; `examined` counts the objects that were listed so far."""

    def __init__(self, database: Database, store: AssetStore) -> None:
        self._database = database
        self._store = store
        self.examined = 0

    async def find(self) -> AsyncIterator[str]:
        """Keys of objects that are old enough and belong to no picture, no upload and no open task."""
        oldest = (await self._database.now() - STRAY_AFTER).timestamp()
        old: list[str] = []
        async for key, _, modified in self._store.keys():
            self.examined += 1
            if modified < oldest:
                old.append(key)
            if len(old) == _BATCH:
                for stray in await audit.ownerless_keys(self._database, old):
                    yield stray
                old = []
        for stray in await audit.ownerless_keys(self._database, old) if old else ():
            yield stray


async def delete_strays(database: Database, store: AssetStore) -> int:
    """Delete them; how many there were. Nothing that a row or an open task speaks of is touched."""
    deleted = 0
    async for key in Strays(database, store).find():
        await store.delete(key)
        deleted += 1
    return deleted
