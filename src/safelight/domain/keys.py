"""Keys of customers and of operators: how they look, how one is made, and what is kept of it."""

from __future__ import annotations

import hmac
import secrets
import string
import zlib
from dataclasses import dataclass, field

PREFIX = "sl_live_"
ADMIN_PREFIX = "sl_admin_"
"""An operator's key: of a kind of its own, so that neither is ever taken for the other."""
DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
ID_LENGTH = 12
SECRET_LENGTH = 33
"""192 random bits in base 62."""
CHECKSUM_LENGTH = 6
_VALUES = frozenset(DIGITS)
_LENGTH = ID_LENGTH + SECRET_LENGTH + CHECKSUM_LENGTH


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key in its parts; `id` is public, `secret` is shown once and never kept."""

    id: str
    secret: str = field(repr=False)
    prefix: str = PREFIX

    @property
    def text(self) -> str:
        """The key as its owner gets it; the checksum tells a typing error from a guess without a look-up."""
        body = f"{self.prefix}{self.id}{self.secret}"
        return body + _checksum(body)


def new_key(prefix: str = PREFIX) -> ApiKey:
    """A fresh random key."""
    return ApiKey(
        id=_in_base_62(secrets.randbits(71), ID_LENGTH),
        secret=_in_base_62(secrets.randbits(192), SECRET_LENGTH),
        prefix=prefix,
    )


def parse_key(text: str, prefix: str = PREFIX) -> ApiKey | None:
    """The parts of a well-formed key of this kind, or None."""
    if len(text) != len(prefix) + _LENGTH or not text.startswith(prefix):
        return None
    body, checksum = text[:-CHECKSUM_LENGTH], text[-CHECKSUM_LENGTH:]
    id_and_secret = body[len(prefix) :]
    if not _VALUES.issuperset(id_and_secret) or checksum != _checksum(body):
        return None
    return ApiKey(id_and_secret[:ID_LENGTH], id_and_secret[ID_LENGTH:], prefix)


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
