"""Deliveries of webhooks: how each went, to be sent again, and a test; and when low credits are told."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api import pages
from safelight.api.auth import Doorkeeper
from safelight.api.described import CURSOR, LIMIT, TASK_ID, described, json_body, parameter
from safelight.api.headers import headers_of
from safelight.api.moments import read_moment
from safelight.api.parts import ApiParts
from safelight.api.problems import FieldsRefused, not_found
from safelight.api.shown import json_answer, time_text
from safelight.api.tasks import read_id
from safelight.api.webhooks import read_body
from safelight.api.webhookshapes import (
    Delivery,
    DeliveryList,
    RecoverBody,
    Recovered,
    Threshold,
    ThresholdBody,
)
from safelight.db import webhookviews
from safelight.db.webhookviews import DeliveryView

STATUSES = ("pending", "delivered", "failed", "canceled")
_NUMBER = re.compile(r"[0-9]{1,18}")


class Deliveries:
    """The routes below `/v1/webhook-endpoints/{id}` about deliveries, and `/v1/balance/threshold`."""

    def __init__(self, parts: ApiParts, doorkeeper: Doorkeeper) -> None:
        self._parts = parts
        self._doorkeeper = doorkeeper

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        router, place = app.router, "/v1/webhook-endpoints/{id}"
        router.add_api_route(f"{place}/deliveries", self.list, methods=["GET"], **_LIST)
        router.add_api_route(f"{place}/deliveries/{{delivery}}", self.show, methods=["GET"], **_SHOW)
        router.add_api_route(
            f"{place}/deliveries/{{delivery}}/redeliver", self.redeliver, methods=["POST"], **_REDELIVER
        )
        router.add_api_route(f"{place}/test", self.test, methods=["POST"], **_TEST)
        router.add_api_route(f"{place}/recover", self.recover, methods=["POST"], **_RECOVER)
        router.add_api_route("/v1/balance/threshold", self.threshold, methods=["GET"], **_THRESHOLD)
        router.add_api_route("/v1/balance/threshold", self.set_threshold, methods=["PUT"], **_SET_THRESHOLD)

    async def list(self, request: Request) -> Response:
        """Deliveries of an endpoint, newest first, each with its tries."""
        account_id = await self._doorkeeper.admit(request.scope)
        query = request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.entry_position)
        status = query.get("status")
        if status is not None and status not in STATUSES:
            raise FieldsRefused([{"field": "status", "message": f"must be one of: {', '.join(STATUSES)}"}])
        endpoint_id = read_id(request)
        async with self._parts.database.connection() as connection:
            if not await webhookviews.endpoints(connection, account_id, endpoint_id):
                raise not_found()
            found = await webhookviews.deliveries(
                connection, account_id, endpoint_id, before=before, limit=limit, status=status
            )
        last = found[-1].id.to_bytes(8) if found else None
        return json_answer(pages.page([_delivery_json(one) for one in found], limit, last))

    async def show(self, request: Request) -> Response:
        """One delivery with its tries."""
        account_id = await self._doorkeeper.admit(request.scope)
        return json_answer(await self._read(account_id, read_id(request), _read_number(request)))

    async def redeliver(self, request: Request) -> Response:
        """Send a delivery again, under its old id and with the whole schedule before it."""
        account_id = await self._doorkeeper.admit(request.scope)
        endpoint_id, delivery_id = read_id(request), _read_number(request)
        await self._parts.endpoints.redeliver(account_id, endpoint_id, delivery_id)
        return json_answer(await self._read(account_id, endpoint_id, delivery_id), 202)

    async def test(self, request: Request) -> Response:
        """Send a test event, once. Read the delivery to see how it went."""
        account_id = await self._doorkeeper.admit(request.scope)
        endpoint_id = read_id(request)
        delivery_id = await self._parts.endpoints.test(account_id, endpoint_id)
        return json_answer(await self._read(account_id, endpoint_id, delivery_id), 202)

    async def recover(self, request: Request) -> Response:
        """Send what failed since a time again, oldest first, ten a second at the most."""
        headers = headers_of(request.scope)
        account_id = await self._doorkeeper.admit(request.scope, headers)
        body = await read_body(request, headers, RecoverBody)
        since: datetime = read_moment("since", body.since)
        recovered = await self._parts.endpoints.recover(account_id, read_id(request), since=since)
        return json_answer({"recovered": recovered}, 202)

    async def threshold(self, request: Request) -> Response:
        """Below which balance `credits.low` is sent to your endpoints."""
        account_id = await self._doorkeeper.admit(request.scope)
        async with self._parts.database.connection() as connection:
            found = await webhookviews.low_credits(connection, account_id)
        return json_answer({"threshold": found})

    async def set_threshold(self, request: Request) -> Response:
        """Set the balance below which `credits.low` is sent to your endpoints; null for never."""
        headers = headers_of(request.scope)
        account_id = await self._doorkeeper.admit(request.scope, headers)
        body = await read_body(request, headers, ThresholdBody)
        await self._parts.endpoints.want_low_credits(account_id, body.threshold)
        return json_answer({"threshold": body.threshold})

    async def _read(self, account_id: UUID, endpoint_id: UUID, delivery_id: int) -> dict[str, Any]:
        async with self._parts.database.connection() as connection:
            if not await webhookviews.endpoints(connection, account_id, endpoint_id):
                raise not_found()
            found = await webhookviews.deliveries(
                connection, account_id, endpoint_id, delivery_id=delivery_id
            )
        if not found:
            raise not_found()
        return _delivery_json(found[0])


def _read_number(request: Request) -> int:
    text = request.path_params["delivery"]
    if not _NUMBER.fullmatch(text):
        raise not_found()
    return int(text)


def _delivery_json(delivery: DeliveryView) -> dict[str, Any]:
    return {
        "id": str(delivery.id),
        "event_id": f"evt_{delivery.event_id.hex}",
        "type": delivery.type,
        "task_id": str(delivery.task_id) if delivery.task_id else None,
        "status": delivery.status,
        "reason": delivery.reason,
        "next_try_at": time_text(delivery.due_at) if delivery.due_at else None,
        "created_at": time_text(delivery.created_at),
        "ended_at": time_text(delivery.ended_at) if delivery.ended_at else None,
        "body": json.loads(delivery.body),
        "tries": delivery.tries,
    }


_NUMBER_PARAMETER = parameter("delivery", "path", {"type": "string", "pattern": "^[0-9]{1,18}$"})
_STATUS = parameter("status", "query", {"type": "string", "enum": list(STATUSES)})
_LIST = described(
    "List deliveries of a webhook endpoint",
    {200: DeliveryList},
    refusals=(404, 422),
    parameters=(TASK_ID, CURSOR, LIMIT, _STATUS),
)
_SHOW = described(
    "Read a delivery", {200: Delivery}, refusals=(404,), parameters=(TASK_ID, _NUMBER_PARAMETER)
)
_REDELIVER = described(
    "Deliver again", {202: Delivery}, refusals=(404, 409), parameters=(TASK_ID, _NUMBER_PARAMETER)
)
_TEST = described("Send a test event", {202: Delivery}, refusals=(404, 409), parameters=(TASK_ID,))
_RECOVER = described(
    "Deliver again what failed since a time",
    {202: Recovered},
    refusals=(400, 404, 408, 409, 413, 415, 422),
    parameters=(TASK_ID,),
    body=json_body(RecoverBody),
)
_THRESHOLD = described("Read when low credits are told", {200: Threshold})
_SET_THRESHOLD = described(
    "Set when low credits are told",
    {200: Threshold},
    refusals=(400, 408, 413, 415, 422),
    body=json_body(ThresholdBody),
)
