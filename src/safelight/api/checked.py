"""Small bodies of one shape each: read with a cap, and refused field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from safelight.api.problems import FieldsRefused


class CheckedBody(BaseModel):
    """A body whose unknown fields are refused, and whose values are taken as they are."""

    model_config = ConfigDict(extra="forbid", strict=True)


BodyT = TypeVar("BodyT", bound=CheckedBody)


def check_body(body: Mapping[str, Any], shape: type[BodyT]) -> BodyT:
    """The body as its shape.

    Raises:
        RequestError: 422 with the fields that do not fit.
    """
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        raise FieldsRefused(
            [
                {"field": _place(fault["loc"]), "message": fault["msg"].lower()}
                for fault in error.errors(include_input=False, include_context=False)[:50]
            ]
        ) from None


def _place(location: tuple[int | str, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")[:100].encode("utf-8", "replace").decode() or "body"
