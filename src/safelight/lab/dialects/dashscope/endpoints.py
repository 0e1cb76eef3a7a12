"""DashScope's Wan models: what each takes, read and checked, in the older protocol and the newer one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from safelight.lab.speech.fields import Fields, Path
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option

Look = Callable[[object, Path], Awaitable[Picture]]
MOST_PICTURES = 4
_SIZE = re.compile(r"(\d{2,5})\*(\d{2,5})")


@dataclass(frozen=True, slots=True)
class Model:
    """Bounds of a picture out of it: of each side, of all its pixels, and of the longer side by the shorter."""

    usual: tuple[int, int]
    side: tuple[int, int] = (64, 4096)
    # The sizes that are recommended lie a little below the least that is written beside them.
    pixels: tuple[int, int] = (1_600_000, 1440 * 1440)
    ratio: float = 4.0
    chars: int = 2000


_WAN_2_2 = Model((1024, 1024), side=(512, 1440), pixels=(0, 1440 * 1440), ratio=3.0, chars=800)
_WAN_2_5 = Model((1280, 1280))
DRAWING = {
    "wan2.2-t2i-flash": _WAN_2_2,
    "wan2.2-t2i-plus": _WAN_2_2,
    "wanx2.1-t2i-turbo": _WAN_2_2,
    "wanx2.1-t2i-plus": _WAN_2_2,
    "wan2.5-t2i-preview": _WAN_2_5,
}
SPEAKING = {"wan2.6-t2i": _WAN_2_5}
EDITING = ("wanx2.1-imageedit", "wan2.5-i2i-preview")
OPTIONS = {
    "negative_prompt": Option("no fog, no rain", only=[*DRAWING, *SPEAKING, "wan2.5-i2i-preview"]),
    "seed": Option(20_261_129),
    "prompt_extend": Option(False, only=[*DRAWING, *SPEAKING, "wan2.5-i2i-preview"]),
    "watermark": Option(True),
}
FUNCTIONS = (
    *("stylization_all", "stylization_local", "description_edit", "description_edit_with_mask"),
    *("remove_watermark", "expand", "super_resolution", "colorization", "doodle", "control_cartoon_feature"),
)


@dataclass(slots=True)
class Wish:
    """What a submit asks for."""

    prompt: str
    width: int
    height: int
    n: int
    given: dict[str, Any]
    pictures: tuple[Picture, ...] = ()
    mask: Picture | None = None


def read_drawing(fields: Fields, model: Model) -> Wish:
    """A prompt beside its parameters."""
    given = fields.inner("input")
    prompt = given.text("prompt", most=model.chars)
    given.text("negative_prompt", None, most=500)
    given.close()
    return _with_parameters(fields, prompt, model)


def read_message(fields: Fields, model: Model) -> Wish:
    """A prompt as the one message of a conversation."""
    given = fields.inner("input")
    (first,) = given.many("messages", least=1, most=1)
    given.close()
    message = Fields(first, ("input", "messages", 0))
    message.choice("role", ("user",))
    (part,) = message.many("content", least=1, most=1)
    message.close()
    content = Fields(part, (*message.path, "content", 0))
    prompt = content.text("text", most=model.chars)
    content.close()
    return _with_parameters(fields, prompt, model, has_negative=True)


async def read_edit(fields: Fields, name: str, look: Look) -> Wish:
    """Pictures by address: one and perhaps a mask for the one model, up to three for the other."""
    given = fields.inner("input")
    prompt = given.text("prompt", most=2000 if name == "wan2.5-i2i-preview" else 800)
    mask = None
    if name == "wan2.5-i2i-preview":
        given.text("negative_prompt", None, most=500)
        sources = given.many("images", least=1, most=3)
        pictures = [await look(source, ("input", "images", at)) for at, source in enumerate(sources)]
    else:
        function = given.choice("function", FUNCTIONS)
        pictures = [await look(given.text("base_image_url", most=32 << 20), ("input", "base_image_url"))]
        if function == "description_edit_with_mask" or given.has("mask_image_url"):
            source = given.text("mask_image_url", most=32 << 20)
            mask = await look(source, ("input", "mask_image_url"))
    given.close()
    own = Model((pictures[0].width, pictures[0].height), pixels=(0, 4096 * 4096))
    wish = _with_parameters(fields, prompt, _WAN_2_5 if fields_have_size(fields) else own)
    wish.pictures, wish.mask = tuple(pictures), mask
    return wish


def fields_have_size(fields: Fields) -> bool:
    """Whether the parameters name a size."""
    parameters = fields.raw("parameters", {})
    return isinstance(parameters, dict) and parameters.get("size") is not None


def read_size(text: str, model: Model, parameters: Fields) -> tuple[int, int]:
    """Width and height, with an asterisk between."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise parameters.fault("value", "size", "must be like 1024*1024")
    width, height = int(match[1]), int(match[2])
    low, high = sorted((width, height))
    is_inside = model.side[0] <= low and high <= model.side[1]
    is_inside = is_inside and model.pixels[0] <= width * height <= model.pixels[1]
    if not is_inside or high > low * model.ratio:
        raise parameters.fault("value", "size", "is not in the allowed range")
    return width, height


def _with_parameters(fields: Fields, prompt: str, model: Model, *, has_negative: bool = False) -> Wish:
    parameters = fields.inner("parameters", {})
    size = parameters.text("size", None)
    width, height = model.usual if size is None else read_size(size, model, parameters)
    n = parameters.whole("n", 1, low=1, high=MOST_PICTURES)
    parameters.whole("seed", None, low=0, high=2**31 - 1)
    parameters.flag("prompt_extend", True)
    parameters.flag("watermark", False)
    parameters.number("strength", 0.5, low=0, high=1)
    if has_negative:
        parameters.text("negative_prompt", None, most=500)
        parameters.flag("is_async", True)  # its own client sends it along
    parameters.close()
    fields.close()
    return Wish(prompt, width, height, n, parameters.taken)
