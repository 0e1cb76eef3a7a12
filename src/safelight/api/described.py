"""How routes are described in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from safelight.api.admin.shapes import ADMIN_SHAPES
from safelight.api.openai.shapes import IMAGE_SHAPES
from safelight.api.problems import MEDIA_TYPE
from safelight.api.shapes import SHAPES
from safelight.api.webhookshapes import WEBHOOK_SHAPES

_REF = "#/components/schemas/{model}"
KEY_SCHEME = "api_key"
ADMIN_SCHEME = "admin_key"

Parameter = dict[str, Any]


def parameter(name: str, place: str, schema: Mapping[str, Any], description: str = "") -> Parameter:
    """A parameter in `path`, `query` or `header`; those of a path are needed."""
    described: Parameter = {"name": name, "in": place, "required": place == "path", "schema": dict(schema)}
    return {**described, "description": description} if description else described


TASK_ID = parameter("id", "path", {"type": "string", "format": "uuid"})
CURSOR = parameter("cursor", "query", {"type": "string"}, "`next_cursor` of the page before.")
LIMIT = parameter("limit", "query", {"type": "integer", "minimum": 1, "maximum": 100, "default": 50})


def described(
    summary: str,
    answers: Mapping[int, type[BaseModel] | str | None],
    *,
    refusals: Sequence[int] = (),
    parameters: Sequence[Parameter] = (),
    body: Mapping[str, Any] | None = None,
    needs_key: bool = True,
    scheme: str = KEY_SCHEME,
) -> dict[str, Any]:
    """What `add_api_route` takes besides path and handler.

    An answer is a shape, a media type, or None for no body; `refusals` are statuses with a problem document.
    """
    responses: dict[int | str, dict[str, Any]] = {
        status: _answer(status, given) for status, given in answers.items()
    }
    common = (401, 429) if needs_key else ()
    responses.update({status: _refusal(status) for status in (*refusals, *common, 500, 503)})
    extra: dict[str, Any] = {"security": [{scheme: []}] if needs_key else []}
    if parameters:
        extra["parameters"] = list(parameters)
    if body:
        extra["requestBody"] = {"required": True, "content": dict(body)}
    return {
        "summary": summary,
        "status_code": next(iter(answers)),
        "responses": responses,
        "openapi_extra": extra,
    }


def json_body(shape: type[BaseModel]) -> dict[str, Any]:
    """A JSON body of this shape."""
    return {"application/json": {"schema": {"$ref": _REF.format(model=shape.__name__)}}}


class DescribedApp(FastAPI):
    """FastAPI whose document has our shapes and the one way in."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document, made once."""
        if not self.openapi_schema:
            document = get_openapi(
                title=self.title, version=self.version, summary=self.summary, routes=self.routes
            )
            _, definitions = models_json_schema(
                [
                    (shape, "serialization")
                    for shape in (*SHAPES, *IMAGE_SHAPES, *WEBHOOK_SHAPES, *ADMIN_SHAPES)
                ],
                ref_template=_REF,
            )
            components = document.setdefault("components", {})
            components["schemas"] = definitions["$defs"]
            bearer = {"type": "http", "scheme": "bearer"}
            components["securitySchemes"] = {KEY_SCHEME: bearer, ADMIN_SCHEME: bearer}
            self.openapi_schema = document
        return self.openapi_schema


def _answer(status: int, given: type[BaseModel] | str | None) -> dict[str, Any]:
    described_answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if isinstance(given, str):
        described_answer["content"] = {given: {}}
    elif given is not None:
        described_answer["content"] = json_body(given)
    return described_answer


def _refusal(status: int) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
    return {"description": HTTPStatus(status).phrase, "content": content}
