"""What every place for bytes must do, and how keys are made: generated, never given."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from safelight.errors import AssetError

_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}"
_KEY = re.compile(rf"(?:{_SEGMENT}/){{0,7}}{_SEGMENT}(?:\.[a-z0-9]{{1,8}})?")
_FOLDER = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_PREFIX = re.compile(rf"(?:{_FOLDER}/)*(?:{_FOLDER})?")


class AssetStore(Protocol):
    """A place for bytes under generated keys.

    Failures are AssetError: `missing`, `bad_key`, or `storage` (retryable).
    """

    async def put(self, key: str, data: bytes) -> None:
        """Durable when it returns and never visible half-written; putting again replaces."""

    async def get(self, key: str) -> bytes:
        """All bytes of one asset."""

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """Stream an asset, or `length` bytes from `offset`; errors come with the first piece."""

    async def exists(self, key: str) -> bool:
        """Whether `get` would find something."""

    async def delete(self, key: str) -> None:
        """Remove; a missing key is fine."""

    def keys(self, prefix: str = "") -> AsyncIterator[tuple[str, int, float]]:
        """Every (key, bytes, modified unix time) whose key starts with `prefix`, in no order."""

    async def aclose(self) -> None:
        """Let go of threads and connections."""


def new_key(account_id: UUID | str, *, suffix: str) -> str:
    """A fresh key `<account>/<yyyy>/<mm>/<128 random bits>.<suffix>`; nobody outside chooses any part."""
    return check_key(f"{account_id}/{datetime.now(UTC):%Y/%m}/{secrets.token_hex(16)}.{suffix}")


def upload_key(account_id: UUID | str, *, suffix: str) -> str:
    """A fresh key for a picture that a customer handed in: `uploads/<account>/<128 random bits>.<suffix>`."""
    return check_key(f"uploads/{account_id}/{secrets.token_hex(16)}.{suffix}")


def staging_key(task_id: UUID | str, attempt: int, position: int) -> str:
    """Where a result waits until its task is settled: the same place for the same result."""
    return check_key(f"staging/{task_id}/{attempt}-{position}")


def thumbnail_key(asset_id: UUID | str) -> str:
    """Where the thumbnail of an asset lies, once somebody has asked for it."""
    return check_key(f"thumbnails/{asset_id}.webp")


def attached_key(task_id: UUID | str, attempt: int) -> str:
    """As `staging_key`, but fresh: two people who attach at once must not write over each other's."""
    return check_key(f"staging/{task_id}/{attempt}-{secrets.token_hex(8)}")


def check_key(key: str) -> str:
    """Return the key, or raise AssetError `bad_key` for anything that we would not have generated."""
    if not is_key(key):
        raise AssetError("bad_key", "this is not a key of ours", is_retryable=False)
    return key


def is_key(text: str) -> bool:
    """Whether this could be one of our keys."""
    return len(text) <= 512 and _KEY.fullmatch(text) is not None


def check_prefix(prefix: str) -> str:
    """Return the prefix, or raise AssetError `bad_key` if no key can start with it."""
    if len(prefix) > 512 or not _PREFIX.fullmatch(prefix):
        raise AssetError("bad_key", "no key of ours starts like this", is_retryable=False)
    return prefix
