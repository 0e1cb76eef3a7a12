"""The models that may be asked for."""

from __future__ import annotations

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
        models = [_model_json(model) for model in self._catalog.models.values()]
        return json_answer({"data": models, "next_cursor": None})


def _model_json(model: Model) -> dict[str, Any]:
    """Which provider makes the pictures is nobody's business."""
    return {
        "name": model.name,
        "operations": list(model.operations),
        "price": model.price,
        "max_n": model.max_n,
        "sizes": [size for size in model.sizes if size],
        "aspect_ratios": [ratio for ratio in model.aspect_ratios if ratio],
        "max_prompt_chars": model.max_prompt_chars,
        "max_images": model.max_images,
        "is_default": model.is_default,
    }
