"""Masks: whatever a customer sends says where a picture may change, and every provider reads it its own way."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from safelight.assets.checking import check_picture
from safelight.assets.masks import make_mask
from safelight.assets.pictures import PicturePool
from safelight.domain.provider import MaskStyle
from safelight.errors import AssetError

SIZE = (6, 4)
HOLE = (1, 1)
"""The one pixel that may change."""
OTHER = (4, 2)


def saved(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def grey(mode: str = "L") -> bytes:
    """White where it may change."""
    image = Image.new("L", SIZE, 0)
    image.putpixel(HOLE, 255)
    return saved(image.convert(mode))


def sixteen_bits() -> bytes:
    image = Image.new("I;16", SIZE, 0)
    image.putpixel(HOLE, 65_535)
    return saved(image)


def holed(mode: str = "RGBA", colour: int = 255) -> bytes:
    """Transparent where it may change; the colours say nothing."""
    image = Image.new("RGBA", SIZE, (colour, colour, colour, 255))
    image.putpixel(HOLE, (colour, colour, colour, 0))
    return saved(image.convert(mode))


def palette_with_hole() -> bytes:
    image = Image.new("P", SIZE, 0)
    image.putpalette([255, 255, 255, 0, 0, 0])
    image.putpixel(HOLE, (1))
    return saved(image, transparency=1)


SPELLINGS = {
    "grey": grey(),
    "black and white": grey("1"),
    "colour": grey("RGB"),
    "palette": grey("P"),
    "16 bits": sixteen_bits(),
    "opaque": grey("RGBA"),
    "opaque grey": grey("LA"),
    "hole in white": holed(),
    "hole in black": holed(colour=0),
    "hole in grey": holed("LA"),
    "hole in a palette": palette_with_hole(),
    "webp": saved(Image.open(io.BytesIO(holed())), "WEBP", lossless=True, exact=True),
}


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize(
    ("style", "mode", "hole", "rest"),
    [
        (MaskStyle.WHITE, "L", 255, 0),
        (MaskStyle.BLACK, "L", 0, 255),
        (MaskStyle.CLEAR, "RGBA", (0, 0, 0, 0), (0, 0, 0, 255)),
    ],
)
def test_every_spelling_of_a_mask_is_read_and_written_in_every_style(
    name: str, style: MaskStyle, mode: str, hole: object, rest: object
) -> None:
    made = make_mask(SPELLINGS[name], style)
    assert made == make_mask(SPELLINGS[name], style)
    with Image.open(io.BytesIO(made)) as image:
        assert (image.format, image.mode, image.size) == ("PNG", mode, SIZE)
        assert image.getpixel(HOLE) == hole
        assert image.getpixel(OTHER) == rest


def test_what_lies_between_stays_between() -> None:
    image = Image.new("RGBA", SIZE, (9, 9, 9, 255))
    image.putpixel(HOLE, (9, 9, 9, 55))
    with Image.open(io.BytesIO(make_mask(saved(image), MaskStyle.WHITE))) as made:
        assert (made.getpixel(HOLE), made.getpixel(OTHER)) == (200, 0)
    soft = Image.new("L", SIZE, 100)
    with Image.open(io.BytesIO(make_mask(saved(soft), MaskStyle.CLEAR))) as made:
        assert made.getpixel(HOLE) == (0, 0, 0, 155)


def test_a_jpeg_is_a_mask_too() -> None:
    image = Image.new("CMYK", (64, 64), (0, 0, 0, 255))
    image.paste((0, 0, 0, 0), (0, 0, 32, 64))
    with Image.open(io.BytesIO(make_mask(saved(image, "JPEG"), MaskStyle.WHITE))) as made:
        assert min(made.crop((0, 0, 24, 64)).tobytes()) > 250
        assert max(made.crop((40, 0, 64, 64)).tobytes()) < 5


def test_a_mask_turned_twice_is_itself() -> None:
    once = make_mask(grey(), MaskStyle.CLEAR)
    assert make_mask(once, MaskStyle.WHITE) == make_mask(grey(), MaskStyle.WHITE)


@pytest.mark.parametrize("data", [b"", b"<html>", grey()[:-30], b"\x89PNG\r\n\x1a\n" + bytes(100)])
def test_what_is_no_picture_is_no_mask(data: bytes) -> None:
    with pytest.raises(AssetError) as caught:
        make_mask(data, MaskStyle.WHITE)
    assert caught.value.reason in ("not_an_image", "truncated")


async def test_masks_are_made_beside_the_event_loop() -> None:
    pool = PicturePool()
    made = await pool.mask(holed(), MaskStyle.CLEAR)
    await pool.aclose()
    assert check_picture(made).content_type == "image/png"
