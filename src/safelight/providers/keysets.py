"""An upstream's public keys: fetched when first needed, kept, fetched again when a signature does not fit."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence

import aiohttp
import structlog
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from safelight.errors import CallbackRejected
from safelight.providers.documents import Unreadable, parse_object

log = structlog.get_logger()

FETCH_TIMEOUT_S = 5.0
REFETCH_GAP_S = 60.0
"""Forged callbacks must not make us ask the upstream for its keys more often."""
MOST_BYTES = 65_536
MOST_KEYS = 20


class KeySet:
    """The Ed25519 keys at one address (a JWKS, RFC 8037). Any of them may have signed."""

    def __init__(
        self, url: str, session: aiohttp.ClientSession, *, cache_s: float, clock: Callable[[], float]
    ) -> None:
        self._url = url
        self._session = session
        self._cache_s = cache_s
        self._clock = clock
        self._keys: tuple[Ed25519PublicKey, ...] = ()
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._lock = asyncio.Lock()

    async def is_signed(self, signatures: Sequence[bytes], signed: bytes) -> bool:
        """Whether one of the signatures is by one of the keys.

        Raises:
            CallbackRejected: 503 where no keys could be had, so that the upstream tries again.
        """
        if self._clock() - self._fetched_at > self._cache_s:
            await self._refresh()
        if self._fits(signatures, signed):
            return True
        # The upstream may have changed its keys since.
        had = self._fetched_at
        await self._refresh()
        if not self._keys:
            raise CallbackRejected("keys_unavailable", status=503)
        return self._fetched_at != had and self._fits(signatures, signed)

    def _fits(self, signatures: Sequence[bytes], signed: bytes) -> bool:
        return any(_is_by(key, one, signed) for key in self._keys for one in signatures)

    async def _refresh(self) -> None:
        async with self._lock:
            now = self._clock()
            if 0 <= now - self._tried_at < REFETCH_GAP_S:
                return
            self._tried_at = now
            try:
                self._keys = await self._fetch()
                self._fetched_at = now
            except (aiohttp.ClientError, TimeoutError, OSError, Unreadable) as error:
                log.warning("keys_not_fetched", url=self._url, error=type(error).__name__)

    async def _fetch(self) -> tuple[Ed25519PublicKey, ...]:
        timeout = aiohttp.ClientTimeout(total=FETCH_TIMEOUT_S)
        async with self._session.get(self._url, timeout=timeout, allow_redirects=False) as response:
            if response.status != 200:
                raise Unreadable("bad_status")
            raw = b""
            async for chunk in response.content.iter_chunked(MOST_BYTES):
                raw += chunk
                if len(raw) > MOST_BYTES:
                    raise Unreadable("too_large")
        keys = parse_object(raw).get("keys")
        found = [key for one in keys[:MOST_KEYS] if (key := _read_key(one))] if isinstance(keys, list) else []
        if not found:
            raise Unreadable("no_keys")
        return tuple(found)


def _read_key(entry: object) -> Ed25519PublicKey | None:
    if not isinstance(entry, Mapping) or entry.get("kty") != "OKP" or entry.get("crv") != "Ed25519":
        return None
    text = entry.get("x")
    try:
        raw = base64.urlsafe_b64decode(f"{text}{'=' * (-len(str(text)) % 4)}")
        return Ed25519PublicKey.from_public_bytes(raw)
    except ValueError:
        return None


def _is_by(key: Ed25519PublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.verify(signature, signed)
    except InvalidSignature:
        return False
    return True
