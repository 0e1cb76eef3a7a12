"""Palettes: the light of a picture, chosen by the words of its prompt."""

import colorsys
from collections.abc import Set
from dataclasses import dataclass, replace
from random import Random

Colour = tuple[int, int, int]


@dataclass(slots=True, frozen=True)
class Palette:
    """The colours of one picture, sky from top to horizon, land from far to near."""

    sky: tuple[Colour, Colour, Colour]
    light: Colour
    far: Colour
    near: Colour
    accent: Colour
    is_night: bool = False


def _hex(text: str) -> Colour:
    return (int(text[0:2], 16), int(text[2:4], 16), int(text[4:6], 16))


def _palette(colours: str, *, is_night: bool = False) -> Palette:
    top, middle, low, light, far, near, accent = (_hex(part) for part in colours.split())
    return Palette((top, middle, low), light, far, near, accent, is_night)


_SHOE = "shoe shoes sneaker sneakers boot boots product"
NIGHT = _palette("070b24 1b2a5e 5a5a9a f4ecd0 3c4a80 080b1e ffcf70", is_night=True)
AURORA = _palette("050a1f 0e3350 2f8f86 e2fff0 245a6a 040d18 8dffc0", is_night=True)
WORDED = {
    "night moon midnight stars star nacht mond dark": NIGHT,
    "aurora northern arctic winter ice snow": AURORA,
    "sunset dusk evening abend autumn fall": _palette("2a1f56 b4476c ffb36b fff0c0 a8557a 1f1233 ff7a59"),
    "sunrise dawn morning spring morgen": _palette("5f86c4 f1a7a8 ffe3b8 fff6da b58fae 33304f ff8c7a"),
    "desert dune sand dunes canyon mars": _palette("3f6fa0 e8b98a ffe2b0 fff3cf d98f5c 5b2414 ff9a4d"),
    "forest tree trees wood jungle pine wald": _palette("7fb4b0 bfdcc0 f5f1cf fffbe0 7fa894 0e2a22 e3b04b"),
    "sea ocean lake water beach meer wave ship": _palette("1d5f9c 6fb6d6 f8e2c4 fff7dd 6d9fbd 0b2b45 ff8f6b"),
    "city street skyline tokyo paris berlin": _palette("1a1c4a 7a3f86 ff9e7d ffe3b0 6b4a8e 120f2b ffd166"),
    "mountain mountains alps hill peak": _palette("35609f 93b7dc fbe3cf fffbe6 8ea6cc 1c2b45 ffb37a"),
    "flower flowers rose garden tulip blume": _palette("8fb7dd f6c9d4 fff1dc fffdf0 b5a3c9 24422f ff5f86"),
    "cat cats kitten katze dog": _palette("3b2d66 d46a7e ffc98a fff2cc a15c86 1b1230 ffd56b"),
    _SHOE: _palette("d9dfe6 eceff2 c9d2db ffffff a9b5c1 27313c ff5a4f"),
}
LOOSE = (
    *list(WORDED.values())[2:9],
    _palette("123c52 2f8f8f f6dfa6 fff6d5 3d8a8f 08252e ff8a5c"),
    _palette("2c1a4d 7b4fa3 f4a6c0 fff0e6 76559c 170d2b ffd07a"),
    _palette("0f2e3d 5e8d8a f0c9a0 fff3dc 597f83 0c1d24 ec6f52"),
)
HUES = {
    "red crimson rot scarlet": 0.99,
    "orange amber": 0.075,
    "yellow gold golden gelb": 0.13,
    "green emerald grün gruen lime": 0.38,
    "teal turquoise cyan mint": 0.49,
    "blue azure blau navy": 0.6,
    "purple violet lavender lila": 0.75,
    "pink magenta rosa": 0.9,
}


def choose_palette(words: Set[str], random: Random) -> Palette:
    """The palette that the words ask for; unknown words get a pleasing one."""
    base = next((palette for names, palette in WORDED.items() if words & set(names.split())), None)
    hue = next((hue for names, hue in HUES.items() if words & set(names.split())), None)
    if hue is not None:
        if base is WORDED[_SHOE]:
            return replace(base, accent=_hsv(hue, 0.72, 0.92))
        return _around(hue + random.uniform(-0.015, 0.015), is_night=base is not None and base.is_night)
    return base or random.choice(LOOSE)


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """From the first colour (0) to the second (1)."""
    return (
        round(first[0] + (second[0] - first[0]) * share),
        round(first[1] + (second[1] - first[1]) * share),
        round(first[2] + (second[2] - first[2]) * share),
    )


def _around(hue: float, *, is_night: bool) -> Palette:
    dim = 0.45 if is_night else 1.0
    return Palette(
        sky=(
            _hsv(hue - 0.05, 0.75, 0.55 * dim),
            _hsv(hue, 0.58, 0.88 * dim),
            _hsv(hue + 0.06, 0.25, 1.0 * dim),
        ),
        light=_hsv(hue + 0.08, 0.12, 1.0),
        far=_hsv(hue - 0.02, 0.5, 0.75 * dim),
        near=_hsv(hue - 0.07, 0.75, 0.16),
        accent=_hsv(hue + 0.45, 0.6, 1.0),
        is_night=is_night,
    )


def _hsv(hue: float, saturation: float, value: float) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, saturation, value)
    return (round(red * 255), round(green * 255), round(blue * 255))
