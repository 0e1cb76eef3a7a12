"""fal's models: what each takes, read and checked."""

from __future__ import annotations

from typing import Any

from safelight.lab.speech.fields import Fields
from safelight.lab.speech.inputs import Picture

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
    "1:1": (1024, 1024),
    "2:3": (832, 1248),
    "3:4": (880, 1184),
    "9:16": (768, 1360),
    "9:21": (656, 1536),
}
MODELS = {
    # model: (operation, how a size is given, how pictures are given, most pictures out)
    "fal-ai/flux/dev": ("generate", "image_size", (), 4),
    "fal-ai/flux/schnell": ("generate", "image_size", (), 4),
    "fal-ai/flux/dev/image-to-image": ("edit", "none", ("image_url",), 4),
    "fal-ai/flux-pro/kontext": ("edit", "aspect_ratio", ("image_url",), 4),
    "fal-ai/flux-lora/inpainting": ("inpaint", "image_size", ("image_url", "mask_url"), 4),
    "fal-ai/nano-banana": ("generate", "aspect_ratio", (), 4),
    "fal-ai/nano-banana/edit": ("edit", "aspect_ratio", ("image_urls",), 4),
}


def read_size(fields: Fields, form: str, pictures: list[Picture]) -> tuple[int, int]:
    """Width and height, in one of three forms: named or free sizes, ratios, the picture's own."""
    if form == "aspect_ratio":
        return RATIOS[fields.choice("aspect_ratio", RATIOS, "1:1")]
    if form == "none":
        return pictures[0].width, pictures[0].height
    if isinstance(fields.raw("image_size", None), dict):
        size = fields.inner("image_size")
        width, height = size.whole("width", low=64, high=2048), size.whole("height", low=64, high=2048)
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
