"""OpenAI's image models: what each takes, read and checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from safelight.lab.speech.fields import Fields
from safelight.lab.speech.inputs import Picture

SIZES = {"1024x1024": (1024, 1024), "1536x1024": (1536, 1024), "1024x1536": (1024, 1536)}
FREE_MOST = (3840, 2160)
INPUTS_MOST, INPUT_BYTES, MASK_BYTES = 16, 50_000_000, 4_000_000
_FREE = re.compile(r"([1-9][0-9]{1,3})x([1-9][0-9]{1,3})")
_QUALITIES = ("auto", "low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Model:
    """What a model takes beyond what all take."""

    has_free_sizes: bool = False
    qualities: Sequence[str] = _QUALITIES
    fidelities: Sequence[str] = ()


_TWO = Model(has_free_sizes=True)
_TWO_FIVE = Model(has_free_sizes=True, qualities=(*_QUALITIES, "xhigh", "max"))
# gpt-image-1 was shut down on 2026-10-23, dall-e-2 and dall-e-3 on 2026-05-12: they are not here.
MODELS = {
    "gpt-image-1-mini": Model(fidelities=("low",)),
    "gpt-image-1.5": Model(fidelities=("low", "high")),
    "chatgpt-image-latest": Model(),
    "gpt-image-2": _TWO,
    "gpt-image-2-2026-04-21": _TWO,
    "gpt-image-2.5-sunburst": _TWO_FIVE,
    "gpt-image-2.5-sunburst-2026-09-08": _TWO_FIVE,
    "gpt-image-2.5-flare": _TWO_FIVE,
    "gpt-image-2.5-flare-2026-09-08": _TWO_FIVE,
    # Named without its qualities: taken to be those of all.
    "gpt-image-2.6-sunburst": _TWO,
    "gpt-image-2.6-flare": _TWO,
}


def read_size(fields: Fields, model: Model) -> tuple[int, int]:
    """Width and height; `auto` is chosen by the prompt, and none of the usual ones here."""
    size = fields.text("size", "auto")
    if size in {"auto", *SIZES}:
        return SIZES.get(size, (1280, 1024))
    match = _FREE.fullmatch(size)
    if not model.has_free_sizes or match is None:
        raise fields.fault("value", "size", f"supported values are {', '.join(SIZES)} and auto")
    width, height = int(match[1]), int(match[2])
    low, high = sorted((width, height))
    if width % 16 or height % 16:
        raise fields.fault("value", "size", "width and height must be divisible by 16")
    if high > 3 * low or high > FREE_MOST[0] or low > FREE_MOST[1]:
        raise fields.fault("value", "size", "ratios are from 1:3 to 3:1, the largest size is 3840x2160")
    return width, height


def read_look(fields: Fields, model: Model) -> dict[str, Any]:
    """Quality, background and format, which the answer repeats, and what else does not matter here."""
    background = fields.choice("background", ("auto", "opaque", "transparent"), "auto")
    form = fields.choice("output_format", ("png", "jpeg", "webp"), "png")
    if background == "transparent" and form == "jpeg":
        raise fields.fault("value", "background", "transparency needs png or webp")
    if fields.whole("output_compression", None, low=0, high=100) is not None and form == "png":
        raise fields.fault("value", "output_compression", "is for jpeg and webp only")
    quality = fields.choice("quality", model.qualities, "auto")
    fields.choice("complexity", ("low", "medium", "high"), None)
    fields.text("user", None)
    fields.text("safety_identifier", None)
    return {
        "background": "opaque" if background == "auto" else background,
        "output_format": form,
        "quality": "medium" if quality == "auto" else quality,
    }


def read_stream(fields: Fields) -> int | None:
    """How many partial pictures are wanted; None for one plain answer."""
    is_streamed = fields.flag("stream", False)
    partial = fields.whole("partial_images", 0, low=0, high=3)
    if partial and not is_streamed:
        raise fields.fault("value", "partial_images", "needs stream")
    return partial if is_streamed else None


def check_mask(fields: Fields, mask: Picture, picture: Picture) -> None:
    """Refuse a mask that is no transparent PNG of the first picture's size."""
    if mask.format != "PNG" or not mask.has_alpha:
        raise fields.fault("picture", "mask", "must be a PNG with an alpha channel")
    if (mask.width, mask.height) != (picture.width, picture.height):
        raise fields.fault("picture", "mask", "must have the size of the image")
