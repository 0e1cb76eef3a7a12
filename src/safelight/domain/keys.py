"""API keys: how they look, how one is made, and what is kept of it."""

from __future__ import annotations

import hmac
import secrets
import string
import zlib
from dataclasses import dataclass, field

PREFIX = "sl_live_"
DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
ID_LENGTH = 12
SECRET_LENGTH = 33
"""192 random bits in base 62."""
CHECKSUM_LENGTH = 6
_VALUES = frozenset(DIGITS)
_LENGTH = len(PREFIX) + ID_LENGTH + SECRET_LENGTH + CHECKSUM_LENGTH


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key in its parts; `id` is public, `secret` is shown once and never kept."""

    id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The key as its owner gets it; the checksum tells a typing error from a guess without a look-up."""
        body = f"{PREFIX}{self.id}{self.secret}"
        return body + _checksum(body)


def new_key() -> ApiKey:
    """A fresh random key."""
    return ApiKey(
        id=_in_base_62(secrets.randbits(71), ID_LENGTH),
        secret=_in_base_62(secrets.randbits(192), SECRET_LENGTH),
    )


def parse_key(text: str) -> ApiKey | None:
    """The parts of a well-formed key, or None."""
    if len(text) != _LENGTH or not text.startswith(PREFIX):
        return None
    body, checksum = text[:-CHECKSUM_LENGTH], text[-CHECKSUM_LENGTH:]
    id_and_secret = body[len(PREFIX) :]
    if not _VALUES.issuperset(id_and_secret) or checksum != _checksum(body):
        return None
    return ApiKey(id_and_secret[:ID_LENGTH], id_and_secret[ID_LENGTH:])


def hash_secret(pepper: bytes, secret: str) -> bytes:
    """What is stored: 32 bytes, keyed. Fast hashing is right for random secrets (OWASP ASVS 5, 11.4.2)."""
    return hmac.digest(pepper, secret.encode("ascii"), "sha256")


def is_secret(pepper: bytes, secret: str, stored: bytes) -> bool:
    """Whether the secret is the one that was stored, in constant time."""
    return hmac.compare_digest(hash_secret(pepper, secret), stored)


def _checksum(body: str) -> str:
    return _in_base_62(zlib.crc32(body.encode("ascii")), CHECKSUM_LENGTH)


def _in_base_62(value: int, length: int) -> str:
    digits = []
    for _ in range(length):
        value, digit = divmod(value, 62)
        digits.append(DIGITS[digit])
    return "".join(reversed(digits))
