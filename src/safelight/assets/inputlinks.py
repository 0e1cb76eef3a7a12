"""Addresses of input pictures for providers: one unguessable word each, signed, and good for a while."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from uuid import UUID

from safelight.domain.provider import MaskStyle
from safelight.errors import AssetError, ConfigurationError

_MAC_BYTES = 16
_NAME_BYTES = 16 + 16 + 1 + 5
_WORD = re.compile(r"(?P<token>[A-Za-z0-9_-]{72})(?:\.[a-z]{1,8})?")
_FORMS: tuple[MaskStyle | None, ...] = (None, MaskStyle.WHITE, MaskStyle.BLACK, MaskStyle.CLEAR)
"""What is sent: the picture as it is, or as a mask. The place in this list is in the link."""


@dataclass(frozen=True, slots=True)
class InputLink:
    """What a genuine, live link opens; `mask_style` None is the untouched picture. Times are unix seconds."""

    account_id: UUID
    upload_id: UUID
    mask_style: MaskStyle | None
    expires_at: int


class InputLinks:
    """Makes and reads links; of the same values the same link, so that a second send is like the first."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < 32:
            raise ConfigurationError("a key for input links needs at least 32 bytes")
        self._secret = secret

    def word(self, link: InputLink, content_type: str) -> str:
        """The last part of the address; its ending is for providers that look at nothing else."""
        name = (
            link.account_id.bytes
            + link.upload_id.bytes
            + bytes([_FORMS.index(link.mask_style)])
            + link.expires_at.to_bytes(5)
        )
        token = base64.urlsafe_b64encode(name + self._mac(name)).decode()
        return f"{token}.{content_type.removeprefix('image/')}"

    def read(self, word: str, *, now: float) -> InputLink:
        """What the word opens, or AssetError: `link_wrong`, or `link_expired` if it once was genuine."""
        shape = _WORD.fullmatch(word)
        try:
            raw = base64.urlsafe_b64decode(shape["token"]) if shape else b""
        except binascii.Error:
            raw = b""
        name, mac = raw[:_NAME_BYTES], raw[_NAME_BYTES:]
        if not hmac.compare_digest(self._mac(name), mac):
            raise AssetError("link_wrong", "the link is not genuine", is_retryable=False)
        expires_at = int.from_bytes(name[33:])
        if now >= expires_at:
            raise AssetError("link_expired", "the link has expired", is_retryable=False)
        return InputLink(UUID(bytes=name[:16]), UUID(bytes=name[16:32]), _FORMS[name[32]], expires_at)

    def _mac(self, name: bytes) -> bytes:
        return hmac.digest(self._secret, b"safelight-input-v1" + name, hashlib.sha256)[:_MAC_BYTES]
