"""Hostile pictures and hostile names, made anew from a seed."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

from PIL import Image, features

from tests.assets.test_local import BAD_KEYS, BAD_STEPS

FORMS = ("PNG", "JPEG", "WEBP", *(("AVIF",) if features.check("avif") else ()))
STRANGERS = ("GIF", "BMP", "TIFF", "ICO", "PPM", "JPEG2000", "PCX", "TGA", "SGI", "DDS", "EPS", "PDF")
"""Formats that Pillow writes and reads, and that we never take."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One hostile picture; `must` is the only good verdict where there is only one."""

    kind: str
    data: bytes
    must: frozenset[str]


PASSES = frozenset({"fine"})
REFUSED = frozenset({"not_an_image", "truncated", "too_large"})
EITHER = PASSES | REFUSED


def samples(seed: int) -> Iterator[Sample]:
    """Without end: each kind in turn."""
    random = Random(seed)
    while True:
        for make in KINDS:
            yield make(random)


def lying_png(random: Random) -> Sample:
    """A header that promises up to two billion pixels a side, above next to nothing."""
    width, height = (random.choice((1, 64, 4_000, 16_384, 16_385, 50_000, 2**31 - 1)) for _ in range(2))
    depth, colour = random.choice(((1, 0), (8, 2), (8, 6), (16, 6), (8, 3), (16, 0)))
    packed = zlib.compress(bytes(random.randrange(4_096)))
    rows = random.choice((b"", packed, random.randbytes(40)))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, random.randrange(2))
    data = _png(_chunk(b"IHDR", header), _chunk(b"IDAT", rows))
    # A stream of pixels that ends by itself is read as whole, its missing lines blank: no cut transfer looks like that.
    return Sample("lying header", data, EITHER if rows == packed else REFUSED)


def lying_jpeg(random: Random) -> Sample:
    """The sides in the frame's header are others."""
    sides = struct.pack(
        ">HH", random.choice((0, 1, 48, 16_385, 65_535)), random.choice((0, 1, 16_385, 65_535))
    )
    return Sample("lying header", drawn("JPEG").replace(struct.pack(">HH", 48, 64), sides, 1), EITHER)


def packed_rows(random: Random) -> Sample:
    """Rows that unpack to a thousand times what the header needs."""
    header = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    rows = packed_zeros(random.choice((20_000_000, 100_000_000)))
    return Sample("packed rows", _png(_chunk(b"IHDR", header), _chunk(b"IDAT", rows)), EITHER)


def packed_text(random: Random) -> Sample:
    """Texts, profiles and metadata that unpack to a hundred megabytes."""
    kind = random.choice((b"zTXt", b"iTXt", b"iCCP"))
    before = {b"zTXt": b"k\0\0", b"iTXt": b"k\0\1\0\0\0", b"iCCP": b"k\0\0"}[kind]
    packed = packed_zeros(random.choice((1_000_000, 100_000_000)))
    copies = random.choice((1, 1, 20))
    return Sample("packed text", _with_chunks(drawn("PNG"), _chunk(kind, before + packed) * copies), EITHER)


def many_chunks(random: Random) -> Sample:
    """Ten thousand small chunks, or one that is longer than the file."""
    if random.random() < 0.5:
        more = _chunk(b"tEXt", b"k\0v") * 10_000
    else:
        more = struct.pack(">I", random.choice((2**31 - 1, 2**32 - 1, 90_000_000))) + b"tEXtk\0v"
    return Sample("many chunks", _with_chunks(drawn("PNG"), more), EITHER)


def many_frames(random: Random) -> Sample:
    """An animation of more frames, or of more pixels over all of them, than a picture may have."""
    form = random.choice(("PNG", "WEBP"))
    return Sample("many frames", animated(form, random.choice((101, 150)), (8, 8)), frozenset({"too_large"}))


def too_large(random: Random) -> Sample:
    """A true picture beyond a limit."""
    size = random.choice(((16_385, 1), (1, 16_385), (8_000, 5_001)))
    return Sample("too large", plain(size), frozenset({"too_large"}))


def cut(random: Random) -> Sample:
    """The end is missing."""
    data = drawn(random.choice(FORMS))
    return Sample("cut", data[: random.randrange(len(data) - 12)], REFUSED)


def bent(random: Random) -> Sample:
    """Some bytes are others."""
    data = bytearray(drawn(random.choice(FORMS)))
    for _ in range(random.choice((1, 1, 4, 64))):
        data[random.randrange(len(data))] = random.randrange(256)
    return Sample("bent", bytes(data), EITHER)


def spliced(random: Random) -> Sample:
    """The beginning of one picture and the end of another."""
    first, second = drawn(random.choice(FORMS)), drawn(random.choice(FORMS))
    place = random.randrange(1, min(len(first), len(second)))
    return Sample("spliced", first[:place] + second[place:], EITHER)


def two_in_one(random: Random) -> Sample:
    """A true picture that is an archive, a page or a script as well: it is taken for what it shows, and no more."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        # Without a time of its own it would be stamped with the present one.
        file.writestr(zipfile.ZipInfo("index.html"), "<script>alert(1)</script>")
    more = random.choice(
        (archive.getvalue(), b"<html><script>alert(1)</script>", b"#!/bin/sh\nid\n", b"%PDF-1.7\n")
    )
    form = random.choice(("PNG", "JPEG"))
    return Sample("two in one", drawn(form) + more, PASSES)


def another_before(random: Random) -> Sample:
    """Something else stands before the picture."""
    before = random.choice(
        (b"GIF89a", b"<svg/>", b"%PDF-1.7\n", b"PK\3\4", b"\0", b"\xef\xbb\xbf", b"#!/bin/sh\n")
    )
    return Sample("another before", before + drawn(random.choice(FORMS)), frozenset({"not_an_image"}))


def stranger(random: Random) -> Sample:
    """A format that Pillow knows and we do not take."""
    return Sample("stranger", of_a_stranger(random.choice(STRANGERS)), frozenset({"not_an_image"}))


def renamed(random: Random) -> Sample:
    """The first bytes of a format that we take, and those of another one behind them."""
    head = random.choice(
        (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\x10\0\0\0WEBP", b"\0\0\0\x1cftypavif")
    )
    body = random.choice((of_a_stranger("GIF"), b"<svg xmlns='x'/>" * 9, random.randbytes(500), b""))
    ending = random.choice((b"", b"IEND\xaeB`\x82", b"\xff\xd9"))
    return Sample("renamed", head + body + ending, REFUSED)


def noise(random: Random) -> Sample:
    """Anything."""
    return Sample(
        "noise", random.randbytes(random.choice((0, 1, 12, 400, 70_000))), frozenset({"not_an_image"})
    )


KINDS: tuple[Callable[[Random], Sample], ...] = (
    lying_png, lying_jpeg, packed_rows, packed_text, many_chunks, many_frames, too_large, cut, bent, spliced,
    two_in_one, another_before, stranger, renamed, noise,
)  # fmt: skip


@cache
def packed_zeros(count: int) -> bytes:
    """So many bytes in a thousandth of the room."""
    return zlib.compress(bytes(count), 9)


@cache
def drawn(form: str) -> bytes:
    """A good picture of 64 × 48."""
    return _saved(Image.frombytes("RGB", (64, 48), Random(7).randbytes(64 * 48 * 3)), form)


@cache
def plain(size: tuple[int, int]) -> bytes:
    """A good picture of one colour."""
    return _saved(Image.new("1", size), "PNG")


@cache
def of_a_stranger(form: str) -> bytes:
    """A good picture of a format that we do not take."""
    return _saved(Image.new("RGB", (32, 32), "navy"), form)


@cache
def animated(form: str, frames: int, size: tuple[int, int]) -> bytes:
    """A good animation."""
    images = [Image.new("RGB", size, (number * 40 % 256, number, 0)) for number in range(frames)]
    target = io.BytesIO()
    images[0].save(target, form, save_all=True, append_images=images[1:], lossless=True)
    return target.getvalue()


def _saved(image: Image.Image, form: str) -> bytes:
    target = io.BytesIO()
    image.save(target, form)
    return target.getvalue()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png(*chunks: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + _chunk(b"IEND", b"")


def _with_chunks(png: bytes, more: bytes) -> bytes:
    """Behind the header, where readers look first."""
    return png[:33] + more + png[33:]


# ---------------------------------------------------------------------------- names


def names(seed: int) -> Iterator[str]:
    """Names that are no key of ours: the corpus first, then what it can be put together to."""
    yield from sorted(set(BAD_KEYS))
    random = Random(seed)
    harmless = re.compile(
        r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*"
    )  # some that are put together may be keys
    letters = "ab./\\\0~%-_ \n\r\t:;*?\"'<>|$&#!()[]{}éⅫ．／∕\u202e\u200b\ufeff"
    while True:
        good = f"{random.getrandbits(64):x}/{random.getrandbits(32):x}"
        step = random.choice(BAD_STEPS)
        odd = "".join(random.choice(letters) for _ in range(random.randrange(1, 40)))
        ways = (f"{good}/{step}", f"{step}/{good}", odd, f"{good}{odd}", f"../{good}", f"/{good}", good * 40,
                f"{good}/../../{odd}", f"{good}\0.png")  # fmt: skip
        name = random.choice(ways)
        if harmless.fullmatch(name) is None:
            yield name
