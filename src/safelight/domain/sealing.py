"""Secrets at rest: sealed with AES-256-GCM, bound to the row that they stand in."""

from __future__ import annotations

import hashlib
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


class Sealer:
    """Seals and opens under one key of 32 bytes; `key_id` tells which one that was."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self.key_id = hashlib.sha256(b"safelight sealing" + key).hexdigest()[:16]

    def seal(self, secret: bytes, *, place: bytes) -> bytes:
        """The secret, unreadable; it opens only in the same `place`, such as a row's id."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret, place)

    def open(self, sealed: bytes, *, place: bytes, key_id: str) -> bytes | None:
        """The secret again; None if it was sealed under another key or for another place, or was changed."""
        if key_id != self.key_id:
            return None
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place)
        except InvalidTag:
            return None
