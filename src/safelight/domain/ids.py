"""Identifiers: UUIDs that sort by time of creation, and those that follow from content."""

from __future__ import annotations

import hashlib
import secrets
import time
from datetime import datetime
from uuid import UUID


def new_id() -> UUID:
    """A UUIDv7 (RFC 9562, section 5.7): 48 bits of unix milliseconds, 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    value |= 0b10 << 62 | secrets.randbits(62)
    return UUID(int=value)


def first_id(moment: datetime) -> UUID:
    """The least UUIDv7 of a moment's millisecond: whatever was made from then on has this id or a greater one."""
    return UUID(int=(int(moment.timestamp() * 1000) & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | 0b10 << 62)


def content_id(account_id: UUID, sha256: bytes) -> UUID:
    """A UUIDv8 (RFC 9562, section 5.8): the same content of the same account has the same id for ever.

    So a client that hands in a picture again, even after the upload has expired, sends the very same task.
    """
    value = int.from_bytes(hashlib.sha256(account_id.bytes + sha256).digest()[:16])
    value = value & ~(0xF << 76) | 0x8 << 76
    return UUID(int=value & ~(0b11 << 62) | 0b10 << 62)
