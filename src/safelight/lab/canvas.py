"""The canvas: gradients, glows, clouds and soft-edged shapes, all from cheap Pillow operations."""

from collections.abc import Callable, Sequence
from math import pi, sin
from random import Random

from PIL import Image, ImageChops, ImageDraw

from safelight.lab.palettes import Colour, mix

Point = tuple[float, float]
SMOOTH = Image.Resampling.BICUBIC
PLAIN = Image.Resampling.BILINEAR


class Canvas:
    """A picture in the making; positions are shares of width and height, sizes shares of the short side."""

    def __init__(self, width: int, height: int, random: Random) -> None:
        self.width = width
        self.height = height
        self.unit = min(width, height)
        self.random = random
        self.image = Image.new("RGB", (width, height))

    def sky(self, colours: Sequence[Colour]) -> None:
        """Fill with a vertical gradient."""
        self.image.paste(gradient(colours, self.width, self.height))

    def glow(self, at: Point, radius: float, colour: Colour, strength: float) -> None:
        """Shine softly around a point."""
        size = max(4, int(radius * self.unit * 2))
        mask = _GLOW.point(lambda value: int(value * strength)).resize((size, size), PLAIN)
        left, top = int(at[0] * self.width - size / 2), int(at[1] * self.height - size / 2)
        self.image.paste(colour, (left, top), mask)

    def disc(self, at: Point, radius: float, colour: Colour) -> None:
        """A round body with a soft edge."""
        size = max(3, int(radius * self.unit * 2))
        mask = Image.new("L", (size * 2 + 4, size * 2 + 4))
        ImageDraw.Draw(mask).ellipse((2, 2, size * 2 + 1, size * 2 + 1), fill=255)
        left, top = int(at[0] * self.width - size / 2), int(at[1] * self.height - size / 2)
        self.image.paste(colour, (left, top), mask.reduce(2))

    def clouds(self, colour: Colour, *, top: float, bottom: float, strength: float) -> None:
        """Long soft clouds between two heights."""
        rough = Image.blend(self._noise(5, 9), self._noise(12, 28), 0.35)
        fade = Image.new("L", (1, 5))
        fade.putdata([0, 160, 255, 160, 0])
        soft = rough.point(lambda value: max(0, min(255, int((value - 128) * 3.2 * strength))))
        soft = ImageChops.multiply(soft, fade.resize(soft.size, SMOOTH))
        span = (self.width, max(2, int((bottom - top) * self.height)))
        self.image.paste(colour, (0, int(top * self.height)), soft.resize(span, SMOOTH))

    def shape(
        self,
        colours: Sequence[Colour],
        draw: Callable[[ImageDraw.ImageDraw, "Pen"], None],
        *,
        top: float = 0.0,
        bottom: float = 1.0,
    ) -> None:
        """Paint what `draw` draws (as a doubled mask) in a vertical gradient, with soft edges.

        `top` and `bottom` tell where it can be at most, so that no more of the mask is worked on.
        """
        above = min(max(0, int(top * self.height)), self.height - 1)
        below = min(self.height, max(above + 1, int(bottom * self.height) + 1))
        mask = Image.new("L", (self.width * 2, (below - above) * 2))
        draw(ImageDraw.Draw(mask), Pen(self, above * 2))
        box = mask.getbbox()
        if box is None:
            return
        left, upper = box[0] // 2, box[1] // 2
        right, lower = (box[2] + 1) // 2, (box[3] + 1) // 2
        soft = mask.reduce(2, (left * 2, upper * 2, right * 2, lower * 2))
        self.image.paste(gradient(colours, right - left, lower - upper), (left, above + upper), soft)

    def ridge(self, heights: Sequence[float], colours: Sequence[Colour]) -> None:
        """Land below a line of heights (shares of the height, left to right)."""
        step = 1 / (len(heights) - 1)

        def draw(brush: ImageDraw.ImageDraw, pen: "Pen") -> None:
            line = [pen.at(index * step, height) for index, height in enumerate(heights)]
            brush.polygon([pen.at(-0.01, 1.01), *line, pen.at(1.01, 1.01)], fill=255)

        self.shape(colours, draw, top=min(heights) - 0.01)

    def _noise(self, columns: int, rows: int) -> Image.Image:
        grains = Image.frombytes("L", (columns, rows), self.random.randbytes(columns * rows))
        return grains.resize((128, 96), SMOOTH)


class Pen:
    """Turns shares into positions on the doubled mask."""

    def __init__(self, canvas: Canvas, above: int) -> None:
        self._above = above
        self._width = canvas.width * 2
        self._height = canvas.height * 2
        self.unit = canvas.unit * 2

    def at(self, x: float, y: float) -> Point:
        """A position from shares of width and height."""
        return (x * self._width, y * self._height - self._above)

    def near(self, at: Point, x: float, y: float) -> Point:
        """A position away from another one, in shares of the short side."""
        return (
            at[0] * self._width + x * self.unit,
            at[1] * self._height + y * self.unit - self._above,
        )

    def box(self, at: Point, x: float, y: float, *, radius: tuple[float, float]) -> tuple[Point, Point]:
        """The box of an ellipse around a position near another one."""
        return (
            self.near(at, x - radius[0], y - radius[1]),
            self.near(at, x + radius[0], y + radius[1]),
        )


def gradient(colours: Sequence[Colour], width: int, height: int) -> Image.Image:
    """Colours from top to bottom, evenly spaced."""
    strip = Image.new("RGB", (1, 64))
    last = len(colours) - 1
    for row in range(64):
        place = row / 63 * last
        index = min(int(place), last - 1) if last else 0
        second = colours[min(index + 1, last)]
        strip.putpixel((0, row), mix(colours[index], second, place - index))
    return strip.resize((1, max(1, height)), PLAIN).resize(
        (max(1, width), max(1, height)), Image.Resampling.NEAREST
    )


def rolling(random: Random, *, base: float, swing: float, waves: float, rough: float = 0.0) -> list[float]:
    """A line of heights made of a few sines, and as rough as rock where asked."""
    parts = [
        (waves * 2**power * random.uniform(0.8, 1.25), random.uniform(0, 2 * pi), swing * 0.5**power)
        for power in range(3)
    ]
    heights = [
        base - sum(size * sin(wave * index / 128 * 2 * pi + start) for wave, start, size in parts) * 0.6
        for index in range(129)
    ]
    return [height - jag for height, jag in zip(heights, _jags(random, rough), strict=True)]


def _jags(random: Random, rough: float) -> list[float]:
    """Midpoint displacement over 129 points."""
    points = [0.0] * 129
    step, size = 128, rough
    while step > 1 and rough:
        for start in range(0, 128, step):
            middle = (points[start] + points[start + step]) / 2
            points[start + step // 2] = middle + random.uniform(-0.35, 1) * size
        step //= 2
        size *= 0.52
    return points


_GLOW = Image.radial_gradient("L").point(lambda value: int(255 * max(0.0, 1 - value / 180) ** 2))
