"""From a parsed body to a wish: every field is checked here, before a credit is held."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from safelight.api.bodies import canonical
from safelight.api.catalog import offer_of
from safelight.api.problems import FieldError, FieldsRefused
from safelight.assets.urls import Origin, parse_target
from safelight.domain.catalog import Catalog, Model
from safelight.errors import AssetError, RequestError
from safelight.lifecycle.accept import Wish
from safelight.lifecycle.inputs import UPLOAD_ID, Sources

FIELDS = frozenset(
    "model operation prompt n size aspect_ratio images mask options metadata priority".split()  # noqa: SIM905 - one line
)
OPERATIONS = ("generate", "edit")
MAX_OBJECT_BYTES = 16_384
"""Of `options` and of `metadata`, as canonical JSON."""
NO_INPUT = "must be an upload id, an https URL or a data URL of a picture"
_SIZE = re.compile(r"[1-9][0-9]{0,4}x[1-9][0-9]{0,4}")
_RATIO = re.compile(r"[1-9][0-9]{0,2}:[1-9][0-9]{0,2}")


class _Faults:
    """Collects what is wrong with which field."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def add(self, field: str, message: str) -> None:
        # A name may hold half a surrogate pair, which must not come back in the answer.
        self.errors.append({"field": field[:100].encode("utf-8", "replace").decode(), "message": message})

    def raise_if_any(self) -> None:
        if self.errors:
            raise FieldsRefused(self.errors[:50])


def make_wish(
    body: dict[str, Any],
    catalog: Catalog,
    *,
    account_id: UUID,
    key: str,
    fingerprint: bytes,
    raw: bytes,
    origins: frozenset[Origin] = frozenset(),
) -> tuple[Wish, Sources]:
    """The wish that a body describes, and its inputs, which are still to be taken in.

    `raw` is the body before it was parsed: what it cannot hold need not be looked for. `origins` are those
    of inputs that may be fetched although they are not https.

    Raises:
        RequestError: 422 with the fields that do not fit, 404 for a model that is not in the catalog (any more).
    """
    # Only an escape can bring NUL or half a surrogate pair: the bytes were valid UTF-8.
    if b"\\u" in raw or not FIELDS.issuperset(body):
        _check_names_and_text(body)
    model = _model_of(body, catalog)
    _check_fields(body, model, raw_bytes=len(raw), origins=origins)
    wish = Wish(
        account_id=account_id,
        key=key,
        fingerprint=fingerprint,
        model=model,
        operation=body.get("operation", OPERATIONS[0]),
        prompt=body["prompt"],
        n=body.get("n", 1),
        size=body.get("size"),
        aspect_ratio=body.get("aspect_ratio"),
        options=body.get("options", {}),
        metadata=body.get("metadata", {}),
        priority=body.get("priority", 0),
    )
    return wish, Sources(tuple(body.get("images", ())), body.get("mask"))


def _check_fields(body: dict[str, Any], model: Model, *, raw_bytes: int, origins: frozenset[Origin]) -> None:
    faults = _Faults()
    _check_prompt(body.get("prompt"), model, faults)
    _check_integer("n", body.get("n", 1), range(1, model.max_n + 1), faults)
    _check_integer("priority", body.get("priority", 0), range(-10, 11), faults)
    operation = body.get("operation", OPERATIONS[0])
    if operation not in OPERATIONS or operation not in model.operations:
        faults.add("operation", f"must be one of: {', '.join(model.operations)}")
    elif "images" in body or operation == "edit":
        _check_images(body.get("images", []), model, operation == "edit", faults, origins=origins)
    if "mask" in body:
        _check_mask(body["mask"], model, operation == "edit", faults, origins=origins)
    if "size" in body or "aspect_ratio" in body:
        _check_shape(body, model, faults)
    for name in ("options", "metadata"):
        if name in body:
            _check_object(name, body[name], raw_bytes, faults)
    _check_options(body.get("options"), model, faults)
    faults.raise_if_any()


def _check_names_and_text(body: dict[str, Any]) -> None:
    faults = _Faults()
    for name, value in body.items():
        if name not in FIELDS:
            faults.add(name, "unknown field")
        elif not _is_storable(value):
            faults.add(name, "must not hold NUL or half a surrogate pair")
    faults.raise_if_any()


def _model_of(body: dict[str, Any], catalog: Catalog) -> Model:
    if "model" not in body:
        if catalog.default is None:
            raise FieldsRefused([{"field": "model", "message": "is needed: there is no default"}])
        return offer_of(catalog.default)
    name = body["model"]
    if not isinstance(name, str):
        raise FieldsRefused([{"field": "model", "message": "must be a string"}])
    model = catalog.find(name)
    if model is None:
        raise RequestError(404, "model-not-found", "There is no such model; GET /v1/models lists them.")
    return offer_of(model)


def _check_prompt(prompt: Any, model: Model, faults: _Faults) -> None:
    if not isinstance(prompt, str):
        faults.add("prompt", "must be a string")
    elif not prompt.strip():
        faults.add("prompt", "must not be empty")
    elif len(prompt) > model.max_prompt_chars:
        faults.add("prompt", f"may have {model.max_prompt_chars} Unicode code points, has {len(prompt)}")


def _check_integer(name: str, value: Any, allowed: range, faults: _Faults) -> None:
    # Not isinstance: True is an int, and 1.0 is in range(2).
    if type(value) is not int or value not in allowed:
        faults.add(name, f"must be an integer from {allowed[0]} to {allowed[-1]}")


def _check_shape(body: dict[str, Any], model: Model, faults: _Faults) -> None:
    if "size" in body and "aspect_ratio" in body:
        faults.add("aspect_ratio", "cannot be combined with size")
    for name, offered, pattern in (
        ("size", model.sizes, _SIZE),
        ("aspect_ratio", model.aspect_ratios, _RATIO),
    ):
        if name in body and not _is_offered(body[name], offered, pattern):
            words = ", ".join(word for word in offered if word)
            faults.add(
                name, f"must be one of: {words}" if words else "is not offered by this model, or malformed"
            )


def _is_offered(value: Any, offered: tuple[str, ...], pattern: re.Pattern[str]) -> bool:
    if not isinstance(value, str) or not value:
        return False
    return value in offered or ("" in offered and pattern.fullmatch(value) is not None)


def _check_images(
    images: Any, model: Model, is_edit: bool, faults: _Faults, *, origins: frozenset[Origin]
) -> None:
    if not isinstance(images, list) or not all(isinstance(image, str) for image in images):
        faults.add("images", "must be a list of strings")
        return
    if is_edit and not images:
        faults.add("images", "an edit needs at least one")
    elif images and not is_edit:
        faults.add("images", "only an edit takes images")
    elif len(images) > model.max_images:
        faults.add("images", f"may be {model.max_images} at most")
        return
    for position, image in enumerate(images[: model.max_images]):
        if not _is_input(image, origins):
            faults.add(f"images[{position}]", NO_INPUT)


def _check_mask(
    mask: Any, model: Model, is_edit: bool, faults: _Faults, *, origins: frozenset[Origin]
) -> None:
    if not is_edit:
        faults.add("mask", "only an edit takes a mask")
    elif not model.takes_mask:
        faults.add("mask", "this model takes none")
    elif not isinstance(mask, str) or not _is_input(mask, origins):
        faults.add("mask", NO_INPUT)


def _is_input(text: str, origins: frozenset[Origin]) -> bool:
    """Whether it has the form of an input; what lies behind it is looked at later."""
    if text[:5].lower() == "data:" or UPLOAD_ID.fullmatch(text):
        return True
    try:
        origin = parse_target(text).origin
    except AssetError:
        return False
    return origin.scheme == "https" or origin in origins


def _check_options(options: Any, model: Model, faults: _Faults) -> None:
    if isinstance(options, dict) and model.options is not None:
        for name in sorted(options.keys() - set(model.options)):
            known = ", ".join(model.options)
            faults.add(
                f"options.{name}", f"must be one of: {known}" if known else "this model has no options"
            )


def _check_object(name: str, value: Any, raw_bytes: int, faults: _Faults) -> None:
    if not isinstance(value, dict):
        faults.add(name, "must be an object")
    elif raw_bytes > MAX_OBJECT_BYTES and len(canonical(value)) > MAX_OBJECT_BYTES:
        faults.add(name, f"may have {MAX_OBJECT_BYTES} bytes as JSON")


def _is_storable(value: Any) -> bool:
    """Whether every string and key can be stored as text."""
    if isinstance(value, str):
        return "\x00" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, dict):
        return all(_is_storable(name) and _is_storable(inner) for name, inner in value.items())
    if isinstance(value, list):
        return all(map(_is_storable, value))
    return True
