"""Webhooks as operators see them: every account's endpoints, and how deliveries go. Nothing is changed here."""

from __future__ import annotations

from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api import pages
from safelight.api.admin.exchange import admin_described, page_of
from safelight.api.admin.keeper import Keeper
from safelight.api.admin.shapes import AdminPage
from safelight.api.deliveries import STATUSES
from safelight.api.described import CURSOR, LIMIT, parameter
from safelight.api.headers import headers_of
from safelight.api.parts import ApiParts
from safelight.api.problems import FieldsRefused
from safelight.api.tasks import UUID_TEXT
from safelight.db import webhookviews


class AdminWebhooks:
    """The routes `/admin/webhook-endpoints` and `/admin/deliveries`."""

    def __init__(self, parts: ApiParts, keeper: Keeper) -> None:
        self._parts = parts
        self._keeper = keeper

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.router.add_api_route("/admin/webhook-endpoints", self.endpoints, methods=["GET"], **_ENDPOINTS)
        app.router.add_api_route("/admin/deliveries", self.deliveries, methods=["GET"], **_DELIVERIES)

    async def endpoints(self, request: Request) -> Response:
        """Webhook endpoints, newest first; with `account` those of one account."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        query = request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.task_position)
        async with self._parts.database.connection() as connection:
            found = await webhookviews.all_endpoints(
                connection, before=before, limit=limit, account_id=_read_id(request, "account")
            )
        return page_of(found, limit)

    async def deliveries(self, request: Request) -> Response:
        """Deliveries, newest first; with `endpoint` those to one endpoint, with `status` those that ended so."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        query = request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.entry_position)
        status = query.get("status")
        if status is not None and status not in STATUSES:
            raise FieldsRefused([{"field": "status", "message": f"must be one of: {', '.join(STATUSES)}"}])
        async with self._parts.database.connection() as connection:
            found = await webhookviews.all_deliveries(
                connection,
                before=before,
                limit=limit,
                endpoint_id=_read_id(request, "endpoint"),
                status=status,
            )
        return page_of(found, limit)


def _read_id(request: Request, name: str) -> UUID | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not UUID_TEXT.fullmatch(text):
        raise FieldsRefused([{"field": name, "message": "must be an id"}])
    return UUID(text)


_ID = {"type": "string", "format": "uuid"}
_ENDPOINTS = admin_described(
    "List webhook endpoints of all accounts",
    {200: AdminPage},
    refusals=(422,),
    parameters=(CURSOR, LIMIT, parameter("account", "query", _ID)),
)
_STATUS = parameter("status", "query", {"type": "string", "enum": list(STATUSES)})
_DELIVERIES = admin_described(
    "List deliveries to all endpoints",
    {200: AdminPage},
    refusals=(422,),
    parameters=(CURSOR, LIMIT, parameter("endpoint", "query", _ID), _STATUS),
)
