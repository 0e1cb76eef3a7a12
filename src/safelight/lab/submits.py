"""Submit bodies: read and checked by hand, because this is the hot path."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from safelight.lab.refusal import invalid

SIDES = range(64, 2049)
FIELDS = frozenset({"prompt", "n", "size", "reference", "images", "mask", "lab"})
_SIZE = re.compile(r"([0-9]{2,4})x([0-9]{2,4})")
_URL = re.compile(r"https?://[^/\s?#]+\S*")
_PICTURE_SOURCE = re.compile(r"(https?://|data:image/)\S+")


@dataclass(slots=True)
class Submit:
    """A checked submit.

    `shape` says how it is answered: `sync` with the pictures, else with an id. `reference` is empty where
    the upstream knows none of the caller's. `key` makes it repeatable. `details` are the dialect's own
    fields: they are kept in the ledger, so they must be JSON and should be short. `given` is the body as it came,
    for the witness.
    """

    shape: str
    prompt: str
    n: int = 1
    width: int = 1024
    height: int = 1024
    reference: str = ""
    callback_url: str | None = None
    lab: dict[str, Any] | None = None
    fingerprint: str = ""
    key: str | None = None
    dialect: str = ""
    id: str = ""
    model: str = ""
    operation: str = "generate"
    format: str = "png"
    inputs: tuple[str, ...] = ()
    mask: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    given: Any = None


def read_submit(raw: bytes, shape: str) -> Submit:
    """Check a submit body of the given shape."""
    body = _parse(raw)
    allowed = FIELDS | {"callback_url"} if shape == "callback" else FIELDS
    if unknown := body.keys() - allowed:
        raise invalid(f"unknown field: {sorted(unknown)[0]}")
    width, height = _size(body.get("size", "1024x1024"))
    _check_images(body.get("images"))
    _check_mask(body.get("mask"), body.get("images"))
    lab = body.get("lab")
    if lab is not None and not isinstance(lab, dict):
        raise invalid("lab must be an object")
    return Submit(
        shape=shape,
        prompt=_text(body, "prompt", most=32_000),
        n=_count(body.get("n", 1)),
        width=width,
        height=height,
        reference=_text(body, "reference", most=500),
        callback_url=_callback_url(body.get("callback_url")),
        lab=lab,
        fingerprint=_fingerprint(body) if shape == "sync" else "",
    )


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise invalid("the body is not JSON") from None
    if not isinstance(body, dict):
        raise invalid("the body must be a JSON object")
    return body


def _text(body: dict[str, Any], name: str, *, most: int) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value.strip():
        raise invalid(f"{name} must be a text that is not empty")
    if len(value) > most:
        raise invalid(f"{name} is longer than {most} characters")
    return value


def _count(value: object) -> int:
    if type(value) is not int or not 1 <= value <= 10:
        raise invalid("n must be a whole number from 1 to 10")
    return value


def _size(value: object) -> tuple[int, int]:
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise invalid("size must be like 1024x1024")
    width, height = int(match[1]), int(match[2])
    if width not in SIDES or height not in SIDES:
        raise invalid("each side must be from 64 to 2048")
    return width, height


def _check_images(value: object) -> None:
    if value is None:
        return
    if not isinstance(value, list) or len(value) > 16:
        raise invalid("images must be a list of at most 16")
    for item in value:
        if not isinstance(item, str) or not _PICTURE_SOURCE.match(item):
            raise invalid("images must be http(s) or data:image URLs")


def _check_mask(value: object, images: object) -> None:
    """It is taken and looked at no further: the lab draws the whole picture anew."""
    if value is None:
        return
    if not isinstance(value, str) or not _PICTURE_SOURCE.match(value):
        raise invalid("mask must be an http(s) or data:image URL")
    if not images:
        raise invalid("a mask needs a picture under it")


def _callback_url(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _URL.fullmatch(value):
        raise invalid("callback_url must be an http(s) URL")
    return value


def _fingerprint(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
