"""fal's models: what each takes, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from safelight.lab.speech.fields import Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option

SIZES = {
    "square_hd": (1024, 1024),
    "square": (512, 512),
    "portrait_4_3": (768, 1024),
    "portrait_16_9": (576, 1024),
    "landscape_4_3": (1024, 768),
    "landscape_16_9": (1024, 576),
}
RATIOS = {
    "21:9": (1536, 656),
    "16:9": (1360, 768),
    "4:3": (1184, 880),
    "3:2": (1248, 832),
    "5:4": (1152, 928),
    "1:1": (1024, 1024),
    "4:5": (928, 1152),
    "2:3": (832, 1248),
    "3:4": (880, 1184),
    "9:16": (768, 1360),
    "9:21": (656, 1536),
}
_FLUX_RATIOS = tuple(ratio for ratio in RATIOS if ratio not in {"5:4", "4:5"})
_BANANA_RATIOS = tuple(ratio for ratio in RATIOS if ratio != "9:21")
_FLUX_SIDES, _SEEDREAM_SIDES = (64, 2048), (1024, 4096)


@dataclass(frozen=True, slots=True)
class Model:
    """What one model takes: its pictures, its sizes (free ones between `sides`, or `ratios`), how many come out."""

    operation: str = "generate"
    pictures: tuple[str, ...] = ()
    sides: tuple[int, int] | None = None
    ratios: tuple[str, ...] = ()
    most: int = 4
    needs_mask: bool = True


_FREE = Model(sides=_FLUX_SIDES)
_SEEDREAM = "fal-ai/bytedance/seedream/v4"
MODELS = {
    "fal-ai/flux/dev": _FREE,
    "fal-ai/flux/schnell": _FREE,
    "fal-ai/flux/dev/image-to-image": Model("edit", ("image_url",)),
    "fal-ai/flux-pro/v1.1": _FREE,
    "fal-ai/flux-pro/v1.1-ultra": Model(ratios=_FLUX_RATIOS),
    "fal-ai/flux-pro/kontext": Model("edit", ("image_url",), ratios=_FLUX_RATIOS),
    # Whether this one can do without a mask is not verified.
    "fal-ai/flux-pro/v1/fill": Model("inpaint", ("image_url", "mask_url"), needs_mask=False),
    "fal-ai/flux-lora/inpainting": Model("inpaint", ("image_url", "mask_url"), sides=_FLUX_SIDES),
    "fal-ai/nano-banana": Model(ratios=_BANANA_RATIOS),
    "fal-ai/nano-banana/edit": Model("edit", ("image_urls",), ratios=_BANANA_RATIOS),
    f"{_SEEDREAM}/text-to-image": Model(sides=_SEEDREAM_SIDES, most=6),
    f"{_SEEDREAM}/edit": Model("edit", ("image_urls",), sides=_SEEDREAM_SIDES, most=6),
}
_STEPPING = ("fal-ai/flux/dev", "fal-ai/flux/schnell")
OPTIONS = {
    "seed": Option(20_261_129, only=[name for name in MODELS if "nano-banana" not in name]),
    "output_format": Option("png", only=[name for name in MODELS if "seedream" not in name]),
    "guidance_scale": Option(4.5, only=(*_STEPPING, "fal-ai/flux-pro/kontext")),
    "num_inference_steps": Option(21, only=_STEPPING),
}


def read_size(fields: Fields, model: Model, pictures: list[Picture]) -> tuple[int, int]:
    """Width and height, in one of three forms: named or free sizes, ratios, the picture's own."""
    if model.ratios:
        return RATIOS[fields.choice("aspect_ratio", model.ratios, "1:1")]
    if model.sides is None:
        return pictures[0].width, pictures[0].height
    if isinstance(fields.raw("image_size", None), dict):
        (low, high), size = model.sides, fields.inner("image_size")
        width, height = size.whole("width", low=low, high=high), size.whole("height", low=low, high=high)
        size.close()
        return width, height
    return SIZES[fields.choice("image_size", SIZES, "landscape_4_3")]


def read_the_rest(fields: Fields) -> None:
    """Take what does not matter here, and refuse what the models do not know."""
    fields.whole("num_inference_steps", 28, low=1, high=50)
    fields.number("guidance_scale", 3.5, low=1, high=20)
    fields.number("strength", 0.95, low=0.01, high=1)
    fields.flag("enable_safety_checker", True)
    fields.choice("sync_mode", (False,), False)
    fields.choice("acceleration", ("none", "regular", "high"), "none")
    fields.choice("safety_tolerance", ("1", "2", "3", "4", "5", "6"), "2")
    fields.close()


def without_pictures(taken: dict[str, Any]) -> dict[str, Any]:
    """What was given, but for the pictures."""
    return {name: value for name, value in taken.items() if not name.startswith(("image_url", "mask_url"))}
