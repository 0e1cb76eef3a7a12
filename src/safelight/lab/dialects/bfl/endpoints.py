"""Black Forest Labs' endpoints, one a model: the fields that each takes, read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field

from safelight.lab.speech.fields import Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option

MOST_PIXELS = 4_000_000
RATIO_AREA = 1024 * 1024
_RATIOS = ("21:9", "16:9", "4:3", "3:2", "1:1", "2:3", "3:4", "9:16", "9:21")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What one model takes; `step`, `low` and `high` are for width and height, 0 where there are none."""

    step: int = 16
    low: int = 64
    high: int = 4096
    ratios: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    is_picture_required: bool = False
    mask: str | None = None
    tolerance: int = 6
    wholes: dict[str, tuple[int, int]] = field(default_factory=dict)
    numbers: dict[str, tuple[float, float]] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


def _inputs(most: int) -> tuple[str, ...]:
    return ("input_image", *(f"input_image_{number}" for number in range(2, most + 1)))


_FLUX_2 = Endpoint(pictures=_inputs(8), tolerance=5)
_KLEIN = Endpoint(pictures=_inputs(4), tolerance=5)
_KONTEXT = Endpoint(step=0, ratios=_RATIOS, pictures=_inputs(4), flags=("prompt_upsampling",))
ENDPOINTS = {
    "flux-2-pro": _FLUX_2,
    "flux-2-max": _FLUX_2,
    "flux-2-flex": Endpoint(
        pictures=_inputs(8),
        tolerance=5,
        wholes={"steps": (1, 50)},
        numbers={"guidance": (1.5, 10)},
        flags=("prompt_upsampling",),
    ),
    "flux-2-klein-4b": _KLEIN,
    "flux-2-klein-9b": _KLEIN,
    "flux-kontext-pro": _KONTEXT,
    "flux-kontext-max": _KONTEXT,
    # Of this one it is said that its sides are multiples of 32 (not verified): the stricter reading.
    "flux-pro-1.1": Endpoint(
        step=32, low=256, high=1440, pictures=("image_prompt",), flags=("prompt_upsampling",)
    ),
    "flux-pro-1.1-ultra": Endpoint(
        step=0,
        ratios=_RATIOS,
        pictures=("image_prompt",),
        numbers={"image_prompt_strength": (0, 1)},
        flags=("prompt_upsampling", "raw"),
    ),
    "flux-pro-1.0-fill": Endpoint(
        step=0,
        pictures=("image",),
        is_picture_required=True,
        mask="mask",
        wholes={"steps": (15, 50)},
        numbers={"guidance": (1.5, 100)},
        flags=("prompt_upsampling",),
    ),
}
OPTIONS = {
    "seed": Option(20_261_129),
    "output_format": Option("png"),
    "prompt_upsampling": Option(
        True, only=[name for name, endpoint in ENDPOINTS.items() if "prompt_upsampling" in endpoint.flags]
    ),
}


def read_size(fields: Fields, endpoint: Endpoint, pictures: list[Picture]) -> tuple[int, int]:
    """Width and height as given, by the ratio, or those of the picture."""
    if endpoint.step:
        sides = [_side(fields, name, endpoint) for name in ("width", "height")]
        if None not in sides and sides[0] * sides[1] > MOST_PIXELS:
            raise fields.fault("value", "width", "the picture is larger than 4 megapixels")
        return sides[0] or _own(pictures)[0], sides[1] or _own(pictures)[1]
    ratio = fields.choice("aspect_ratio", endpoint.ratios, None) if endpoint.ratios else None
    if ratio is None:
        return _own(pictures)
    wide, high = map(int, ratio.split(":"))
    scale = (RATIO_AREA / (wide * high)) ** 0.5
    return round(wide * scale / 16) * 16, round(high * scale / 16) * 16


def read_the_rest(fields: Fields, endpoint: Endpoint) -> None:
    """Take what does not matter here, and refuse what the endpoint does not know."""
    fields.whole("safety_tolerance", 2, low=0, high=endpoint.tolerance)
    for name, (low, high) in endpoint.wholes.items():
        fields.whole(name, None, low=low, high=high)
    for name, (least, most) in endpoint.numbers.items():
        fields.number(name, None, low=least, high=most)
    for name in endpoint.flags:
        fields.flag(name, False)
    fields.close()


def _side(fields: Fields, name: str, endpoint: Endpoint) -> int:
    side: int = fields.whole(name, 0, low=endpoint.low, high=endpoint.high)
    if side % endpoint.step:
        raise fields.fault("value", name, f"must be a multiple of {endpoint.step}")
    return side


def _own(pictures: list[Picture]) -> tuple[int, int]:
    return (pictures[0].width, pictures[0].height) if pictures else (1024, 1024)
