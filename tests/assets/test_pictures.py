"""What counts as a picture, and what is refused before it costs memory or time."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import io
import random
import resource
import struct
import time
import zipfile
import zlib
from collections.abc import Callable
from urllib.parse import quote_from_bytes

import pytest
from PIL import Image, features

from safelight.assets import pictures
from safelight.assets.pictures import (
    PictureLimits,
    PicturePool,
    check_picture,
    decode_base64,
    decode_data_url,
    make_thumbnail,
)
from safelight.errors import AssetError

FORMATS = [
    ("PNG", "image/png", "png"),
    ("JPEG", "image/jpeg", "jpg"),
    ("WEBP", "image/webp", "webp"),
    pytest.param(
        "AVIF", "image/avif", "avif",
        marks=pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF"),
    ),
]  # fmt: skip


def draw(form: str = "PNG", size: tuple[int, int] = (64, 48), mode: str = "RGB", **options: object) -> bytes:
    noise = random.Random(7).randbytes(size[0] * size[1] * 3)
    image = Image.frombytes("RGB", size, noise).convert(mode)
    target = io.BytesIO()
    image.save(target, form, **options)
    return target.getvalue()


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *, packed: bytes | None = None, extra: bytes = b"") -> bytes:
    """A PNG of 1-bit grey with a true or a lying header."""
    rows = zlib.compress(b"\0" * ((width // 8 + 2) * min(height, 4))) if packed is None else packed
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + extra + png_chunk(b"IDAT", rows) + png_chunk(b"IEND", b"")


def animated(form: str, frames: int, size: tuple[int, int]) -> bytes:
    images = [Image.new("RGB", size, (number * 40 % 256, number, 0)) for number in range(frames)]
    target = io.BytesIO()
    images[0].save(target, form, save_all=True, append_images=images[1:], lossless=True)
    return target.getvalue()


def refusal(data: bytes) -> tuple[str, bool]:
    with pytest.raises(AssetError) as caught:
        check_picture(data)
    return caught.value.reason, caught.value.is_retryable


def verdict(data: bytes) -> str:
    try:
        check_picture(data)
    except AssetError as error:
        return error.reason
    return "fine"


@pytest.mark.parametrize(("form", "content_type", "suffix"), FORMATS)
def test_a_picture_is_known_by_its_content(form: str, content_type: str, suffix: str) -> None:
    data = draw(form)
    found = check_picture(data)
    assert (found.content_type, found.suffix, found.width, found.height) == (content_type, suffix, 64, 48)
    assert (found.bytes, found.sha256) == (len(data), hashlib.sha256(data).digest())


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_colour_mode_of_png_is_a_picture_with_a_thumbnail(mode: str) -> None:
    image = Image.new("I;16", (64, 48), 40_000) if mode == "I;16" else None
    target = io.BytesIO()
    if image:
        image.save(target, "PNG")
    data = target.getvalue() or draw(mode=mode)
    assert check_picture(data).width == 64
    assert check_picture(make_thumbnail(data, side=16)).content_type == "image/webp"


def test_cmyk_is_a_picture_with_a_thumbnail() -> None:
    data = draw("JPEG", mode="CMYK")
    assert check_picture(data).content_type == "image/jpeg"
    assert check_picture(make_thumbnail(data, side=16)).width == 16


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"<!DOCTYPE html><html>",
        b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>',
        b'{"error": "expired"}',
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"GIF89a" + b"\0" * 40,
        b"BM" + b"\0" * 60,
        b"SIMPLE  =                    T" + b" " * 99,
        gzip.compress(draw(), mtime=0),
        b" " + draw(),
        b"\x89PNG\r\n\x1a\n" + b"<html>" * 9 + b"IEND\xaeB`\x82",
        b"\xff\xd8\xff" + b"\0" * 99 + b"\xff\xd9",
        b"RIFF\x10\0\0\0WEBPVP8 " + b"\0" * 99,
        b"\0\0\0\x1cftypavif" + b"\0" * 99,
        b"%PDF-1.7",
        b"II*\0" + b"\0" * 99,
        b"%!PS-Adobe-3.0 EPSF-3.0",
    ],
)
def test_what_is_no_picture_is_refused_and_may_be_fetched_again(data: bytes) -> None:
    assert refusal(data) == ("not_an_image", True)


def test_an_archive_is_no_picture_even_if_it_holds_one() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("a.png", draw())
    assert refusal(target.getvalue())[0] == "not_an_image"


def test_pillow_is_never_asked_to_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    real_open = Image.open

    def watched(source: io.BytesIO, **options: object) -> Image.Image:
        asked.append(options.get("formats"))
        return real_open(source, **options)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(Image, "open", watched)
    check_picture(draw("JPEG"))
    make_thumbnail(draw("WEBP"))
    assert asked == [["JPEG"], ["WEBP"]]


@pytest.mark.parametrize("form", ["GIF", "BMP", "TIFF", "ICO", "PPM", "JPEG2000"])
def test_other_formats_that_pillow_knows_are_refused(form: str) -> None:
    assert refusal(draw(form))[0] == "not_an_image"


@pytest.mark.parametrize(("form", "content_type", "suffix"), FORMATS)
def test_a_picture_cut_anywhere_is_refused_and_may_be_fetched_again(
    form: str, content_type: str, suffix: str
) -> None:
    data = draw(form)
    for length in {
        len(data) - 1,
        len(data) - 2,
        len(data) - 5,
        *range(8, len(data), max(1, len(data) // 40)),
    }:
        reason, is_retryable = refusal(data[:length])
        assert (reason in {"truncated", "not_an_image"}, is_retryable) == (True, True), length


def test_flipped_bits_never_raise_anything_but_our_error() -> None:
    for form in ("PNG", "JPEG", "WEBP"):
        data = draw(form)
        for position in range(0, len(data), max(1, len(data) // 150)):
            broken = bytearray(data)
            broken[position] ^= 0xFF
            assert verdict(bytes(broken)) in {"fine", "truncated", "not_an_image", "too_large"}


BOMBS: dict[str, Callable[[], bytes]] = {
    "50,000 × 50,000": lambda: png(50_000, 50_000, packed=b"x"),
    "the header claims the most a PNG can": lambda: png(2**31 - 1, 2**31 - 1, packed=b"x"),
    "one side too long": lambda: png(16_385, 1),
    "just over 40 megapixels": lambda: png(8_000, 5_001),
    "between the warning and the error of Pillow": lambda: png(8_000, 8_000),
    "a JPEG header of 65,535 × 65,535": lambda: draw("JPEG").replace(
        struct.pack(">HH", 48, 64), struct.pack(">HH", 65_535, 65_535), 1
    ),
    "too many frames of WebP": lambda: animated("WEBP", 101, (4, 4)),
    "too many pixels over all frames": lambda: animated("PNG", 12, (2_000, 1_700)),
    "too many bytes": lambda: b"\x89PNG\r\n\x1a\n" + bytes(50_000_000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_from_its_header(name: str) -> None:
    data = BOMBS[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began_s = time.process_time()
    assert refusal(data) == ("too_large", False)
    assert time.process_time() - began_s < 3, "of our own work, however busy the machine is"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "kilobytes"


@pytest.mark.parametrize("kind", [b"zTXt", b"iTXt", b"iCCP"])
def test_text_that_unpacks_to_gigabytes_is_refused_or_left_packed(kind: bytes) -> None:
    packed = zlib.compress(b"\0" * 200_000_000)
    payload = {b"zTXt": b"k\0\0", b"iTXt": b"k\0\1\0\0\0", b"iCCP": b"k\0\0"}[kind] + packed
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data = png(64, 64, packed=zlib.compress(b"\0" * 9 * 64), extra=png_chunk(kind, payload))
    assert verdict(data) in {"fine", "not_an_image", "truncated"}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 80_000, "kilobytes"


def test_a_header_that_promises_more_rows_than_there_are_is_truncated() -> None:
    assert refusal(png(4_000, 4_000)) == ("truncated", True)


def test_40_megapixels_and_a_short_animation_are_fine() -> None:
    assert check_picture(animated("WEBP", 3, (20, 20))).width == 20
    assert check_picture(animated("PNG", 3, (20, 20))).width == 20
    target = io.BytesIO()
    Image.new("1", (8_000, 5_000)).save(target, "PNG")
    assert check_picture(target.getvalue()).height == 5_000


def test_a_phone_photo_with_a_second_picture_inside_is_fine() -> None:
    target = io.BytesIO()
    Image.new("RGB", (60, 40)).save(target, "MPO", save_all=True, append_images=[Image.new("RGB", (30, 20))])
    found = check_picture(target.getvalue())
    assert (found.content_type, found.width) == ("image/jpeg", 60)


def test_a_thumbnail_stands_upright_and_carries_no_metadata() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "a secret place"
    data = draw("JPEG", (600, 300), exif=exif, comment=b"a secret comment")
    thumbnail = make_thumbnail(data, side=200)
    with Image.open(io.BytesIO(thumbnail)) as image:
        assert image.size == (100, 200)
        assert not image.getexif()
        assert {"exif", "icc_profile", "xmp"}.isdisjoint(image.info)
    assert b"secret" not in thumbnail


def test_a_thumbnail_keeps_transparency_and_scales_deep_grey() -> None:
    target = io.BytesIO()
    Image.new("RGBA", (64, 64), (255, 0, 0, 0)).save(target, "PNG")
    with Image.open(io.BytesIO(make_thumbnail(target.getvalue(), side=16))) as image:
        assert image.convert("RGBA").getchannel("A").tobytes() == bytes(16 * 16)
    deep = io.BytesIO()
    Image.new("I;16", (64, 64), 32_768).save(deep, "PNG")
    with Image.open(io.BytesIO(make_thumbnail(deep.getvalue(), side=16))) as image:
        assert abs(image.convert("L").tobytes()[8 * 16 + 8] - 128) < 6


def test_a_thumbnail_never_grows_and_a_bomb_has_none() -> None:
    assert check_picture(make_thumbnail(draw(size=(20, 10)))).width == 20
    with pytest.raises(AssetError, match="too large"):
        make_thumbnail(png(50_000, 50_000))


DATA = bytes(range(256)) + b"\xfb\xff\xfe~"
PLAIN = base64.b64encode(DATA).decode()


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.rstrip("="),
        base64.urlsafe_b64encode(DATA).decode(),
        base64.encodebytes(DATA).decode(),
        "\r\n".join(PLAIN[at : at + 64] for at in range(0, len(PLAIN), 64)),
        f"  {PLAIN} \n",
        " ".join(PLAIN),
        f"data:image/png;base64,{PLAIN}",
        f"DATA:image/jpeg;charset=utf-8;BASE64,{PLAIN.rstrip('=')}",
        f"data:;base64, {PLAIN}",
        f"data:text/html;base64,{PLAIN}",
        f"data:image/png;base64,{PLAIN.replace('+', '%2B').replace('/', '%2F').replace('=', '%3D')}",
        f"data:image/png,{quote_from_bytes(DATA)}",
    ],
)
def test_inline_bytes_are_read_however_an_upstream_wrote_them(text: str) -> None:
    assert decode_base64(text) == DATA


@pytest.mark.parametrize(
    "text",
    ["", "=", "  \n", "A", "AAAAA", "AA=A", "AA!A", "AAAA====AAAA", "图", "data:,", "data:image/png;base64,",
     "data:image/png;base64,%%%", "data:image/png;base64,A", "https://example.com/x.png", "data:,\ud83d"],
)  # fmt: skip
def test_malformed_inline_bytes_are_refused_for_good(text: str) -> None:
    with pytest.raises(AssetError) as caught:
        decode_base64(text)
    assert (caught.value.reason, caught.value.is_retryable) == ("not_an_image", False)


@pytest.mark.parametrize("text", ["ftp://x", "file:///etc/passwd", "blob:https://x", "dat:,x", PLAIN])
def test_only_a_data_url_is_a_data_url(text: str) -> None:
    with pytest.raises(AssetError):
        decode_data_url(text)


@pytest.mark.parametrize("prefix", ["", "data:image/png;base64,", "data:image/png,"])
def test_inline_bytes_over_the_cap_are_refused(prefix: str) -> None:
    with pytest.raises(AssetError) as caught:
        decode_base64(prefix + "A" * 60_000_000 + "A" * 20_000_000)
    assert (caught.value.reason, caught.value.is_retryable) == ("too_large", False)


async def test_the_pool_checks_like_the_function_and_keeps_the_loop_free() -> None:
    pool = PicturePool(threads=1)
    big = draw(size=(1_500, 1_500))
    job = asyncio.create_task(pool.check(big))
    turns = 0
    while not job.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert await job == check_picture(big)
    assert (await pool.thumbnail(big, side=64)).startswith(b"RIFF")
    assert turns > 5, "the loop went on meanwhile"
    await pool.aclose()


async def test_the_deadline_counts_work_not_waiting_and_a_stuck_thread_keeps_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = most = 0

    def slow(data: bytes, **_: object) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(float(data))
        running -= 1
        return data

    monkeypatch.setattr(pictures, "make_thumbnail", slow)
    pool = PicturePool(threads=2, timeout_s=0.5)
    assert await asyncio.gather(*[pool.thumbnail(b"0.1") for _ in range(8)]) == [b"0.1"] * 8
    with pytest.raises(AssetError) as caught:
        await pool.thumbnail(b"1.0")
    assert (caught.value.reason, caught.value.is_retryable) == ("timeout", True)
    await asyncio.gather(*[pool.thumbnail(b"0.1") for _ in range(4)])
    assert most == 2
    await pool.aclose()


async def test_a_small_file_with_a_large_picture_is_not_decoded_in_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = io.BytesIO()
    Image.new("1", (6_000, 6_000)).save(target, "PNG")
    assert len(target.getvalue()) < 65_536
    pool = PicturePool()
    hops = 0
    submit = pool._threads.submit

    def counted(*work: object) -> object:
        nonlocal hops
        hops += 1
        return submit(*work)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(pool._threads, "submit", counted)
    await pool.check(target.getvalue())
    assert hops == 1
    await pool.check(draw())
    assert hops == 1
    await pool.aclose()


def test_limits_can_be_tighter() -> None:
    for limits in (PictureLimits(max_side=60), PictureLimits(max_pixels=100), PictureLimits(max_bytes=9)):
        with pytest.raises(AssetError, match="too large"):
            check_picture(draw(), limits=limits)
