"""Pictures inside the answer itself: base64 and data URLs as upstreams really write them."""

from __future__ import annotations

import binascii
import re
from urllib.parse import unquote_to_bytes

from safelight.errors import AssetError

_MAX_BYTES = 50_000_000
_DATA_URL = re.compile(r"\s*data:(?P<media>[^,]{0,200}),", re.IGNORECASE)
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_WHITESPACE = b" \t\r\n\f\v"


def decode_base64(text: str, *, max_bytes: int = _MAX_BYTES) -> bytes:
    """The bytes behind base64 with or without data prefix, line breaks, padding, in either alphabet.

    Raises AssetError `not_an_image` (malformed or empty) or `too_large`; neither is retryable, because
    the same text will not change.
    """
    if _DATA_URL.match(text):
        return decode_data_url(text, max_bytes=max_bytes)
    return _decode(_to_bytes(text), max_bytes)


def decode_data_url(text: str, *, max_bytes: int = _MAX_BYTES) -> bytes:
    """The bytes of a `data:` URL, base64 or percent-coded; its media type is not believed."""
    shape = _DATA_URL.match(text)
    if shape is None:
        raise _malformed("this is not a data URL")
    if len(text) > 4 * max_bytes:
        raise _too_large(max_bytes)
    payload = _to_bytes(text[shape.end() :])
    if b"%" in payload:
        payload = unquote_to_bytes(payload)
    if "base64" in (part.strip().lower() for part in shape["media"].split(";")[1:]):
        return _decode(payload, max_bytes)
    if len(payload) > max_bytes:
        raise _too_large(max_bytes)
    if not payload:
        raise _malformed("the data URL is empty")
    return payload


def _decode(dirty: bytes, max_bytes: int) -> bytes:
    clean = dirty.translate(_TO_STANDARD, delete=_WHITESPACE).rstrip(b"=")
    if len(clean) * 3 // 4 > max_bytes:
        raise _too_large(max_bytes)
    if not clean:
        raise _malformed("the base64 text is empty")
    try:
        # Strict, because the default decoder skips foreign characters and returns garbage.
        return binascii.a2b_base64(clean + b"=" * (-len(clean) % 4), strict_mode=True)
    except binascii.Error:
        raise _malformed("the base64 text is malformed") from None


def _to_bytes(text: str) -> bytes:
    try:
        return text.encode("ascii")
    except UnicodeEncodeError:
        raise _malformed("the text is not ASCII") from None


def _malformed(detail: str) -> AssetError:
    return AssetError("not_an_image", detail, is_retryable=False)


def _too_large(max_bytes: int) -> AssetError:
    return AssetError("too_large", f"the inline picture is over {max_bytes} bytes", is_retryable=False)
