"""Pictures that callers send along: fetched or decoded, and looked at until they prove to be pictures."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import io
import re
from collections.abc import Collection
from dataclasses import dataclass

import aiohttp
from PIL import Image

from safelight.lab.speech.fields import Fault, Path

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
FETCH_MOST, FETCH_S = 32 << 20, 10.0
_DATA_URL = re.compile(r"data:(image/[a-z0-9.+-]+);base64,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that came along."""

    sha256: str
    width: int
    height: int
    format: str
    has_alpha: bool
    bytes: int


class Inputs:
    """Reads the pictures of submits."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def read(
        self, source: object, path: Path, *, forms: Collection[str] = ("url", "data"), most: int = FETCH_MOST
    ) -> Picture:
        """A picture given as text: `url` (http or https), `data` (a data URL) or `base64` (bare).

        Raises Fault of the kind `picture` or `type` at `path` for whatever is none.
        """
        if not isinstance(source, str):
            raise Fault("type", path, "must be a string")
        if source.startswith(("http://", "https://")) and "url" in forms:
            return await self.check(await self._fetch(source, path, most), path, most=most)
        if (match := _DATA_URL.fullmatch(source)) and "data" in forms:
            picture = await self.check(_decoded(match[2], path), path, most=most)
            if match[1].replace("/jpg", "/jpeg") != f"image/{picture.format.lower()}":
                raise Fault("picture", path, f"is {picture.format}, not {match[1]}")
            return picture
        if "base64" in forms and not source.startswith("data:"):
            return await self.check(_decoded(source, path), path, most=most)
        raise Fault("picture", path, f"must be given as {' or '.join(forms)}")

    async def check(self, data: bytes, path: Path, *, most: int = FETCH_MOST) -> Picture:
        """A picture given as bytes."""
        if len(data) > most:
            raise Fault("picture", path, f"is larger than {most} bytes")
        try:
            return await asyncio.to_thread(_looked_at, data)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            raise Fault("picture", path, "is not a readable picture") from None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _fetch(self, url: str, path: Path, most: int) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(FETCH_S))
        try:
            async with self._session.get(url) as answer:
                if answer.status != 200:
                    raise Fault("picture", path, f"cannot be fetched: status {answer.status}")
                data = bytearray()
                async for chunk in answer.content.iter_chunked(1 << 16):
                    data += chunk
                    if len(data) > most:
                        break
                return bytes(data)
        except (aiohttp.ClientError, TimeoutError, ValueError):
            raise Fault("picture", path, "cannot be fetched") from None


def _decoded(text: str, path: Path) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Fault("picture", path, "is not base64") from None


def _looked_at(data: bytes) -> Picture:
    with Image.open(io.BytesIO(data), formats=FORMATS) as image:
        image.load()
        return Picture(
            sha256=hashlib.sha256(data).hexdigest(),
            width=image.width,
            height=image.height,
            format=image.format or "",
            has_alpha="A" in image.getbands() or "transparency" in image.info,
            bytes=len(data),
        )
