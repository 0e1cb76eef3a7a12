"""Webhook endpoints: where an account is told, and what signs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api import bodies
from safelight.api.auth import Doorkeeper
from safelight.api.checked import BodyT, check_body
from safelight.api.described import TASK_ID, described, json_body
from safelight.api.headers import Headers, headers_of
from safelight.api.parts import ApiParts
from safelight.api.problems import not_found
from safelight.api.shown import json_answer, time_text
from safelight.api.tasks import read_id
from safelight.api.webhookshapes import (
    EndpointBody,
    EndpointChangeBody,
    NewWebhookEndpoint,
    RotateBody,
    WebhookEndpoint,
    WebhookEndpointList,
)
from safelight.db import webhookviews
from safelight.db.webhookviews import EndpointView
from safelight.lifecycle.endpoints import Secret

MAX_BODY_BYTES = 16_384


class Webhooks:
    """The routes `/v1/webhook-endpoints`."""

    def __init__(self, parts: ApiParts, doorkeeper: Doorkeeper) -> None:
        self._parts = parts
        self._doorkeeper = doorkeeper

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        router, place = app.router, "/v1/webhook-endpoints"
        router.add_api_route(place, self.register, methods=["POST"], **_REGISTER)
        router.add_api_route(place, self.list, methods=["GET"], **_LIST)
        router.add_api_route(f"{place}/{{id}}", self.show, methods=["GET"], **_SHOW)
        router.add_api_route(f"{place}/{{id}}", self.change, methods=["PATCH"], **_CHANGE)
        router.add_api_route(f"{place}/{{id}}", self.remove, methods=["DELETE"], **_REMOVE)
        router.add_api_route(f"{place}/{{id}}/rotate", self.rotate, methods=["POST"], **_ROTATE)
        router.add_api_route(f"{place}/{{id}}/enable", self.enable, methods=["POST"], **_ENABLE)

    async def register(self, request: Request) -> Response:
        """Add an endpoint. Its secret is in this answer and in no other."""
        headers = headers_of(request.scope)
        account_id = await self._doorkeeper.admit(request.scope, headers)
        body = await read_body(request, headers, EndpointBody)
        made = await self._parts.endpoints.register(
            account_id, url=body.url, description=body.description, types=body.events
        )
        return await self._with_secret(account_id, made, 201)

    async def list(self, request: Request) -> Response:
        """Your endpoints, oldest first."""
        account_id = await self._doorkeeper.admit(request.scope)
        async with self._parts.database.connection() as connection:
            found = await webhookviews.endpoints(connection, account_id)
        return json_answer({"data": [_endpoint_json(endpoint) for endpoint in found], "next_cursor": None})

    async def show(self, request: Request) -> Response:
        """One endpoint, and how it has gone lately."""
        account_id = await self._doorkeeper.admit(request.scope)
        return json_answer(await self._read(account_id, read_id(request)))

    async def change(self, request: Request) -> Response:
        """Change an endpoint. What is on its way goes to the new address from its next try on."""
        headers = headers_of(request.scope)
        account_id = await self._doorkeeper.admit(request.scope, headers)
        endpoint_id = read_id(request)
        body = await read_body(request, headers, EndpointChangeBody)
        await self._parts.endpoints.change(
            account_id, endpoint_id, url=body.url, description=body.description, types=body.events
        )
        return json_answer(await self._read(account_id, endpoint_id))

    async def remove(self, request: Request) -> Response:
        """Delete an endpoint. Nothing more is sent to it."""
        account_id = await self._doorkeeper.admit(request.scope)
        await self._parts.endpoints.remove(account_id, read_id(request))
        return Response(status_code=204)

    async def rotate(self, request: Request) -> Response:
        """Make a new secret, in force at once; the old ones sign as well for a day, or as `overlap_s` says."""
        headers = headers_of(request.scope)
        account_id = await self._doorkeeper.admit(request.scope, headers)
        body = await read_body(request, headers, RotateBody, may_be_empty=True)
        made = await self._parts.endpoints.rotate(account_id, read_id(request), overlap_s=body.overlap_s)
        return await self._with_secret(account_id, made)

    async def enable(self, request: Request) -> Response:
        """Put a disabled endpoint back in use. What failed meanwhile is sent when you ask for it."""
        account_id = await self._doorkeeper.admit(request.scope)
        endpoint_id = read_id(request)
        await self._parts.endpoints.enable(account_id, endpoint_id)
        return json_answer(await self._read(account_id, endpoint_id))

    async def _with_secret(self, account_id: UUID, made: Secret, status: int = 200) -> Response:
        document = await self._read(account_id, made.endpoint_id)
        return json_answer({**document, "secret": made.text}, status, headers={"Cache-Control": "no-store"})

    async def _read(self, account_id: UUID, endpoint_id: UUID) -> dict[str, Any]:
        async with self._parts.database.connection() as connection:
            found = await webhookviews.endpoints(connection, account_id, endpoint_id)
        if not found:
            raise not_found()
        return _endpoint_json(found[0])


async def read_body(
    request: Request, headers: Headers, shape: type[BodyT], *, may_be_empty: bool = False
) -> BodyT:
    """The small JSON body of a change; one that may be empty then says what its shape does by default."""
    raw = await bodies.read_body(request, headers, MAX_BODY_BYTES)
    if not raw and may_be_empty:
        return shape()
    bodies.check_json_headers(headers)
    return check_body(bodies.parse_object(raw), shape)


def _endpoint_json(endpoint: EndpointView) -> dict[str, Any]:
    return {
        "id": str(endpoint.id),
        "url": endpoint.url,
        "description": endpoint.description,
        "events": endpoint.types,
        "status": "disabled" if endpoint.disabled_at else "enabled",
        "disabled_reason": endpoint.disabled_reason or None,
        "disabled_at": time_text(endpoint.disabled_at) if endpoint.disabled_at else None,
        "failures_in_a_row": endpoint.failures,
        "failing_since": time_text(endpoint.failing_since) if endpoint.failing_since else None,
        "last_success_at": time_text(endpoint.succeeded_at) if endpoint.succeeded_at else None,
        "pending": endpoint.pending,
        "secrets": endpoint.secrets,
        "created_at": time_text(endpoint.created_at),
    }


_BODY_REFUSALS = (400, 408, 413, 415, 422)
_REGISTER = described(
    "Register a webhook endpoint",
    {201: NewWebhookEndpoint},
    refusals=(*_BODY_REFUSALS, 409),
    body=json_body(EndpointBody),
)
_LIST = described("List webhook endpoints", {200: WebhookEndpointList})
_SHOW = described("Read a webhook endpoint", {200: WebhookEndpoint}, refusals=(404,), parameters=(TASK_ID,))
_CHANGE = described(
    "Change a webhook endpoint",
    {200: WebhookEndpoint},
    refusals=(*_BODY_REFUSALS, 404),
    parameters=(TASK_ID,),
    body=json_body(EndpointChangeBody),
)
_REMOVE = described("Delete a webhook endpoint", {204: None}, refusals=(404,), parameters=(TASK_ID,))
_ROTATE = described(
    "Rotate the secret of a webhook endpoint",
    {200: NewWebhookEndpoint},
    refusals=(*_BODY_REFUSALS, 404, 409),
    parameters=(TASK_ID,),
    body=json_body(RotateBody),
)
_ENABLE = described(
    "Enable a webhook endpoint", {200: WebhookEndpoint}, refusals=(404,), parameters=(TASK_ID,)
)
