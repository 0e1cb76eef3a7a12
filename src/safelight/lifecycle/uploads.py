"""Pictures that customers hand in: checked, stored durably, kept a while, and then deleted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from safelight.assets.pictures import Picture, PicturePool
from safelight.assets.store import AssetStore, upload_key
from safelight.db import ledger, uploads
from safelight.db.database import Database
from safelight.db.uploads import UploadRow
from safelight.domain.ids import content_id
from safelight.errors import AssetError, RequestError
from safelight.settings import Settings
from safelight.telemetry import point

log = structlog.get_logger()

KEEP_S = 86_400.0
"""How long an upload is kept after its last use."""
KEEP_INPUT_S = 3_600.0
"""The same for what came inside a submit: nobody but the task knows of it, and that keeps it as long as it is open."""
DELETE_LEASE_S = 300.0
"""What could not be deleted within this time is tried again."""
DELETE_AT_ONCE = 50
PLACES = 24
PLACES_OF_ACCOUNT = 6


class Uploads:
    """Keeps what customers hand in: bytes first, then the row; when it expires, the bytes go first too."""

    def __init__(
        self, database: Database, store: AssetStore, pictures: PicturePool, settings: Settings
    ) -> None:
        self._database = database
        self._store = store
        self._pictures = pictures
        self._settings = settings
        self.places = Places(PLACES, PLACES_OF_ACCOUNT)
        """One is taken before a picture is read into memory."""

    async def keep(self, account_id: UUID, data: bytes, *, keep_s: float = KEEP_S) -> UploadRow:
        """Check and store a picture; what the account has handed in before is only kept for longer.

        Raises:
            AssetError: it is no picture that we take, or cannot be stored.
            RequestError: 413, the account's space is used up.
        """
        if len(data) > self._settings.max_upload_bytes:
            detail = f"the picture is too large: {len(data)} bytes"
            raise AssetError("too_large", detail, is_retryable=False)
        picture = await self._pictures.check(data)
        upload_id = content_id(account_id, picture.sha256)
        known = (await self.use(account_id, [upload_id], keep_s=keep_s)).get(upload_id)
        if known is None:
            return await self._store_new(account_id, upload_id, data, picture, keep_s=keep_s)
        if not await self._store.exists(known.store_key):
            log.error("upload_was_lost", upload_id=str(upload_id))
            await self._store.put(known.store_key, data)
        return known

    async def use(
        self, account_id: UUID, ids: Collection[UUID], *, keep_s: float = KEEP_S
    ) -> dict[UUID, UploadRow]:
        """The account's uploads with these ids; they are kept for longer from now on."""
        async with self._database.connection() as connection:
            return await uploads.use(connection, account_id, ids, keep_s=keep_s)

    async def expire(self) -> None:
        """Delete what has expired and no unfinished task needs; a death in between is made up for later."""
        while True:
            async with self._database.connection() as connection:
                expired = await uploads.claim_expired(
                    connection, room=DELETE_AT_ONCE, keep_s=KEEP_INPUT_S, lease_s=DELETE_LEASE_S
                )
            point("after_doom")
            for upload in expired:
                if upload.is_doomed:
                    await self._delete(upload)
            if len(expired) < DELETE_AT_ONCE:
                return

    async def _store_new(
        self, account_id: UUID, upload_id: UUID, data: bytes, picture: Picture, *, keep_s: float
    ) -> UploadRow:
        async with self._database.connection() as connection:
            self._check_space(await uploads.space_taken(connection, account_id), picture.bytes)
        key = upload_key(account_id, suffix=picture.suffix)
        await self._store.put(key, data)
        point("after_upload_put")
        try:
            kept, needless = await self._write(account_id, upload_id, key, picture, keep_s=keep_s)
        except RequestError:
            # Only a definite no: after a lost connection the row may be there, and needs its bytes.
            await self._remove(key)
            raise
        if needless is not None:
            await self._remove(needless)
        return kept

    async def _write(
        self, account_id: UUID, upload_id: UUID, key: str, picture: Picture, *, keep_s: float
    ) -> tuple[UploadRow, str | None]:
        """Write the row, and say which bytes nobody needs now: ours if another call was first."""
        async with self._database.transaction() as connection:
            # One at a time for an account, so that its space is counted rightly.
            await ledger.lock_accounts(connection, [account_id])
            standing = await uploads.lock(connection, account_id, upload_id)
            if standing is not None and not standing.is_doomed:
                found = await uploads.use(connection, account_id, [upload_id], keep_s=keep_s)
                return found[upload_id], key
            self._check_space(await uploads.space_taken(connection, account_id), picture.bytes)
            values = {
                "id": upload_id,
                "account_id": account_id,
                "store_key": key,
                "content_type": picture.content_type,
                "width": picture.width,
                "height": picture.height,
                "size_bytes": picture.bytes,
                "sha256": picture.sha256,
            }
            written = await uploads.write(connection, values, keep_s=keep_s)
        return written, standing.store_key if standing else None

    def _check_space(self, taken: int, more: int) -> None:
        space = self._settings.max_account_upload_bytes
        if taken + more > space:
            detail = f"Your uploads may have {space} bytes together, and have {taken}; the oldest end first."
            raise RequestError(413, "upload-space-full", detail)

    async def _delete(self, upload: uploads.Expired) -> None:
        if await self._remove(upload.store_key):
            point("after_upload_delete")
            async with self._database.connection() as connection:
                await uploads.forget(connection, upload.id, upload.store_key)

    async def _remove(self, key: str) -> bool:
        try:
            await self._store.delete(key)
        except AssetError as error:
            log.warning("upload_not_deleted", reason=error.reason)
            return False
        return True


@dataclass(slots=True)
class _Share:
    free: asyncio.Semaphore
    users: int = 0


@dataclass(slots=True)
class Places:
    """Places for pictures in memory: `total` for all, and for one account at most `share` of them."""

    total: int
    share: int
    _free: asyncio.Semaphore = field(init=False, repr=False)
    _shares: dict[UUID, _Share] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.total)

    @contextlib.asynccontextmanager
    async def take(self, account_id: UUID, *, within_s: float) -> AsyncIterator[None]:
        """Hold a place inside the context; waits for one, first among the account's own.

        Raises:
            RequestError: 429, none became free in time.
        """
        share = self._shares.setdefault(account_id, _Share(asyncio.Semaphore(self.share)))
        share.users += 1
        try:
            async with contextlib.AsyncExitStack() as held:
                try:
                    async with asyncio.timeout(within_s):
                        await held.enter_async_context(share.free)
                        await held.enter_async_context(self._free)
                except TimeoutError:
                    detail = "Too many pictures at once; wait."
                    raise RequestError(429, "rate-limited", detail, retry_after_s=5) from None
                yield
        finally:
            share.users -= 1
            if not share.users:
                del self._shares[account_id]
