"""Pictures of the tests' own, good and bad ones."""

from __future__ import annotations

import base64
import io
import struct
import zlib

from PIL import Image


def picture(kind: str = "PNG", *, side: int = 16, shade: int = 90, mode: str = "RGB") -> bytes:
    """A small picture of one shade."""
    file = io.BytesIO()
    Image.new("RGB", (side, side), (shade, shade, shade)).convert(mode).save(file, kind)
    return file.getvalue()


def png(*, side: int = 16, shade: int = 90) -> bytes:
    """A small PNG."""
    return picture(side=side, shade=shade)


def bomb(side: int = 30_000) -> bytes:
    """A PNG of a few kilobytes whose pixels would fill gigabytes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(100_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def data_url(data: bytes, kind: str = "image/png") -> str:
    """The same as a data URL."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
