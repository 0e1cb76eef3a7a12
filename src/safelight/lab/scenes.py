"""Scenes: the words of a prompt become a landscape with something in it."""

from collections.abc import Callable, Set
from dataclasses import replace
from random import Random

from PIL import Image, ImageDraw, ImageEnhance

from safelight.lab import motifs
from safelight.lab.canvas import SMOOTH, Canvas, rolling
from safelight.lab.palettes import Palette, choose_palette, mix

Scene = Callable[[Canvas, Palette, float], None]


def paint_scene(words: Set[str], *, width: int, height: int, random: Random) -> Image.Image:
    """A picture without words on it."""
    canvas = Canvas(width, height, random)
    palette = choose_palette(words, random)
    scene = next((scene for names, scene in SCENES.items() if words & set(names.split())), None)
    scene = scene or random.choice((waves, hills, mountains, lake))
    canvas.sky(palette.sky if scene is not studio else [palette.sky[0], palette.sky[1], palette.sky[1]])
    sun_x = random.uniform(0.22, 0.78)
    if scene is not studio:
        _heaven(canvas, palette, sun_x)
    scene(canvas, palette, sun_x)
    return canvas.image


def _heaven(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    random = canvas.random
    at = (sun_x, random.uniform(0.15, 0.27) if palette.is_night else random.uniform(0.28, 0.46))
    if palette.is_night:
        motifs.stars(canvas, palette)
    canvas.glow(at, 0.75, mix(palette.light, palette.sky[2], 0.35), 0.6)
    canvas.clouds(mix(palette.sky[2], palette.light, 0.5), top=0.02, bottom=0.6, strength=0.5)
    canvas.glow(at, 0.25, palette.light, 0.75)
    radius = random.uniform(0.045, 0.09)
    canvas.disc(at, radius, mix(palette.light, (255, 255, 255), 0.35))
    if not palette.is_night and random.random() < 0.6:
        motifs.birds(canvas, palette)


def hills(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """Ridge behind ridge in the haze."""
    _ridges(canvas, palette, count=5, top=0.52, rough=0.0)


def mountains(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """Snowy peaks over foothills and firs."""
    random = canvas.random
    peaks = rolling(random, base=0.55, swing=0.06, waves=1.2, rough=0.3)
    canvas.ridge(peaks, [mix(palette.far, palette.near, 0.25), mix(palette.far, palette.sky[2], 0.55)])
    motifs.snow_caps(canvas, peaks, palette)
    _ridges(canvas, palette, count=3, top=0.66, rough=0.03)
    motifs.pines(canvas, palette, base=0.97, size=0.16, depth=1.0)


def forest(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """Rows of firs, each darker than the one behind."""
    _ridges(canvas, palette, count=1, top=0.5, rough=0.04)
    for row in range(4):
        motifs.pines(canvas, palette, base=0.6 + row * 0.12, size=0.12 + row * 0.075, depth=0.15 + row * 0.28)


def desert(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """Dunes, bright towards the light."""
    random = canvas.random
    for layer in range(4):
        share = layer / 3
        line = rolling(random, base=0.56 + layer * 0.11, swing=0.05 + layer * 0.012, waves=0.7)
        lit = mix(mix(palette.far, palette.light, 0.35), palette.near, share * 0.55)
        canvas.ridge(
            line, [lit, mix(lit, palette.near, 0.28), mix(palette.far, palette.near, 0.35 + share * 0.6)]
        )


def lake(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """Hills over still water."""
    canvas.ridge(
        rolling(canvas.random, base=0.56, swing=0.05, waves=1.1, rough=0.12),
        [mix(palette.far, palette.near, 0.2), mix(palette.far, palette.sky[2], 0.4)],
    )
    canvas.ridge(
        rolling(canvas.random, base=0.605, swing=0.02, waves=1.5, rough=0.02),
        [mix(palette.far, palette.near, 0.55), mix(palette.far, palette.near, 0.4)],
    )
    _water(canvas, palette, horizon=0.63, sun_x=sun_x)
    motifs.pines(canvas, palette, base=1.0, size=0.11, depth=1.0)


def sea(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """A path of light over open water, and a boat."""
    _water(canvas, palette, horizon=0.56, sun_x=sun_x)
    motifs.boat(canvas, palette, horizon=0.56)


def city(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """Towers in three depths at the waterside."""
    motifs.skyline(canvas, palette, base=0.7, size=0.3, depth=0.1)
    motifs.skyline(canvas, palette, base=0.72, size=0.36, depth=0.5)
    motifs.skyline(canvas, palette, base=0.75, size=0.26, depth=0.95)
    _water(canvas, palette, horizon=0.77, sun_x=sun_x)


def meadow(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """Flowers before soft hills."""
    random = canvas.random
    _ridges(canvas, palette, count=3, top=0.62, rough=0.0)
    for place in sorted(random.uniform(0.3, 1) for _ in range(4)):
        at = (random.uniform(0.06, 0.94), 0.86 - place * 0.28)
        motifs.blossom(canvas, palette, at=at, size=0.045 + place * 0.035)
    motifs.blossom(canvas, palette, at=(random.uniform(0.35, 0.65), random.uniform(0.4, 0.5)), size=0.15)


def prowl(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """A cat on a hill watches the evening."""
    _ridges(canvas, palette, count=3, top=0.58, rough=0.02)
    line = rolling(canvas.random, base=0.83, swing=0.02, waves=0.6)
    canvas.ridge(line, [mix(palette.near, palette.far, 0.12), palette.near])
    motifs.cat(canvas, palette, base=0.845)


def studio(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """A thing on a bright table, lit from above."""
    random = canvas.random
    tone = random.choice((palette.light, palette.near, mix(palette.far, palette.accent, 0.4)))
    palette = replace(palette, accent=mix(palette.accent, tone, random.uniform(0, 0.35)))
    canvas.glow((random.uniform(0.2, 0.8), random.uniform(0.1, 0.4)), 0.8, palette.light, 0.9)
    canvas.ridge([random.uniform(0.6, 0.7)] * 2, [mix(palette.sky[2], palette.light, 0.25), palette.sky[2]])
    shade = mix(palette.sky[2], palette.near, 0.55)
    shadow = Image.radial_gradient("L").point(lambda value: max(0, 150 - value))
    size = (int(canvas.unit * 0.8), int(canvas.unit * 0.11))
    left, top = (canvas.width - size[0]) // 2, int(canvas.height * 0.76) - size[1] // 2
    canvas.image.paste(shade, (left, top), shadow.resize(size, SMOOTH))
    motifs.shoe(canvas, palette, base=0.765)


def waves(canvas: Canvas, palette: Palette, sun_x: float) -> None:
    """Abstract bands that roll from the light into the dark."""
    random = canvas.random
    for layer in range(6):
        share = layer / 5
        line = rolling(random, base=0.44 + layer * 0.095, swing=0.06, waves=0.8 + share)
        body = mix(mix(palette.far, palette.accent, 0.5 * (layer % 2)), palette.near, share**1.3 * 0.92)
        canvas.ridge(line, [mix(body, palette.light, 0.28), body, mix(body, palette.near, 0.3)])


def _ridges(canvas: Canvas, palette: Palette, *, count: int, top: float, rough: float) -> None:
    step = (0.92 - top) / max(1, count)
    for layer in range(count):
        share = (layer + 1) / count if count > 1 else 0.1
        line = rolling(canvas.random, base=top + layer * step, swing=0.045, waves=0.9 + share, rough=rough)
        colour = mix(palette.far, palette.near, share**1.4)
        canvas.ridge(line, [colour, mix(colour, palette.sky[2], 0.35 * (1 - share) + 0.08)])


def _water(canvas: Canvas, palette: Palette, *, horizon: float, sun_x: float) -> None:
    image, random = canvas.image, canvas.random
    top = int(horizon * canvas.height)
    depth = canvas.height - top
    above = image.crop((0, max(0, top - depth), canvas.width, top))
    small = above.resize((max(1, canvas.width // 12), max(1, depth // 16)), Image.Resampling.BOX)
    mirror = small.transpose(Image.Transpose.FLIP_TOP_BOTTOM).resize((canvas.width, depth), SMOOTH)
    mirror = Image.blend(mirror, Image.new("RGB", mirror.size, mix(palette.near, palette.far, 0.3)), 0.3)
    image.paste(ImageEnhance.Brightness(mirror).enhance(0.92), (0, top))
    brush = ImageDraw.Draw(image)
    for _ in range(240):
        share = random.random() ** 1.5
        y = top + 1 + share * depth
        spread = 0.03 + share * 0.16
        is_lit = random.random() < 0.6
        x = random.gauss(sun_x, spread) if is_lit else random.random()
        long = (0.006 + 0.045 * share) * random.uniform(0.4, 1.4)
        bright = mix(palette.light, palette.sky[2], 0.4 * random.random())
        colour = mix(palette.sky[2], bright, 0.9) if is_lit else mix(palette.near, palette.far, 0.55)
        thick = max(1, int(canvas.unit * 0.0016 * (1 + 2 * share)))
        brush.line(((x - long) * canvas.width, y, (x + long) * canvas.width, y), fill=colour, width=thick)


SCENES: dict[str, Scene] = {
    "shoe shoes sneaker sneakers boot boots product": studio,
    "cat cats kitten katze kitty": prowl,
    "flower flowers rose roses garden tulip blume blossom": meadow,
    "city skyline street tokyo paris berlin london town building": city,
    "desert dune dunes sand canyon mars": desert,
    "forest tree trees woods jungle pine pines wald": forest,
    "sea ocean beach meer ship boat sail harbour wave waves": sea,
    "lake river water pond see": lake,
    "mountain mountains alps peak snow everest berg": mountains,
    "hill hills valley field landscape countryside": hills,
}
