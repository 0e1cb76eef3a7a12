"""Edits as they come: a form with files, or JSON that names its pictures."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from safelight.api import bodies
from safelight.api.multipart import Part, is_form, read_form
from safelight.api.problems import FieldsRefused
from safelight.errors import RequestError

IN_A_FORM, IN_JSON = "image[{}]", "images[{}].image_url"
"""What the field of an input is called, by its place."""
INTEGERS = frozenset(
    ("n", "priority", "output_compression", "partial_images", "frame_count", "frame_duration_ms")
)
TREES = frozenset({"metadata", "options", "svg"})
"""Fields whose values are objects: in a form as `metadata[key]`, or as a JSON text."""
_IMAGE = re.compile(r"image(?:\[[0-9]*\])?")
_NAME = re.compile(r"([A-Za-z_]+)((?:\[[^\[\]]{1,100}\])*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?")
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Form:
    """An edit before it is judged: its fields, and its pictures as bytes or as texts that name them."""

    fields: Mapping[str, Any]
    fingerprint: bytes
    raw: bytes = field(repr=False)
    picture: str = IN_A_FORM
    images: Sequence[bytes] = field(default=(), repr=False)
    mask: bytes | None = field(default=None, repr=False)
    sources: Sequence[Any] = ()
    mask_source: Any = None


def read_edit(content_type: bytes, raw: bytes) -> Form:
    """An edit in either form; the content type has been checked to be one of the two.

    Raises:
        RequestError: 400 the body cannot be read, 422 its fields do not fit.
    """
    if is_form(content_type):
        return read_parts(read_form(content_type, raw))
    return read_json(raw)


def read_json(raw: bytes) -> Form:
    """An edit in JSON: `images` and `mask` are objects with an `image_url`, or the `file_id` of an upload.

    Raises:
        RequestError: 400 no JSON object, 422 pictures that are named in another way.
    """
    body = bodies.parse_object(raw)
    fields = {name: value for name, value in body.items() if name not in ("images", "mask")}
    images = body.get("images")
    if not isinstance(images, list):
        raise FieldsRefused([{"field": "images", "message": "must be a list of objects with an image_url"}])
    sources = [_source(image, f"images[{place}]") for place, image in enumerate(images)]
    mask = None if body.get("mask") is None else _source(body["mask"], "mask")
    fingerprint = bodies.fingerprint(body)
    return Form(fields, fingerprint, raw, IN_JSON, sources=sources, mask_source=mask)


def read_parts(parts: Sequence[Part]) -> Form:
    """An edit in a form: the parts `image`, `image[]` and `mask` are files, all others are text.

    Raises:
        RequestError: 400 the form holds no text where text belongs, 422 a field that does not fit.
    """
    images = [part.data for part in parts if _IMAGE.fullmatch(part.name)]
    masks = [part.data for part in parts if part.name == "mask"]
    if len(masks) > 1:
        raise FieldsRefused([{"field": "mask", "message": "may be there once"}])
    fields: dict[str, Any] = {}
    for part in parts:
        if part.name != "mask" and not _IMAGE.fullmatch(part.name) and part.data:
            _put(fields, part.name, _text(part))
    # The boundary is new with every try, and so may be the names of files: only what they hold counts.
    digests = [hashlib.sha256(data).hexdigest() for data in (*images, *masks)]
    told = {"form": fields, "images": len(images), "files": digests}
    return Form(
        fields,
        bodies.fingerprint(told),
        bodies.canonical(fields),
        images=images,
        mask=masks[0] if masks else None,
    )


def _source(given: Any, name: str) -> Any:
    if isinstance(given, dict) and len(given) == 1:
        for key in ("image_url", "file_id"):
            if key in given:
                return given[key]
    raise FieldsRefused([{"field": name, "message": "must be an object with an image_url or a file_id"}])


def _text(part: Part) -> str:
    if part.file_name is not None:
        raise FieldsRefused([{"field": part.name[:100], "message": "no file is taken here"}])
    try:
        return part.data.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(400, "invalid-form", "A field of the form is not valid UTF-8.") from None


def _put(fields: dict[str, Any], name: str, text: str) -> None:
    """Put a text where its name says, as the value that JSON would have."""
    shape = _NAME.fullmatch(name)
    if shape is None:
        raise FieldsRefused([{"field": name[:100], "message": "unknown field"}])
    root, path = shape[1], re.findall(r"\[([^\[\]]+)\]", shape[2])
    value: Any = text
    if root in INTEGERS or (root in ("options", "svg") and path):
        value = _scalar(text)
    elif root == "stream":
        value = _WORDS.get(text, text)
    elif root in TREES and not path:
        value = _object(root, text)
    _set(fields, [root, *path], value)


def _set(fields: dict[str, Any], path: Sequence[str], value: Any) -> None:
    *above, last = path
    if len(path) > 8:
        raise FieldsRefused([{"field": path[0], "message": "is nested too deep"}])
    place = fields
    for key in above:
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            raise FieldsRefused([{"field": path[0], "message": "is there as a text and as an object"}])
    if last in place:
        raise FieldsRefused([{"field": path[0], "message": "is there twice"}])
    place[last] = value


def _scalar(text: str) -> Any:
    """A number or truth value if the text looks like one: forms know nothing but text."""
    return json.loads(text) if _NUMBER.fullmatch(text) else _WORDS.get(text, text)


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        return bodies.parse_object(text.encode())
    except RequestError:
        raise FieldsRefused([{"field": name, "message": "must be an object"}]) from None
