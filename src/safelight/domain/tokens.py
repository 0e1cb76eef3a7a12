"""Callback tokens: unguessable, one per attempt, and readable without a look at the database."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from uuid import UUID

MAC_BYTES = 16
TOKEN_LENGTH = 44
"""Base64 of 16 bytes of task id, 1 byte of attempt number and 16 bytes of MAC, without padding."""


class CallbackTokens:
    """Issues and reads tokens; an attempt always has the same one, so that a re-send stays byte-equal."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"safelight callback token", hashlib.sha256)

    def issue(self, task_id: UUID, attempt: int) -> str:
        """The token of one attempt (its number is 1 to 255)."""
        name = task_id.bytes + bytes([attempt])
        return base64.urlsafe_b64encode(name + self._mac(name)).decode().rstrip("=")

    def read(self, token: str) -> tuple[UUID, int] | None:
        """The task and attempt that the token names; None for one that we never issued."""
        if len(token) != TOKEN_LENGTH or not token.isascii():
            return None
        try:
            raw = base64.urlsafe_b64decode(token)
        except (binascii.Error, ValueError):
            return None
        name, mac = raw[:17], raw[17:]
        if not hmac.compare_digest(mac, self._mac(name)):
            return None
        return UUID(bytes=name[:16]), name[16]

    def _mac(self, name: bytes) -> bytes:
        return hmac.digest(self._key, name, hashlib.sha256)[:MAC_BYTES]
