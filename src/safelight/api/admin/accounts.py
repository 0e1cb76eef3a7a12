"""Accounts for the operator: make them, give them credits and keys."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api import pages
from safelight.api.admin.exchange import KEY_HEADER, admin_described, changed, page_of, read_change, shown
from safelight.api.admin.keeper import Keeper
from safelight.api.admin.shapes import (
    AccountBody,
    AccountMade,
    AdminPage,
    GrantBody,
    Granted,
    KeyBody,
    KeyMade,
    OneAccount,
)
from safelight.api.described import CURSOR, LIMIT, TASK_ID, json_body, parameter
from safelight.api.headers import headers_of
from safelight.api.parts import ApiParts
from safelight.api.problems import FieldsRefused, not_found
from safelight.api.tasks import read_id
from safelight.db import accounts, adminviews, views


class AdminAccounts:
    """The routes `/admin/accounts` and `/admin/keys`."""

    def __init__(self, parts: ApiParts, keeper: Keeper) -> None:
        self._parts = parts
        self._administration = parts.administration
        self._keeper = keeper

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        router = app.router
        router.add_api_route("/admin/accounts", self.list, methods=["GET"], **_LIST)
        router.add_api_route("/admin/accounts", self.create, methods=["POST"], **_CREATE)
        router.add_api_route("/admin/accounts/{id}", self.show, methods=["GET"], **_SHOW)
        router.add_api_route("/admin/accounts/{id}/grants", self.grant, methods=["POST"], **_GRANT)
        router.add_api_route("/admin/accounts/{id}/entries", self.entries, methods=["GET"], **_ENTRIES)
        router.add_api_route("/admin/accounts/{id}/keys", self.keys, methods=["GET"], **_KEYS)
        router.add_api_route("/admin/accounts/{id}/keys", self.create_key, methods=["POST"], **_CREATE_KEY)
        router.add_api_route("/admin/keys/{id}/revoke", self.revoke_key, methods=["POST"], **_REVOKE_KEY)

    async def list(self, request: Request) -> Response:
        """Every account with its balance, oldest first."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        query = request.query_params
        limit, after = pages.read_limit(query), pages.read_cursor(query, pages.task_position)
        async with self._parts.database.connection() as connection:
            found = await adminviews.accounts(connection, after=after, limit=limit)
        return page_of(found, limit)

    async def create(self, request: Request) -> Response:
        """Make an account, which is empty."""
        headers = headers_of(request.scope)
        by = await self._keeper.admit(request.scope, headers)
        body, once = await read_change(request, headers, AccountBody)
        return changed(await self._administration.create_account(body.name, by, once), 201)

    async def show(self, request: Request) -> Response:
        """One account with its balance, and how many endpoints and keys it has."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        account_id = read_id(request)
        async with self._parts.database.connection() as connection:
            found = await adminviews.account(connection, account_id)
        if found is None:
            raise not_found()
        return shown(found)

    async def grant(self, request: Request) -> Response:
        """Grant credits, or take some back; the `Idempotency-Key` is needed."""
        headers = headers_of(request.scope)
        by = await self._keeper.admit(request.scope, headers)
        account_id = read_id(request)
        body, once = await read_change(request, headers, GrantBody, needs_key=True)
        if body.amount == 0:
            raise FieldsRefused([{"field": "amount", "message": "must not be 0"}])
        return changed(
            await self._administration.grant(account_id, body.amount, body.reason, by, once=once), 201
        )

    async def entries(self, request: Request) -> Response:
        """The ledger lines of an account, newest first."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        account_id, query = read_id(request), request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.entry_position)
        async with self._parts.database.connection() as connection:
            found = await views.entries(connection, account_id, before=before, limit=limit)
        return page_of([asdict(entry) for entry in found], limit)

    async def keys(self, request: Request) -> Response:
        """The keys of an account, with nothing secret in it."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        account_id = read_id(request)
        async with self._parts.database.connection() as connection:
            found = await accounts.list_keys(connection, account_id)
        return shown({"data": [asdict(key) for key in found], "next_cursor": None})

    async def create_key(self, request: Request) -> Response:
        """Make a key and show it, once. Nothing secret is kept, so this is not repeated under an idempotency key."""
        headers = headers_of(request.scope)
        by = await self._keeper.admit(request.scope, headers)
        account_id = read_id(request)
        body, _ = await read_change(request, headers, KeyBody)
        return shown({"key": await self._administration.create_key(account_id, body.name, by)}, 201)

    async def revoke_key(self, request: Request) -> Response:
        """End a key of an account: within seconds every door refuses it."""
        by = await self._keeper.admit(request.scope, headers_of(request.scope))
        key_id = request.path_params["id"]
        if not key_id.isascii() or not key_id.isalnum() or len(key_id) > 50:
            raise not_found()
        await self._administration.revoke_key(key_id, by)
        return Response(status_code=204)


_CHANGE = (400, 404, 408, 409, 413, 415, 422)
_KEY_ID = parameter("id", "path", {"type": "string", "pattern": "^[0-9A-Za-z]{1,50}$"})
_LIST = admin_described("List accounts", {200: AdminPage}, refusals=(422,), parameters=(CURSOR, LIMIT))
_CREATE = admin_described(
    "Make an account",
    {201: AccountMade},
    refusals=_CHANGE,
    parameters=(KEY_HEADER,),
    body=json_body(AccountBody),
)
_SHOW = admin_described("Read an account", {200: OneAccount}, refusals=(404,), parameters=(TASK_ID,))
_GRANT = admin_described(
    "Grant credits",
    {201: Granted},
    refusals=_CHANGE,
    parameters=(TASK_ID, {**KEY_HEADER, "required": True}),
    body=json_body(GrantBody),
)
_ENTRIES = admin_described(
    "List the entries of an account",
    {200: AdminPage},
    refusals=(404, 422),
    parameters=(TASK_ID, CURSOR, LIMIT),
)
_KEYS = admin_described(
    "List the keys of an account", {200: AdminPage}, refusals=(404,), parameters=(TASK_ID,)
)
_CREATE_KEY = admin_described(
    "Make a key", {201: KeyMade}, refusals=_CHANGE, parameters=(TASK_ID,), body=json_body(KeyBody)
)
_REVOKE_KEY = admin_described("End a key", {204: None}, refusals=(404,), parameters=(_KEY_ID,))
