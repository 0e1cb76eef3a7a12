"""From the fields of OpenAI's Images API to those of `POST /v1/tasks`, and back where one of them is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from safelight.api.problems import FieldError, FieldsRefused
from safelight.domain.catalog import Catalog, Model
from safelight.lifecycle.inputs import InputsRefused

ResponseFormat = Literal["b64_json", "url"]
RESPONSE_FORMATS: tuple[ResponseFormat, ...] = ("b64_json", "url")
"""The first is the default: that is what OpenAI's present models answer with."""
SAME = ("model", "prompt", "n", "aspect_ratio", "metadata", "priority")
"""Fields that mean the same on both sides; the last three are ours, and come through `extra_body`."""
OTHERS = ("size", "options", "response_format", "stream", "partial_images")

_BAD_FORMAT: FieldError = {"field": "response_format", "message": "must be one of: b64_json, url"}
_Test = Callable[[Any], bool]


def _among(*values: Any) -> _Test:
    # Not `in` alone: True == 1, and lists cannot be looked up in a set.
    return lambda value: any(type(value) is type(one) and value == one for one in values)


def _any_text(value: Any) -> bool:
    return isinstance(value, str)


WISHES: Mapping[str, _Test] = {
    "background": _among("auto"),
    "complexity": _among(),
    "frame_count": _among(),
    "frame_duration_ms": _among(),
    "input_fidelity": _among("low"),
    "markup": _among(),
    "moderation": _among("auto", "low"),
    "output_compression": _among(100),
    "output_format": _among("png"),
    "quality": _among("auto", "standard"),
    "safety_identifier": _any_text,
    "style": _among("vivid"),
    "svg": _among(),
    "user": _any_text,
}
"""Fields that only some models have. They become `options` of a model that knows them; of others, only the API's
defaults are taken (they ask for nothing), and what says who the end user is."""
KNOWN = frozenset((*SAME, *OTHERS, *WISHES))
_SIZE = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")


@dataclass(frozen=True, slots=True)
class Translated:
    """A body as `POST /v1/tasks` takes it, still without pictures, and how the pictures are to be answered."""

    body: dict[str, Any]
    response_format: ResponseFormat


def translate(given: Mapping[str, Any], catalog: Catalog, *, operation: str) -> Translated:
    """Translate the fields; null counts as not given.

    Raises:
        RequestError: 422 with every field that cannot be translated; the values of others are judged later.
    """
    fields = {name: value for name, value in given.items() if value is not None}
    model = catalog.find(fields["model"]) if isinstance(fields.get("model"), str) else catalog.default
    faults: list[FieldError] = [
        {"field": name, "message": "unknown field"} for name in sorted(fields.keys() - KNOWN)
    ]
    faults += _refused_features(fields)
    body = {name: fields[name] for name in SAME if name in fields}
    options, misfits = _options_of(fields, model)
    faults += misfits
    if faults:
        raise FieldsRefused(faults[:50])
    body |= {"operation": operation, **_shape_of(fields, model)}
    if options is not None:
        body["options"] = options
    return Translated(body, response_format_of(fields))


def response_format_of(fields: Mapping[str, Any]) -> ResponseFormat:
    """How the pictures are wanted; what is none of the formats counts as not given."""
    return "url" if fields.get("response_format") == "url" else RESPONSE_FORMATS[0]


def check_response_format(text: str) -> ResponseFormat:
    """How the pictures of a task are wanted.

    Raises:
        RequestError: 422.
    """
    if text not in RESPONSE_FORMATS:
        raise FieldsRefused([_BAD_FORMAT])
    return text


def in_their_words(
    refused: FieldsRefused | InputsRefused, given: Mapping[str, Any], picture: str
) -> FieldsRefused:
    """The same faults under the names that the caller used; `picture` is the field of an input, `{}` its place."""
    faults = (
        [(fault["field"], fault["message"]) for fault in refused.errors]
        if isinstance(refused, FieldsRefused)
        else refused.faults
    )
    return FieldsRefused([_renamed(field, message, given, picture) for field, message in faults])


def _renamed(field: str, message: str, given: Mapping[str, Any], picture: str) -> FieldError:
    if field == "operation":
        return {"field": "model", "message": "this model does not do that: its operation " + message}
    if field.startswith("images["):
        return {"field": picture.format(field[7:].partition("]")[0]), "message": message}
    if field == "images":
        return {"field": picture.partition("[")[0], "message": message}
    name = field.removeprefix("options.")
    return {"field": name if name in given else field, "message": message}


def _refused_features(fields: Mapping[str, Any]) -> list[FieldError]:
    faults: list[FieldError] = []
    if fields.get("stream", False) is not False:
        message = "pictures are not streamed here: leave it out, or ask with 'Prefer: respond-async'"
        faults.append({"field": "stream", "message": message})
    if not _among(0)(fields.get("partial_images", 0)):
        faults.append({"field": "partial_images", "message": "pictures are not streamed here: leave it out"})
    if not _among(*RESPONSE_FORMATS)(fields.get("response_format", RESPONSE_FORMATS[0])):
        faults.append(_BAD_FORMAT)
    return faults


def _options_of(
    fields: Mapping[str, Any], model: Model | None
) -> tuple[dict[str, Any] | None, list[FieldError]]:
    """The options that the fields come to; what stands in `options` itself is left to be judged as such."""
    known = model.options if model else None
    options: dict[str, Any] = {}
    faults: list[FieldError] = []
    for name, asks_nothing in WISHES.items():
        value = fields.get(name)
        # `auto` is OpenAI's word for a model's own default, and no other API's.
        if value is None or value == "auto":
            continue
        if known is None or name in known:
            options[name] = value
        elif not asks_nothing(value):
            faults.append({"field": name, "message": "this model cannot do that: leave it out"})
    given = fields.get("options")
    if isinstance(given, dict):
        options |= given
    elif given is not None:
        return given, faults
    return options or None, faults


def _shape_of(fields: Mapping[str, Any], model: Model | None) -> dict[str, Any]:
    """The size; for a model that goes by ratios alone, the ratio of that size if it is offered."""
    size = fields.get("size", "auto")
    if size == "auto":
        return {}
    pixels = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if model is not None and not model.sizes and pixels and "aspect_ratio" not in fields:
        width, height = int(pixels[1]), int(pixels[2])
        unit = math.gcd(width, height)
        ratio = f"{width // unit}:{height // unit}"
        if ratio in model.aspect_ratios or "" in model.aspect_ratios:
            return {"aspect_ratio": ratio}
    return {"size": size}
