"""The calling account: its balance and its ledger."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api import pages
from safelight.api.auth import Doorkeeper
from safelight.api.described import CURSOR, LIMIT, described
from safelight.api.parts import ApiParts
from safelight.api.problems import not_found
from safelight.api.shapes import Balance, EntryList
from safelight.api.shown import json_answer, time_text
from safelight.db import views


class Account:
    """The routes `/v1/balance` and `/v1/entries`."""

    def __init__(self, parts: ApiParts, doorkeeper: Doorkeeper) -> None:
        self._database = parts.database
        self._doorkeeper = doorkeeper

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.router.add_api_route("/v1/balance", self.balance, methods=["GET"], **_BALANCE)
        app.router.add_api_route("/v1/entries", self.entries, methods=["GET"], **_ENTRIES)

    async def balance(self, request: Request) -> Response:
        """What you may spend, and what is held for open tasks."""
        account_id = await self._doorkeeper.admit(request.scope)
        async with self._database.connection() as connection:
            found = await views.balance(connection, account_id)
        if found is None:
            raise not_found()
        available, held = found
        return json_answer({"available": available, "held": held})

    async def entries(self, request: Request) -> Response:
        """Your ledger, newest line first."""
        account_id = await self._doorkeeper.admit(request.scope)
        query = request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.entry_position)
        async with self._database.connection() as connection:
            found = await views.entries(connection, account_id, before=before, limit=limit)
        last = found[-1].id.to_bytes(8) if found else None
        return json_answer(pages.page([_entry_json(entry) for entry in found], limit, last))


def _entry_json(entry: views.EntryView) -> dict[str, Any]:
    """The operator's note stays inside."""
    return {
        "id": str(entry.id),
        "kind": entry.kind,
        "task_id": str(entry.task_id) if entry.task_id else None,
        "available_delta": entry.available_delta,
        "held_delta": entry.held_delta,
        "created_at": time_text(entry.created_at),
    }


_BALANCE = described("Read your balance", {200: Balance}, refusals=(404,))
_ENTRIES = described("List your entries", {200: EntryList}, refusals=(422,), parameters=(CURSOR, LIMIT))
