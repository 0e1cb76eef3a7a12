"""The webui's fields: what both of its endpoints take, read and checked."""

from __future__ import annotations

from typing import Any

from safelight.lab.speech.fields import Fields
from safelight.lab.speech.inputs import Picture

SAMPLERS = ("DPM++ 2M", "DPM++ SDE", "DPM++ 2M SDE", "Euler a", "Euler", "LMS", "Heun", "DDIM", "UniPC")
CHECKPOINT = "sd_xl_base_1.0.safetensors"
COUNT_MOST = 32
STRETCHING = (0, 3)
"""The modes of resizing that keep every part and not the shape; the usual one is among them."""
FROM_THE_PICTURE = 1


def read_count(fields: Fields) -> int:
    """How many pictures: those of a batch, times the batches."""
    batch, times = fields.whole("batch_size", 1, low=1, high=8), fields.whole("n_iter", 1, low=1, high=100)
    if batch * times > COUNT_MOST:
        raise fields.fault("value", "n_iter", f"the lab draws at most {COUNT_MOST} pictures")
    return int(batch * times)


def read_sides(fields: Fields) -> tuple[int, int]:
    """Width and height."""
    width, height = (fields.whole(side, 512, low=64, high=2048) for side in ("width", "height"))
    if width % 8 or height % 8:
        raise fields.fault("value", "width", "and height must be multiples of 8")
    return width, height


def read_checkpoint(fields: Fields) -> str:
    """The model, which is a setting that is overridden for one request."""
    settings = fields.inner("override_settings", {})
    checkpoint: str = settings.text("sd_model_checkpoint", CHECKPOINT)
    settings.text("sd_vae", None)
    settings.whole("CLIP_stop_at_last_layers", None, low=1, high=12)
    settings.close()
    fields.flag("override_settings_restore_afterwards", True)
    return checkpoint


def read_drawing(fields: Fields) -> dict[str, Any]:
    """What steers the drawing and is told again in the answer."""
    return {
        "negative_prompt": fields.text("negative_prompt", ""),
        "seed": fields.whole("seed", -1, low=-1, high=2**32 - 1),
        "steps": fields.whole("steps", 50, low=1, high=150),
        "cfg_scale": fields.number("cfg_scale", 7.0, low=1, high=30),
        "send_images": fields.flag("send_images", True),
        "save_images": fields.flag("save_images", False),
    }


def read_flaws(fields: Fields, picture: Picture, *, has_mask: bool) -> list[str]:
    """What an edit will do to its picture unless it is told otherwise."""
    width, height = read_sides(fields)
    is_other_shape = width * picture.height != height * picture.width
    is_stretched = is_other_shape and fields.whole("resize_mode", 0, low=0, high=3) in STRETCHING
    is_refilled = has_mask and fields.whole("inpainting_fill", 0, low=0, high=3) != FROM_THE_PICTURE
    return ["stretched"] * is_stretched + ["begun anew behind the mask"] * is_refilled


def read_the_rest(fields: Fields, *, has_picture: bool) -> None:
    """Take what does not matter here, and refuse the rest, which the webui itself would pass over."""
    fields.text("scheduler", None)
    fields.number("denoising_strength", 0.75, low=0, high=1)
    fields.flag("restore_faces", False)
    fields.flag("tiling", False)
    fields.many("styles", [])
    fields.raw("alwayson_scripts", {})
    fields.many("script_args", [])
    if has_picture:
        fields.whole("resize_mode", 0, low=0, high=3)
        fields.whole("mask_blur", 4, low=0, high=64)
        fields.whole("inpainting_fill", 0, low=0, high=3)
        fields.flag("inpaint_full_res", True)
        fields.whole("inpaint_full_res_padding", 0, low=0, high=256)
        fields.whole("inpainting_mask_invert", 0, low=0, high=1)
        fields.flag("include_init_images", False)
    else:
        fields.flag("enable_hr", False)
        fields.number("hr_scale", 2, low=1, high=4)
        fields.text("hr_upscaler", None)
    fields.close()
