"""Thumbnails: made when first asked for, then kept beside the pictures."""

from __future__ import annotations

import asyncio

import structlog

from safelight.assets.pictures import PicturePool
from safelight.assets.store import AssetStore, thumbnail_key
from safelight.db.views import AssetView
from safelight.errors import AssetError

log = structlog.get_logger()

AT_ONCE = 4
"""Pictures held in memory for shrinking; each may have tens of megabytes."""


class Thumbnails:
    """Makes each thumbnail once; one that was cleaned away is simply made again."""

    def __init__(self, store: AssetStore, pictures: PicturePool) -> None:
        self._store = store
        self._pictures = pictures
        self._room = asyncio.Semaphore(AT_ONCE)

    async def of(self, asset: AssetView) -> bytes:
        """The WebP of an asset.

        Raises:
            AssetError: the picture cannot be read or shrunk.
        """
        key = thumbnail_key(asset.id)
        try:
            return await self._store.get(key)
        except AssetError as error:
            if error.reason != "missing":
                raise
        data = await self.made(asset.store_key)
        try:
            await self._store.put(key, data)
        except AssetError as error:
            log.warning("thumbnail_not_kept", asset_id=str(asset.id), reason=error.reason)
        return data

    async def made(self, store_key: str) -> bytes:
        """A WebP of what lies under a key, kept nowhere.

        Raises:
            AssetError: the picture cannot be read or shrunk.
        """
        async with self._room:
            return await self._pictures.thumbnail(await self._store.get(store_key))
