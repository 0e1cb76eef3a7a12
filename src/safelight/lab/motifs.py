"""Motifs: the things in the pictures, drawn as silhouettes."""

from math import cos, pi, sin

from PIL import ImageDraw

from safelight.lab.canvas import Canvas, Pen
from safelight.lab.palettes import Palette, mix

Brush = ImageDraw.ImageDraw


def stars(canvas: Canvas, palette: Palette) -> None:
    """Many faint stars and a few bright ones."""
    brush, random = ImageDraw.Draw(canvas.image), canvas.random
    for _ in range(170):
        x, y = random.random() * canvas.width, random.random() ** 1.4 * canvas.height * 0.62
        colour = mix(palette.sky[1], (255, 255, 245), random.uniform(0.25, 0.95))
        size = canvas.unit / 1024 * random.choice((0.6, 0.6, 0.9, 1.4))
        brush.ellipse((x - size, y - size, x + size, y + size), fill=colour)
    for _ in range(5):
        canvas.glow((random.random(), random.uniform(0.02, 0.4)), 0.018, (255, 255, 245), 0.9)


def snow_caps(canvas: Canvas, heights: list[float], palette: Palette) -> None:
    """Snow on the upper part of a rough ridge, ragged below."""
    top = min(heights)
    line = top + (max(heights) - top) * 0.42
    random = canvas.random

    edge = [height + max(0.0, line - height) * random.uniform(0.2, 0.8) for height in heights]

    def draw(brush: Brush, pen: Pen) -> None:
        upper = [pen.at(index / 128, height) for index, height in enumerate(heights)]
        lower = [pen.at(index / 128, height) for index, height in enumerate(edge)]
        brush.polygon([*upper, *reversed(lower)], fill=215)

    canvas.shape(
        [mix(palette.light, (255, 255, 255), 0.6), mix(palette.light, palette.far, 0.45)],
        draw,
        top=top - 0.01,
        bottom=line + 0.01,
    )


def pines(canvas: Canvas, palette: Palette, *, base: float, size: float, depth: float) -> None:
    """A row of conifers; depth 0 is far and hazy, 1 is near and dark."""
    random = canvas.random
    colour = mix(palette.far, palette.near, depth)

    def draw(brush: Brush, pen: Pen) -> None:
        x = -0.02
        while x < 1.02:
            tall = size * random.uniform(0.55, 1.15)
            foot = (x, base + random.uniform(-0.01, 0.02))
            for tier in range(6):
                low, wide = -tall * tier / 7, tall * 0.21 * (1 - tier / 7.2)
                tip = pen.near(foot, 0, low - tall * 0.3)
                brush.polygon([tip, pen.near(foot, wide, low), pen.near(foot, -wide, low)], fill=255)
            x += size * random.uniform(0.12, 0.34)
        brush.rectangle((pen.at(0, base - 0.005), pen.at(1, 1)), fill=255)

    canvas.shape(
        [mix(colour, palette.far, 0.15), colour, mix(colour, palette.near, 0.4)],
        draw,
        top=base - size * 1.7 * canvas.unit / canvas.height,
    )


def skyline(canvas: Canvas, palette: Palette, *, base: float, size: float, depth: float) -> None:
    """A row of towers with lit windows."""
    random = canvas.random
    towers, x = [], -0.02
    while x < 1.02:
        wide, tall = random.uniform(0.035, 0.085), size * random.uniform(0.25, 1) ** 1.3
        towers.append((x, wide, tall))
        x += wide * random.uniform(0.85, 1.1)

    def draw(brush: Brush, pen: Pen) -> None:
        for left, wide, tall in towers:
            brush.rectangle((pen.at(left, base - tall), pen.at(left + wide, base + 0.09)), fill=255)
            if tall > size * 0.7:
                middle = left + wide / 2
                brush.line(
                    (pen.at(middle, base - tall), pen.at(middle, base - tall - 0.05)), fill=255, width=3
                )

    colour = mix(palette.far, palette.near, depth)
    canvas.shape([colour, mix(colour, palette.sky[2], 0.28)], draw, top=base - size - 0.06, bottom=base + 0.1)
    if depth > 0.4:
        _windows(canvas, palette, towers, base)


def _windows(canvas: Canvas, palette: Palette, towers: list[tuple[float, float, float]], base: float) -> None:
    brush, random = ImageDraw.Draw(canvas.image), canvas.random
    for left, wide, tall in towers:
        columns, rows = max(2, int(wide * 90)), int(tall * 62)
        for place in range(columns * rows):
            if random.random() > 0.42:
                continue
            x = (left + wide * (place % columns + 0.3) / columns) * canvas.width
            y = (base - tall + (place // columns + 0.5) / 62) * canvas.height
            colour = mix(palette.near, palette.accent, random.uniform(0.35, 1))
            size = (wide * 0.42 / columns * canvas.width, 0.0075 * canvas.height)
            brush.rectangle((x, y, x + size[0], y + size[1]), fill=colour)


def birds(canvas: Canvas, palette: Palette) -> None:
    """A small flock far away."""
    random = canvas.random
    middle = (random.uniform(0.2, 0.8), random.uniform(0.16, 0.36))

    def draw(brush: Brush, pen: Pen) -> None:
        for _ in range(random.randint(4, 8)):
            x, y, wing = (
                random.uniform(-0.12, 0.12),
                random.uniform(-0.06, 0.06),
                random.uniform(0.009, 0.016),
            )
            for side in (-1, 1):
                box = pen.box(middle, x + side * wing, y, radius=(wing, wing * 0.8))
                brush.arc(box, 200 if side < 0 else 210, 330 if side < 0 else 340, fill=230, width=4)

    canvas.shape([mix(palette.near, palette.sky[0], 0.3)] * 2, draw, bottom=0.6)


def boat(canvas: Canvas, palette: Palette, *, horizon: float) -> None:
    """A sailing boat on the water."""
    at = (canvas.random.uniform(0.25, 0.75), horizon + 0.055)

    def draw(brush: Brush, pen: Pen) -> None:
        hull = [(-0.06, -0.012), (0.065, -0.012), (0.045, 0.012), (-0.045, 0.012)]
        sails = [
            [(0.002, -0.15), (0.002, -0.02), (0.052, -0.02)],
            [(-0.004, -0.13), (-0.004, -0.02), (-0.045, -0.02)],
        ]
        for corners in [hull, *sails]:
            brush.polygon([pen.near(at, x, y) for x, y in corners], fill=255)

    canvas.shape([mix(palette.near, palette.accent, 0.25), palette.near], draw)


def cat(canvas: Canvas, palette: Palette, *, base: float) -> None:
    """A sitting cat seen from behind, tail curled, looking at the light."""
    random = canvas.random
    at, side = (random.uniform(0.3, 0.7), base), random.choice((-1, 1))

    def draw(brush: Brush, pen: Pen) -> None:
        brush.ellipse(pen.box(at, 0, -0.085, radius=(0.082, 0.1)), fill=255)
        brush.ellipse(pen.box(at, 0, -0.17, radius=(0.056, 0.085)), fill=255)
        brush.ellipse(pen.box(at, 0, -0.262, radius=(0.06, 0.052)), fill=255)
        for ear in (-1, 1):
            corners = [(ear * 0.056, -0.27), (ear * 0.05, -0.352), (ear * 0.008, -0.3)]
            brush.polygon([pen.near(at, x, y) for x, y in corners], fill=255)
        for step in range(60):
            turn = step / 59
            x, y = side * (0.06 + 0.13 * sin(turn * pi * 0.8)), -0.012 - 0.17 * turn**2
            brush.ellipse(pen.box(at, x, y, radius=(0.015 - 0.005 * turn, 0.015 - 0.005 * turn)), fill=255)

    canvas.shape([mix(palette.near, palette.accent, 0.12), palette.near], draw)


def blossom(canvas: Canvas, palette: Palette, *, at: tuple[float, float], size: float) -> None:
    """One flower on a bent stem."""
    random = canvas.random
    petals, start, lean = random.randint(6, 9), random.uniform(0, pi), random.uniform(-0.05, 0.05)

    def stem(brush: Brush, pen: Pen) -> None:
        bend = [pen.near(at, lean * (step / 40) ** 2 * 4, step / 40 * 0.9) for step in range(41)]
        brush.line(bend, fill=255, width=max(2, int(size * 0.14 * pen.unit)), joint="curve")

    def ring(distance: float, radius: float, turn: float) -> None:
        def draw(brush: Brush, pen: Pen) -> None:
            for petal in range(petals):
                angle = start + turn + petal * 2 * pi / petals
                x, y = cos(angle) * size * distance, sin(angle) * size * distance * 0.86
                brush.ellipse(pen.box(at, x, y, radius=(size * radius, size * radius * 0.9)), fill=255)

        pale = mix(palette.accent, palette.light, 0.62 if turn else 0.25)
        canvas.shape([pale, mix(palette.accent, palette.near, 0.05 if turn else 0.22)], draw)

    canvas.shape([mix(palette.near, palette.far, 0.4), palette.near], stem)
    ring(0.66, 0.4, 0.0)
    ring(0.4, 0.3, pi / petals)
    canvas.disc(at, size * 0.25, mix(palette.near, palette.accent, 0.25))
    canvas.disc(at, size * 0.19, mix((255, 205, 90), palette.light, 0.15))


def shoe(canvas: Canvas, palette: Palette, *, base: float) -> None:
    """A sneaker in profile."""
    at = (0.5, base)
    upper = [(-0.3, -0.06), (-0.31, -0.2), (-0.27, -0.255), (-0.2, -0.23), (-0.13, -0.245), (-0.05, -0.21)]
    upper += [(0.06, -0.14), (0.17, -0.115), (0.27, -0.095), (0.315, -0.06), (0.32, -0.035), (-0.3, -0.035)]
    stripe = [(-0.13, -0.06), (-0.02, -0.195), (0.03, -0.165), (-0.06, -0.06)]

    def draw_upper(brush: Brush, pen: Pen) -> None:
        brush.polygon([pen.near(at, x, y) for x, y in upper], fill=255)
        brush.ellipse(pen.box(at, 0.25, -0.062, radius=(0.085, 0.05)), fill=255)
        brush.ellipse(pen.box(at, -0.27, -0.13, radius=(0.05, 0.11)), fill=255)

    def draw_sole(brush: Brush, pen: Pen) -> None:
        brush.rounded_rectangle(
            (pen.near(at, -0.325, -0.05), pen.near(at, 0.345, 0.0)), pen.unit * 0.025, fill=255
        )

    def draw_marks(brush: Brush, pen: Pen) -> None:
        brush.polygon([pen.near(at, x, y) for x, y in stripe], fill=235)
        for lace in range(4):
            x, y = -0.09 + lace * 0.048, -0.222 + lace * 0.027
            brush.line(
                (pen.near(at, x, y), pen.near(at, x + 0.045, y + 0.045)), fill=255, width=pen.unit // 90
            )

    canvas.shape(
        [mix(palette.accent, palette.light, 0.25), mix(palette.accent, palette.near, 0.3)], draw_upper
    )
    canvas.shape([(255, 255, 255), mix(palette.sky[2], (255, 255, 255), 0.4)], draw_sole)
    canvas.shape([(255, 255, 255), mix(palette.light, palette.accent, 0.12)], draw_marks)
