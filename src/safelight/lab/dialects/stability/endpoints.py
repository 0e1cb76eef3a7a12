"""Stability's endpoints: which files and fields each takes, read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from safelight.lab.speech.fields import Fields
from safelight.lab.speech.forms import Part
from safelight.lab.speech.inputs import Inputs, Picture
from safelight.lab.speech.options import Option
from safelight.lab.submits import Submit

PICTURE_MOST = 10 << 20
RATIOS = {
    "1:1": (1024, 1024),
    "16:9": (1344, 768),
    "21:9": (1536, 640),
    "2:3": (832, 1216),
    "3:2": (1216, 832),
    "4:5": (896, 1088),
    "5:4": (1088, 896),
    "9:16": (768, 1344),
    "9:21": (640, 1536),
}
STYLES = (
    "3d-model",
    "analog-film",
    "anime",
    "cinematic",
    "comic-book",
    "digital-art",
    "enhance",
    "fantasy-art",
    "isometric",
    "line-art",
    "low-poly",
    "modeling-compound",
    "neon-punk",
    "origami",
    "photographic",
    "pixel-art",
    "tile-texture",
)
OPTIONS = {
    "negative_prompt": Option("no fog, no rain"),
    "seed": Option(20_261_129),
    "output_format": Option("jpeg"),
    "style_preset": Option("anime", only=("generate",)),
    "grow_mask": Option(11, only=("stable-image-inpaint",)),
}
_SD3 = ("sd3.5-large", "sd3.5-large-turbo", "sd3.5-medium")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What one endpoint takes: files that it needs or may have, and texts likewise."""

    operation: str = "generate"
    files: Sequence[str] = ()
    may_have: Sequence[str] = ()
    texts: Sequence[str] = ("prompt",)
    may_say: Sequence[str] = ("negative_prompt",)
    has_ratio: bool = False
    formats: Sequence[str] = ("png", "jpeg", "webp")


ENDPOINTS = {
    "generate/core": Endpoint(has_ratio=True),
    "generate/ultra": Endpoint(has_ratio=True, may_have=("image",)),
    "generate/sd3": Endpoint(has_ratio=True, may_have=("image",), formats=("png", "jpeg")),
    "edit/inpaint": Endpoint("inpaint", files=("image",), may_have=("mask",)),
    "edit/erase": Endpoint("inpaint", files=("image",), may_have=("mask",), texts=(), may_say=()),
    "edit/outpaint": Endpoint("edit", files=("image",), texts=(), may_say=("prompt",)),
    "edit/search-and-replace": Endpoint("edit", files=("image",), texts=("prompt", "search_prompt")),
    "edit/remove-background": Endpoint(
        "edit", files=("image",), texts=(), may_say=(), formats=("png", "webp")
    ),
}
QUEUED = {
    "upscale/creative": Endpoint("edit", files=("image",)),
    "edit/replace-background-and-relight": Endpoint(
        "edit",
        files=("subject_image",),
        may_have=("background_reference", "light_reference"),
        texts=(),
        may_say=("background_prompt", "foreground_prompt", "negative_prompt", "light_source_direction"),
    ),
}


async def read_form(
    endpoint: Endpoint, fields: Fields, parts: Sequence[Part], inputs: Inputs, name: str
) -> Submit:
    """A submit out of the fields and files of a form."""
    pictures = await _read_files(endpoint, fields, parts, inputs)
    texts = [fields.text(word, most=10_000) for word in endpoint.texts]
    texts += [fields.text(word, "", most=10_000) for word in endpoint.may_say]
    details: dict[str, Any] = {"seed": fields.whole("seed", 0, low=0, high=2**32 - 2)}
    form = fields.choice("output_format", endpoint.formats, "png")
    model = _read_sd3(fields, pictures) if name == "generate/sd3" else name
    width, height = _read_size(endpoint, fields, pictures)
    if name.startswith("generate/"):
        fields.choice("style_preset", STYLES, None)
    _read_numbers(name, fields, pictures)
    mask = pictures.pop("mask", None)
    fields.close()
    return Submit(
        shape="sync",
        prompt=next((text for text in texts if text), name),
        width=width,
        height=height,
        model=model,
        operation="edit" if endpoint.operation == "generate" and pictures else endpoint.operation,
        format=form,
        inputs=tuple(picture.sha256 for picture in pictures.values()),
        mask=None if mask is None else mask.sha256,
        details=details,
    )


async def _read_files(
    endpoint: Endpoint, fields: Fields, parts: Sequence[Part], inputs: Inputs
) -> dict[str, Picture]:
    """The pictures by name; a file without any bytes is only there to make the body a form."""
    pictures: dict[str, Picture] = {}
    for part in (part for part in parts if part.data):
        if part.name not in {*endpoint.files, *endpoint.may_have} or part.name in pictures:
            raise fields.fault("unknown", part.name, "is not allowed")
        pictures[part.name] = await inputs.check(part.data, (part.name,), most=PICTURE_MOST)
    for name in endpoint.files:
        if name not in pictures:
            raise fields.fault("missing", name, "is required")
    picture, mask = pictures.get("image"), pictures.get("mask")
    if picture and mask and (picture.width, picture.height) != (mask.width, mask.height):
        raise fields.fault("picture", "mask", "must have the size of the image")
    return pictures


def _read_sd3(fields: Fields, pictures: dict[str, Picture]) -> str:
    mode = fields.choice("mode", ("text-to-image", "image-to-image"), "text-to-image")
    if (mode == "image-to-image") != ("image" in pictures):
        raise fields.fault("value", "mode", "goes with an image exactly if it is image-to-image")
    fields.number("cfg_scale", 4, low=1, high=10)
    model: str = fields.choice("model", _SD3, "sd3.5-large")
    return model


def _read_size(endpoint: Endpoint, fields: Fields, pictures: dict[str, Picture]) -> tuple[int, int]:
    if endpoint.has_ratio and not pictures:
        return RATIOS[fields.choice("aspect_ratio", tuple(RATIOS), "1:1")]
    # What is edited keeps its size here, in the bounds within which the lab draws.
    picture = next(iter(pictures.values()))
    return min(max(picture.width, 64), 2048), min(max(picture.height, 64), 2048)


def _read_numbers(name: str, fields: Fields, pictures: dict[str, Picture]) -> None:
    if name.startswith("generate/") and "image" in pictures:
        fields.number("strength", low=0, high=1)
    if name in {"edit/inpaint", "edit/erase"}:
        fields.number("grow_mask", 5, low=0, high=20)
    if name == "upscale/creative":
        fields.number("creativity", 0.3, low=0.1, high=0.5)
    if name == "edit/replace-background-and-relight":
        for word in ("preserve_original_subject", "original_background_depth", "light_source_strength"):
            fields.number(word, 0.5, low=0, high=1)
        fields.choice("keep_original_background", ("true", "false"), "false")
        if not fields.has("background_prompt") and "background_reference" not in pictures:
            raise fields.fault("missing", "background_prompt", "or a background_reference is required")
    if name == "edit/outpaint":
        sides = [fields.whole(side, 0, low=0, high=2000) for side in ("left", "right", "up", "down")]
        fields.number("creativity", 0.5, low=0, high=1)
        if not any(sides):
            raise fields.fault("missing", "left", "or another side must be given")
