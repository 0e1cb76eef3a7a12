"""Masks: where a picture may change, from whatever customers send into what a provider reads."""

from __future__ import annotations

import io

from PIL import Image, ImageChops

from safelight.assets.checking import PictureLimits, check_size, reading, sniff
from safelight.domain.provider import MaskStyle


def make_mask(data: bytes, style: MaskStyle) -> bytes:
    """The mask as a PNG of this style; the same bytes each time, so that a second send is like the first.

    A picture with anything transparent in it may change where it is transparent; any other one where it is
    white. What lies between stays between. AssetError as `check_picture`.
    """
    kind = sniff(data)
    with reading("not_an_image"):
        image = Image.open(io.BytesIO(data), formats=[kind.name])
    with image, reading("truncated"):
        check_size(image, PictureLimits())
        target = io.BytesIO()
        _in_style(_where_it_may_change(image), style).save(target, "PNG")
        return target.getvalue()


def _where_it_may_change(image: Image.Image) -> Image.Image:
    """Grey, and white where it may change."""
    if image.mode.startswith("I"):
        # 16-bit grey: converting straight to 8 bits would clip instead of scale.
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        alpha = image.convert("RGBA").getchannel("A")
        if alpha.getextrema()[0] != 255:
            return ImageChops.invert(alpha)
    return image.convert("RGB").convert("L")


def _in_style(mask: Image.Image, style: MaskStyle) -> Image.Image:
    if style is MaskStyle.WHITE:
        return mask
    inverted = ImageChops.invert(mask)
    if style is MaskStyle.BLACK:
        return inverted
    black = Image.new("L", mask.size)
    return Image.merge("RGBA", (black, black, black, inverted))
