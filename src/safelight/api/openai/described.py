"""How the routes of this door are described in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from safelight.api.described import TASK_ID, described, json_body, parameter
from safelight.api.openai.shapes import ApiErrorAnswer, ImageEdit, ImageEditForm, ImageGeneration, ImageTask

_KEY = parameter(
    "Idempotency-Key",
    "header",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    "The same key with the same body waits for the same task again.",
)
_PREFER = parameter("Prefer", "header", {"type": "string"}, "`wait=N` seconds at most, or `respond-async`.")
_FORMAT = parameter("response_format", "query", {"type": "string", "enum": ["b64_json", "url"]})
_REFUSALS = (400, 404, 408, 409, 413, 415, 422)


def _shown(
    summary: str, answers: Mapping[int, type[BaseModel]], refusals: tuple[int, ...], **given: Any
) -> dict[str, Any]:
    shown = described(summary, answers, refusals=refusals, **given)
    for status, response in shown["responses"].items():
        if status >= 400:
            response["content"] = json_body(ApiErrorAnswer)
    return shown


def _submit(summary: str, body: Mapping[str, Any], *, is_held: bool) -> dict[str, Any]:
    answers = {200: ImageTask, 202: ImageTask} if is_held else {202: ImageTask}
    refusals = (*_REFUSALS, 502)
    return _shown(summary, answers, refusals, body=body, parameters=(_KEY, _PREFER) if is_held else (_KEY,))


_GENERATION = json_body(ImageGeneration)
_EDIT = {**json_body(ImageEdit), "multipart/form-data": json_body(ImageEditForm)["application/json"]}
GENERATE = _submit("Pictures from a prompt, as in OpenAI's API", _GENERATION, is_held=True)
GENERATE_ASYNC = _submit("The same, answered with the task", _GENERATION, is_held=False)
EDIT = _submit("Pictures from pictures, as in OpenAI's API", _EDIT, is_held=True)
EDIT_ASYNC = _submit("The same, answered with the task", _EDIT, is_held=False)
SHOW = _shown(
    "Read a task of this form", {200: ImageTask}, (400, 404), parameters=(TASK_ID, _FORMAT, _PREFER)
)
