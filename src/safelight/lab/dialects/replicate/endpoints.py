"""Replicate's models: the inputs that each takes, read and checked, and how each gives its output."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from safelight.lab.speech.fields import Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option

_PRO = ("1:1", "16:9", "3:2", "2:3", "4:5", "5:4", "9:16", "3:4", "4:3")
_OPEN = (*_PRO, "21:9", "9:21")
_WEBP = ("webp", "jpg", "png")
SIDE = 1024


@dataclass(frozen=True, slots=True)
class Model:
    """What one model takes; `picture`, `pictures` and `mask` name its fields for them."""

    ratios: tuple[str, ...] = ()
    formats: tuple[str, ...] = ("jpg", "png")
    most: int = 1
    picture: str | None = None
    is_picture_required: bool = False
    pictures: str | None = None
    mask: str | None = None
    wholes: dict[str, tuple[int, int]] = field(default_factory=dict)
    numbers: dict[str, tuple[float, float]] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    gives_list: bool = False


_TOLERANT = {"safety_tolerance": (1, 6)}
MODELS = {
    "black-forest-labs/flux-schnell": Model(
        ratios=_OPEN,
        formats=_WEBP,
        most=4,
        wholes={"num_inference_steps": (1, 4), "output_quality": (0, 100)},
        flags=("disable_safety_checker", "go_fast"),
        gives_list=True,
    ),
    "black-forest-labs/flux-dev": Model(
        ratios=_OPEN,
        formats=_WEBP,
        most=4,
        picture="image",
        wholes={"num_inference_steps": (1, 50), "output_quality": (0, 100)},
        numbers={"guidance": (0, 10), "prompt_strength": (0, 1)},
        flags=("disable_safety_checker", "go_fast"),
        gives_list=True,
    ),
    "black-forest-labs/flux-1.1-pro": Model(
        ratios=_PRO,
        formats=_WEBP,
        picture="image_prompt",
        wholes={"output_quality": (0, 100), **_TOLERANT},
        flags=("prompt_upsampling",),
    ),
    "black-forest-labs/flux-2-pro": Model(
        ratios=("match_input_image", *_PRO),
        formats=_WEBP,
        pictures="input_images",
        wholes={"output_quality": (0, 100), **_TOLERANT},
    ),
    "black-forest-labs/flux-kontext-pro": Model(
        ratios=("match_input_image", *_OPEN),
        picture="input_image",
        wholes={"safety_tolerance": (0, 6)},
        flags=("prompt_upsampling",),
    ),
    "black-forest-labs/flux-fill-pro": Model(
        picture="image",
        is_picture_required=True,
        mask="mask",
        wholes={"steps": (15, 50), **_TOLERANT},
        numbers={"guidance": (1.5, 100)},
        flags=("prompt_upsampling",),
    ),
}

_BFL = "black-forest-labs"
OPTIONS = {
    "seed": Option(20_261_129),
    "output_format": Option("png"),
    "output_quality": Option(
        81, only=[f"{_BFL}/{name}" for name in ("flux-schnell", "flux-dev", "flux-1.1-pro", "flux-2-pro")]
    ),
    "num_inference_steps": Option(3, only=[f"{_BFL}/flux-schnell", f"{_BFL}/flux-dev"]),
    "guidance": Option(4.5, only=[f"{_BFL}/flux-dev"]),
}


def version_of(name: str) -> str:
    """The id of a model's version."""
    return hashlib.sha256(name.encode()).hexdigest()


def named(version: str) -> str | None:
    """The model that a version means: "owner/name", "owner/name:id" or the id alone."""
    name, _, given = version.partition(":")
    if name in MODELS:
        return name if given in {"", version_of(name)} else None
    return next((known for known in MODELS if version_of(known) == version), None)


def read_size(fields: Fields, model: Model, pictures: Sequence[Picture]) -> tuple[int, int]:
    """Width and height by the ratio, else those of the picture."""
    ratio = fields.choice("aspect_ratio", model.ratios, "") if model.ratios else ""
    if ":" not in ratio:
        return (pictures[0].width, pictures[0].height) if pictures else (SIDE, SIDE)
    wide, high = map(int, ratio.split(":"))
    most = max(wide, high)
    return round(SIDE * wide / most), round(SIDE * high / most)


def read_the_rest(fields: Fields, model: Model) -> dict[str, Any]:
    """Take what does not matter here, and refuse what the model does not know; what was given."""
    for name, (low, high) in model.wholes.items():
        fields.whole(name, None, low=low, high=high)
    for name, (least, most) in model.numbers.items():
        fields.number(name, None, low=least, high=most)
    for name in model.flags:
        fields.flag(name, False)
    fields.close()
    pictures = {model.picture, model.pictures, model.mask}
    return {name: value for name, value in fields.taken.items() if name not in pictures}
