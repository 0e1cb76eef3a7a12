"""Tasks for the operator: what waits for a decision, everything about one of them, and the decision itself."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api import pages
from safelight.api.admin.exchange import KEY_HEADER, admin_described, changed, page_of, read_change, shown
from safelight.api.admin.keeper import Keeper
from safelight.api.admin.shapes import AdminPage, DecisionBody, DecisionMade, WholeTask
from safelight.api.described import CURSOR, LIMIT, TASK_ID, json_body, parameter
from safelight.api.headers import headers_of
from safelight.api.parts import ApiParts
from safelight.api.problems import FieldsRefused, not_found
from safelight.api.tasks import read_id
from safelight.db import adminviews
from safelight.domain.review import Choice
from safelight.domain.task import ReviewReason, State
from safelight.lifecycle.attach import RulingRefused
from safelight.lifecycle.review import Ruling


class AdminTasks:
    """The routes `/admin/reviews` and `/admin/tasks`."""

    def __init__(self, parts: ApiParts, keeper: Keeper) -> None:
        self._parts = parts
        self._keeper = keeper

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        router = app.router
        router.add_api_route("/admin/reviews", self.reviews, methods=["GET"], **_REVIEWS)
        router.add_api_route("/admin/tasks", self.list, methods=["GET"], **_LIST)
        router.add_api_route("/admin/tasks/{id}", self.show, methods=["GET"], **_SHOW)
        router.add_api_route("/admin/tasks/{id}/decisions", self.decide, methods=["POST"], **_DECIDE)

    async def reviews(self, request: Request) -> Response:
        """Tasks that wait for a person, oldest first."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        query = request.query_params
        limit, after = pages.read_limit(query), pages.read_cursor(query, pages.task_position)
        reason = _one_of(request, "reason", tuple(ReviewReason))
        async with self._parts.database.connection() as connection:
            found = await adminviews.reviews(
                connection, after=after, limit=limit, reason=reason, provider=read_word(request, "provider")
            )
        return page_of(found, limit)

    async def list(self, request: Request) -> Response:
        """Tasks of all accounts, newest first; `which=stuck` are open ones that several looks brought nothing of."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        query = request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.task_position)
        wanted = adminviews.TaskFilter(
            state=_one_of(request, "state", tuple(State)),
            account_id=_read_account(request),
            model=read_word(request, "model"),
            provider=read_word(request, "provider"),
            is_open=(which := _one_of(request, "which", ("open", "stuck"))) == "open",
            is_stuck=which == "stuck",
        )
        async with self._parts.database.connection() as connection:
            found = await adminviews.tasks(connection, wanted, before=before, limit=limit)
        return page_of(found, limit)

    async def show(self, request: Request) -> Response:
        """One task of any account, with everything that is known of it."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        task_id = read_id(request)
        async with self._parts.database.connection() as connection:
            found = await adminviews.whole_task(connection, task_id)
        if found is None:
            raise not_found()
        return shown(found)

    async def decide(self, request: Request) -> Response:
        """Decide about a task in review. Of two people who decide the same, the second gets `already-decided`."""
        headers = headers_of(request.scope)
        by = await self._keeper.admit(request.scope, headers)
        task_id = read_id(request)
        settings = self._parts.settings
        limit = max(settings.max_body_bytes, 2 * settings.max_asset_bytes)
        body, once = await read_change(request, headers, DecisionBody, limit=limit)
        ruling = Ruling(
            task_id,
            body.version,
            Choice(body.decision),
            reason_code=body.reason_code,
            note=body.note,
            urls=body.urls,
        )
        try:
            return changed(await self._parts.review.decide(ruling, by, once))
        except RulingRefused as refused:
            faults = refused.faults
        raise FieldsRefused([{"field": field, "message": message} for field, message in faults])


def _one_of(request: Request, name: str, words: Sequence[str]) -> str | None:
    text = request.query_params.get(name)
    if text is not None and text not in words:
        raise FieldsRefused([{"field": name, "message": f"must be one of: {', '.join(words)}"}])
    return text


def _read_account(request: Request) -> UUID | None:
    text = request.query_params.get("account")
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise FieldsRefused([{"field": "account", "message": "must be the id of an account"}]) from None


def read_word(request: Request, name: str) -> str | None:
    """A filter of a list: a short word, or nothing.

    Raises:
        RequestError: 422.
    """
    text = request.query_params.get(name)
    if text is not None and (not text.isprintable() or not text.isascii() or len(text) > 200):
        raise FieldsRefused([{"field": name, "message": "must be up to 200 printable ASCII characters"}])
    return text


PROVIDER = parameter("provider", "query", {"type": "string", "maxLength": 200})
_REASON = parameter("reason", "query", {"type": "string", "enum": list(ReviewReason)})
_REVIEWS = admin_described(
    "List what waits for a decision",
    {200: AdminPage},
    refusals=(422,),
    parameters=(CURSOR, LIMIT, _REASON, PROVIDER),
)
_MODEL = parameter("model", "query", {"type": "string", "maxLength": 200})
_STATE = parameter("state", "query", {"type": "string", "enum": list(State)})
_WHICH = parameter("which", "query", {"type": "string", "enum": ["open", "stuck"]})
_ACCOUNT = parameter("account", "query", {"type": "string", "format": "uuid"})
_LIST = admin_described(
    "List tasks of all accounts",
    {200: AdminPage},
    refusals=(422,),
    parameters=(CURSOR, LIMIT, _STATE, _WHICH, _ACCOUNT, _MODEL, PROVIDER),
)
_SHOW = admin_described(
    "Read everything about a task", {200: WholeTask}, refusals=(404,), parameters=(TASK_ID,)
)
_DECIDE = admin_described(
    "Decide about a task in review",
    {200: DecisionMade},
    refusals=(400, 404, 408, 409, 413, 415, 422),
    parameters=(TASK_ID, KEY_HEADER),
    body=json_body(DecisionBody),
)
