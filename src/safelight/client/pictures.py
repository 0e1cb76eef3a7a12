"""Pictures of a task as callers give them: files and bytes of their own, or names that the service knows."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from safelight.client.errors import FileUnreadable

Picture = str | Path | bytes
"""A file, its bytes, or what the service reads itself: an upload id, an https URL, a data URL."""

MOST_BYTES = 256 * 1024 * 1024
"""Ten times what a service takes by default; it says itself how much that is."""
_NAME = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:https?://|data:).+", re.IGNORECASE | re.DOTALL
)
_TYPES = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"RIFF", "image/webp"))


def is_name(text: str) -> bool:
    """Whether the service can read it itself; anything else is a file of ours."""
    return _NAME.fullmatch(text) is not None


def media_type_of(data: bytes) -> str:
    """What the bytes look like; the service looks for itself and believes nobody."""
    return next((name for start, name in _TYPES if data.startswith(start)), "image/avif")


def read_picture(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of a file, if there are so many at most.

    Raises:
        FileUnreadable: it cannot be read, is too large, or is no file at all: a device or a pipe may never end.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise FileUnreadable(f"{path} cannot be read: Not a regular file")
        if found.st_size > most_bytes:
            raise FileUnreadable(f"{path} is larger than {most_bytes:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {error.strerror}") from None
