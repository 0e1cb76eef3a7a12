"""Pictures: `draw` turns a prompt into a PNG, always the same one."""

import hashlib
import io
import re
from functools import lru_cache
from random import Random

from PIL import Image, ImageChops, ImageDraw, ImageFont

from safelight.lab.canvas import PLAIN
from safelight.lab.scenes import paint_scene

PRE_DRAWN = (64, 64)
PRE_DRAWN_COUNT = 16
FORMATS: dict[str, dict[str, int]] = {"png": {"compress_level": 1}, "jpeg": {"quality": 88}, "webp": {}}
_PRE_DRAWN_WORDS = (
    "night sea mountain forest city desert flower shoe cat lake hills blue red green gold abstract"
)
_WORD = re.compile(r"\w+")
_GRAIN_SIDE = 256


def is_pre_drawn(width: int, height: int) -> bool:
    """Whether pictures of this size come from the small pre-drawn set."""
    return (width, height) == PRE_DRAWN


def draw(
    prompt: str, *, index: int, width: int, height: int, salt: str = "", format_name: str = "png"
) -> bytes:
    """A picture that depends on nothing but the arguments; any text will do, sides from 64 to 2048.

    `salt` names what else it was drawn from, such as the hashes of pictures that were sent along.
    """
    seed = hashlib.sha256(f"{index}|{prompt}{salt}".encode("utf-8", "surrogatepass")).digest()
    if is_pre_drawn(width, height):
        return _pre_drawn(seed[0] % PRE_DRAWN_COUNT, format_name)
    return _draw(prompt, Random(seed), (width, height), format_name)


@lru_cache(maxsize=PRE_DRAWN_COUNT * len(FORMATS))
def _pre_drawn(slot: int, format_name: str) -> bytes:
    return _draw(_PRE_DRAWN_WORDS.split()[slot], Random(slot), PRE_DRAWN, format_name)


def _draw(prompt: str, random: Random, size: tuple[int, int], format_name: str) -> bytes:
    words = frozenset(_WORD.findall(prompt[:2000].lower()))
    width, height = size
    image = paint_scene(words, width=width, height=height, random=random)
    image = ImageChops.add(image, _grain(image.size))
    if width > PRE_DRAWN[0]:
        _caption(image, prompt)
    file = io.BytesIO()
    image.save(file, format_name.upper(), **FORMATS[format_name])
    return file.getvalue()


@lru_cache(maxsize=4)
def _grain(size: tuple[int, int]) -> Image.Image:
    """Few grains and faint ones, the same for all pictures: every grain costs the PNG encoder time."""
    side = _GRAIN_SIDE
    specks = bytes(7 if value < 5 else 0 for value in Random(0).randbytes(side * side))
    tile = Image.frombytes("L", (side, side), specks)
    sheet = Image.new("L", size)
    for left in range(0, size[0], side):
        for top in range(0, size[1], side):
            sheet.paste(tile, (left, top))
    return Image.merge("RGB", (sheet, sheet, sheet))


def _caption(image: Image.Image, prompt: str) -> None:
    text = " ".join(prompt.encode("utf-8", "replace").decode().split())
    text = "".join(sign for sign in text if sign.isprintable())
    size = max(9, min(image.size) // 46)
    most = max(8, int(image.width * 0.86 / (size * 0.52)))
    if len(text) > most:
        text = text[: most - 1].rstrip() + "…"
    tall = int(size * 3.4)
    fade = Image.new("L", (1, 2))
    fade.putdata([0, 120])
    image.paste((0, 0, 0), (0, image.height - tall), fade.resize((image.width, tall), PLAIN))
    at = (image.width / 2, image.height - size * 1.15)
    ImageDraw.Draw(image).text(at, text, fill=(250, 246, 236), font=_font(size), anchor="mm")


@lru_cache(maxsize=32)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
