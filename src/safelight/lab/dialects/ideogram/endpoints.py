"""Ideogram's endpoints: what each takes, read and checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from safelight.lab.speech.fields import Fields
from safelight.lab.speech.forms import Part
from safelight.lab.speech.inputs import Inputs, Picture

PICTURE_MOST = 25_000_000
_SIZE = re.compile(r"([1-9][0-9]{2,3})x([1-9][0-9]{2,3})")
_UPRIGHT = [
    "2048x2048",
    "1024x1024",
    "1440x2880",
    "1664x2496",
    "1792x2240",
    "1440x2560",
    "1600x2560",
    "1728x2304",
    "1296x3168",
    "1152x2944",
    "1248x3328",
    "1280x3072",
    "1024x3072",
    "896x1120",
    "864x1152",
    "832x1248",
    "800x1280",
    "720x1280",
    "720x1440",
]
PRESETS = {*_UPRIGHT, *("x".join(reversed(size.split("x"))) for size in _UPRIGHT)}
RATIOS = {
    "1x1": (1024, 1024),
    "1x2": (704, 1408),
    "1x3": (576, 1728),
    "9x16": (736, 1312),
    "10x16": (800, 1280),
    "2x3": (832, 1248),
    "3x4": (864, 1152),
    "4x5": (896, 1120),
    "16x9": (1312, 736),
    "16x10": (1280, 800),
    "3x2": (1248, 832),
    "4x3": (1152, 864),
    "5x4": (1120, 896),
    "2x1": (1408, 704),
    "3x1": (1728, 576),
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Which files an endpoint needs and may have (with how many), and how it is told the size."""

    operation: str
    needs: Sequence[str] = ()
    may_have: Sequence[tuple[str, int]] = ()
    size: str = "none"
    speeds: Sequence[str] = ()
    qualities: Sequence[str] = ()
    has_free_sizes: bool = False


_SPEEDS = ("flash", "turbo", "default", "quality")
_QUALITIES = ("low", "medium", "high")
ENDPOINTS = {
    "generate/ideogram-4-5": Endpoint(
        "generate", may_have=(("images", 5), ("mask", 1)), size="size", qualities=("very_low", *_QUALITIES)
    ),
    "generate/ideogram-4-6": Endpoint(
        "generate",
        may_have=(("images", 5), ("mask", 1)),
        size="size",
        qualities=("very_low", *_QUALITIES),
        has_free_sizes=True,
    ),
    "generate/ideogram-4": Endpoint("generate", size="resolution", speeds=_SPEEDS[1:]),
    "generate/ideogram-3": Endpoint("generate", size="aspect_ratio", speeds=_SPEEDS),
    "precise-edit/ideogram-4-5": Endpoint(
        "edit",
        needs=("image",),
        may_have=(("mask", 1), ("reference_images", 4)),
        qualities=("very_low", *_QUALITIES),
    ),
    "remix/ideogram-3": Endpoint("edit", needs=("image",), size="aspect_ratio", speeds=_SPEEDS),
    "inpaint/ideogram-3": Endpoint("inpaint", needs=("image", "mask"), speeds=_SPEEDS),
}


async def read_files(
    endpoint: Endpoint, fields: Fields, parts: Sequence[Part], inputs: Inputs
) -> tuple[list[Picture], Picture | None]:
    """The pictures in order, and the mask, which has to be as large as the first of them."""
    most = {**dict.fromkeys(endpoint.needs, 1), **dict(endpoint.may_have)}
    pictures: list[Picture] = []
    mask: Picture | None = None
    for part in parts:
        most[part.name] = most.get(part.name, 0) - 1
        if most[part.name] < 0:
            raise fields.fault("unknown", part.name, "is not allowed, or not so often")
        picture = await inputs.check(part.data, (part.name,), most=PICTURE_MOST)
        if part.name == "mask":
            mask = picture
        else:
            pictures.append(picture)
    for name in endpoint.needs:
        if most[name]:
            raise fields.fault("missing", name, "is required")
    if mask and (not pictures or (pictures[0].width, pictures[0].height) != (mask.width, mask.height)):
        raise fields.fault("picture", "mask", "must have the size of the image")
    return pictures, mask


def read_size(endpoint: Endpoint, fields: Fields, pictures: Sequence[Picture]) -> tuple[int, int]:
    """Width and height, in the words of the endpoint; without any, those of the picture."""
    if endpoint.size == "aspect_ratio":
        ratio = fields.choice("aspect_ratio", tuple(RATIOS), None)
        resolution = fields.text("resolution", None)
        if ratio and resolution:
            raise fields.fault("value", "resolution", "and aspect_ratio exclude each other")
        return _exact(fields, "resolution", resolution) if resolution else RATIOS[ratio or "1x1"]
    if endpoint.size != "none":
        size = fields.text(endpoint.size, "auto")
        if size not in {"auto", "source"}:
            most = 4096 if endpoint.has_free_sizes else 2048
            return _exact(fields, endpoint.size, size, most if pictures or endpoint.has_free_sizes else None)
        if size == "source" and not pictures:
            raise fields.fault("value", endpoint.size, "source needs an image")
    if not pictures:
        return 2496, 1664  # it chooses by the prompt
    return min(max(pictures[0].width, 64), 2048), min(max(pictures[0].height, 64), 2048)


def read_the_rest(endpoint: Endpoint, fields: Fields) -> None:
    """Take what does not matter here, and refuse what the endpoint does not know."""
    if endpoint.size != "none":
        fields.choice("magic_prompt", ("auto", "on", "off"), "auto")
    if endpoint.speeds:
        fields.choice("rendering_speed", endpoint.speeds, "default")
        fields.choice("style_type", ("auto", "general", "realistic", "design", "fiction"), "auto")
        fields.text("negative_prompt", "")
    if endpoint.qualities:
        fields.choice("quality", endpoint.qualities, "high")
        fields.flag("enable_copyright_detection", False)
    fields.close()


def _exact(fields: Fields, name: str, size: str, most: int | None = None) -> tuple[int, int]:
    """A size out of the list, or with `most` any that is no larger than a square of such sides."""
    match = _SIZE.fullmatch(size)
    if match is None or (most is None and size not in PRESETS):
        raise fields.fault("value", name, "is not one of the supported sizes")
    width, height = int(match[1]), int(match[2])
    low, high = sorted((width, height))
    if most and (width % 32 or height % 32 or low < 256 or high > 6 * low or low * high > most**2):
        raise fields.fault("value", name, f"needs sides that are multiples of 32, up to {most}x{most} pixels")
    return width, height
