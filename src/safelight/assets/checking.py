"""Checking pictures: what the bytes really are, and whether every pixel is there."""

from __future__ import annotations

import builtins
import hashlib
import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from PIL import Image, ImageOps, features

from safelight.errors import AssetError


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """How large a picture may be; `max_pixels` counts the pixels of all frames."""

    max_bytes: int = 50_000_000
    max_pixels: int = 40_000_000
    max_side: int = 16_384
    max_frames: int = 100


@dataclass(frozen=True, slots=True)
class Picture:
    """What a fully decoded picture turned out to be; `bytes` is its length, `sha256` the 32 raw bytes.

    `is_uniform` says that every pixel is the same: some upstreams hand out a black picture in place of a blocked one.
    """

    content_type: str
    width: int
    height: int
    bytes: int
    sha256: builtins.bytes
    suffix: str
    is_uniform: bool = False


@dataclass(frozen=True, slots=True)
class _Format:
    name: str
    content_type: str
    suffix: str


_PNG = _Format("PNG", "image/png", "png")
_JPEG = _Format("JPEG", "image/jpeg", "jpg")
_WEBP = _Format("WEBP", "image/webp", "webp")
_AVIF = _Format("AVIF", "image/avif", "avif")

# Pillow merely warns above its limit and raises at twice that; here the limit is ours and final.
Image.MAX_IMAGE_PIXELS = PictureLimits().max_pixels
warnings.filterwarnings("error", category=Image.DecompressionBombWarning)

_HAS_AVIF = features.check("avif")
_BOMBS = (Image.DecompressionBombError, Image.DecompressionBombWarning, MemoryError)
_BROKEN = (
    OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError,
    RuntimeError, struct.error, zlib.error,
)  # fmt: skip


def check_picture(data: bytes, *, limits: PictureLimits = PictureLimits()) -> Picture:
    """Decode `data` wholly and say what it is, or raise AssetError.

    Reasons: `not_an_image` (retryable: an error page may be temporary), `truncated`, `too_large`.
    """
    if len(data) > limits.max_bytes:
        raise _too_large(f"{len(data)} bytes")
    kind = sniff(data)
    _check_ending(kind, data)
    with reading("not_an_image"):
        image = Image.open(io.BytesIO(data), formats=[kind.name])
    with image:
        width, height = image.size
        with reading("not_an_image"):
            check_size(image, limits)
        with reading("truncated"):
            _decode_frames(image, limits)
            is_uniform = _is_uniform(image)
    sha256 = hashlib.sha256(data).digest()
    return Picture(kind.content_type, width, height, len(data), sha256, kind.suffix, is_uniform)


def make_thumbnail(data: bytes, *, side: int = 384) -> bytes:
    """A WebP that fits into `side` × `side` pixels: upright, in RGB, without metadata."""
    kind = sniff(data)
    with reading("not_an_image"), Image.open(io.BytesIO(data), formats=[kind.name]) as image:
        check_size(image, PictureLimits())
        image.draft("RGB", (side, side))
        small = _to_rgb(image)
        small.thumbnail((side, side))
        upright = ImageOps.exif_transpose(small)
        target = io.BytesIO()
        upright.save(target, "WEBP", quality=80, exif=b"", icc_profile=b"", xmp=b"")
        return target.getvalue()


def sniff(data: bytes) -> _Format:
    """The format by content; names, headers and suffixes are hearsay."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _PNG
    if data.startswith(b"\xff\xd8\xff"):
        return _JPEG
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _WEBP
    if _HAS_AVIF and data[4:12] in (b"ftypavif", b"ftypavis"):
        return _AVIF
    raise AssetError("not_an_image", f"the bytes look like {_guess(data)}", is_retryable=True)


def pixels_claimed(data: bytes) -> int | None:
    """Pixels by the header of a PNG, None for other formats: cheap enough to ask before anything else."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or len(data) < 24:
        return None
    width, height = struct.unpack(">II", data[16:24])
    return int(width * height)


def _check_ending(kind: _Format, data: bytes) -> None:
    """Find cuts that the decoders forgive because no pixel is missing."""
    is_cut = False
    if kind is _PNG:
        is_cut = b"IEND\xaeB`\x82" not in data
    elif kind is _JPEG:
        is_cut = b"\xff\xd9" not in data
    elif kind is _WEBP:
        is_cut = int.from_bytes(data[4:8], "little") + 8 > len(data)
    if is_cut:
        raise AssetError("truncated", f"the {kind.name} has no end", is_retryable=True)


def check_size(image: Image.Image, limits: PictureLimits) -> None:
    width, height = image.size
    frames = getattr(image, "n_frames", 1)
    if max(width, height) > limits.max_side or frames > limits.max_frames:
        raise _too_large(f"{width}x{height}, {frames} frames")
    if width * height * frames > limits.max_pixels:
        raise _too_large(f"{width * height * frames} pixels")


def _decode_frames(image: Image.Image, limits: PictureLimits) -> None:
    image.load()
    pixels = image.width * image.height
    for frame in range(1, getattr(image, "n_frames", 1)):
        image.seek(frame)
        # Frames of a multi-picture JPEG have sizes of their own.
        pixels += image.width * image.height
        if pixels > limits.max_pixels:
            raise _too_large(f"{pixels} pixels")
        image.load()


def _is_uniform(image: Image.Image) -> bool:
    """Whether the picture is one plain colour; an animation never is."""
    try:
        bands = image.getextrema()
    except ValueError:
        return False  # a mode whose values Pillow does not compare
    pairs = bands if isinstance(bands[0], tuple) else (bands,)
    return getattr(image, "n_frames", 1) == 1 and all(low == high for low, high in pairs)


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        # 16-bit grey: converting straight to 8 bits would clip instead of scale.
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    return image.convert("RGBA" if has_alpha else "RGB")


@contextmanager
def reading(reason: str) -> Iterator[None]:
    """Turn whatever Pillow raises on hostile bytes into one AssetError."""
    try:
        yield
    except _BOMBS:
        raise _too_large("a decompression bomb") from None
    except _BROKEN as error:
        detail = f"the picture cannot be decoded ({type(error).__name__})"
        raise AssetError(reason, detail, is_retryable=True) from error


def _guess(data: bytes) -> str:
    head = data[:64].lstrip().lower()
    if head.startswith((b"<!doctype", b"<html")):
        return "text/html"
    if head.startswith((b"<?xml", b"<")):
        return "text/xml"
    return "application/json" if head.startswith((b"{", b"[")) else "no known picture"


def _too_large(detail: str) -> AssetError:
    return AssetError("too_large", f"the picture is too large: {detail}", is_retryable=False)
