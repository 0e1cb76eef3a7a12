"""The models that may be asked for."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api.auth import Doorkeeper
from safelight.api.described import described
from safelight.api.parts import ApiParts
from safelight.api.shapes import ModelList
from safelight.api.shown import json_answer
from safelight.domain.catalog import Model
from safelight.errors import RequestError


class Models:
    """The route `/v1/models`."""

    def __init__(self, parts: ApiParts, doorkeeper: Doorkeeper) -> None:
        self._catalog = parts.catalog
        self._doorkeeper = doorkeeper

    def add_to(self, app: FastAPI) -> None:
        """Add the route."""
        described_models = described("List models", {200: ModelList})
        app.router.add_api_route("/v1/models", self.list, methods=["GET"], **described_models)

    async def list(self, request: Request) -> Response:
        """What you may ask for, and at what price."""
        await self._doorkeeper.admit(request.scope)
        today = utc_today()
        offered = (model.offered_on(today) for model in self._catalog.models.values())
        models = [model_json(model) for model in offered if model is not None]
        return json_answer({"object": "list", "data": models, "next_cursor": None})


def offer_of(model: Model) -> Model:
    """What a model offers today.

    Raises:
        RequestError: 404, it has retired at every provider.
    """
    offered = model.offered_on(utc_today())
    if offered is None:
        raise RequestError(404, "model-retired", "This model has retired; GET /v1/models lists the others.")
    return offered


def utc_today() -> date:
    """The day by this machine's clock; what is accepted is judged by the database's."""
    return datetime.now(UTC).date()


def model_json(model: Model) -> dict[str, Any]:
    """What customers read of a model; which provider makes the pictures is nobody's business."""
    return {
        "name": model.name,
        "operations": list(model.operations),
        "price": model.price,
        "max_n": model.max_n,
        "sizes": [size for size in model.sizes if size],
        "aspect_ratios": [ratio for ratio in model.aspect_ratios if ratio],
        "max_prompt_chars": model.max_prompt_chars,
        "max_images": model.max_images,
        "takes_mask": model.takes_mask,
        "options": None if model.options is None else list(model.options),
        "is_default": model.is_default,
        "retires_on": _end_of(model),
        # So that OpenAI's client can read the list; a model has no date here.
        "id": model.name,
        "object": "model",
        "created": 0,
        "owned_by": "safelight",
    }


def _end_of(model: Model) -> str | None:
    """The day from which no route is left; None where one has no such day."""
    days = [route.retires_on for route in model.routes]
    return None if None in days else max(day for day in days if day is not None).isoformat()
