"""Tasks: submit, read, list, cancel."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api import bodies, pages
from safelight.api.auth import Doorkeeper
from safelight.api.described import CURSOR, LIMIT, TASK_ID, described, json_body, parameter
from safelight.api.headers import headers_of
from safelight.api.moments import read_moment
from safelight.api.parts import ApiParts
from safelight.api.problems import FieldsRefused, not_found
from safelight.api.shapes import Receipt, Task, TaskBody, TaskList
from safelight.api.shown import Links, base_of, json_answer, states_of, task_json, timeline_json
from safelight.api.wishes import make_wish
from safelight.assets.urls import parse_origins
from safelight.db import views
from safelight.errors import RequestError
from safelight.lifecycle.accept import KEEP_KEY_S, Accepted, Wish
from safelight.lifecycle.inputs import InputsRefused, Sources

UUID_TEXT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

ADVICE = "Send large pictures to POST /v1/uploads first, and name them by their ids."


class Tasks:
    """The routes below `/v1/tasks`."""

    def __init__(self, parts: ApiParts, doorkeeper: Doorkeeper) -> None:
        self._parts = parts
        self._doorkeeper = doorkeeper
        self._origins = parse_origins(parts.settings.allowed_origins)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        router = app.router
        router.add_api_route("/v1/tasks", self.submit, methods=["POST"], **_SUBMIT)
        router.add_api_route("/v1/tasks/{id}", self.show, methods=["GET"], **_SHOW)
        router.add_api_route("/v1/tasks", self.list, methods=["GET"], **_LIST)
        router.add_api_route("/v1/tasks/{id}/cancel", self.cancel, methods=["POST"], **_CANCEL)
        router.add_api_route("/v1/tasks/{id}/erase", self.erase, methods=["POST"], **_ERASE)

    async def submit(self, request: Request) -> Response:
        """Accept a task. The same `Idempotency-Key` with the same body gets the first answer again."""
        headers = headers_of(request.scope)
        account_id = await self._doorkeeper.admit(request.scope, headers)
        bodies.check_json_headers(headers)
        key = bodies.read_idempotency_key(headers)
        limit = self._parts.settings.max_body_bytes
        raw = await bodies.read_body(request, headers, limit, advice=ADVICE)
        body = bodies.parse_object(raw)
        fingerprint = bodies.fingerprint(body)
        try:
            wish, sources = make_wish(
                body,
                self._parts.catalog,
                account_id=account_id,
                key=key,
                fingerprint=fingerprint,
                raw=raw,
                origins=self._origins,
            )
        except RequestError:
            # An earlier answer to this key counts more than what we think of the body today.
            accepted = await self._replay(account_id, key, fingerprint)
            if accepted is None:
                raise
        else:
            accepted = await self._accept(wish, sources)
        return _receipt(accepted)

    async def _accept(self, wish: Wish, sources: Sources) -> Accepted:
        """Accept a wish once its inputs are our own copies; an answer that was given is given again without them."""
        if not sources.images:
            return await self._parts.accept.accept(wish)
        accepted = await self._replay(wish.account_id, wish.key, wish.fingerprint)
        if accepted is not None:
            return accepted
        providers = [route.provider for route in wish.model.routes]
        try:
            taken = await self._parts.inputs.take(wish.account_id, sources, providers=providers)
        except InputsRefused as refused:
            raise FieldsRefused(
                [{"field": field, "message": message} for field, message in refused.faults]
            ) from None
        return await self._parts.accept.accept(replace(wish, images=taken.images, mask=taken.mask))

    async def _replay(self, account_id: UUID, key: str, fingerprint: bytes) -> Accepted | None:
        return await self._parts.accept.find_receipt(account_id, key, fingerprint)

    async def show(self, request: Request) -> Response:
        """One task; with `include=timeline` also when each stage began."""
        account_id = await self._doorkeeper.admit(request.scope)
        include = request.query_params.get("include")
        if include not in (None, "timeline"):
            raise FieldsRefused([{"field": "include", "message": "may be: timeline"}])
        task_id = read_id(request)
        document = await self._read(request, account_id, task_id)
        if include:
            async with self._parts.database.connection() as connection:
                events = await views.timeline(connection, account_id, task_id)
            document["timeline"] = timeline_json(events)
        return json_answer(document)

    async def list(self, request: Request) -> Response:
        """Your tasks, newest first; with `updated_since` those alone that were made or have ended since then."""
        account_id = await self._doorkeeper.admit(request.scope)
        query = request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.task_position)
        status = query.get("status")
        states = states_of(status) if status is not None else None
        if states == []:
            raise FieldsRefused([{"field": "status", "message": "must be one of: processing, ready, failed"}])
        text = query.get("updated_since")
        since = read_moment("updated_since", text) if text is not None else None
        async with self._parts.database.connection() as connection:
            found = await views.task_list(
                connection, account_id, before=before, limit=limit, states=states, since=since
            )
        links = self._links(request)
        last = found[-1].id.bytes if found else None
        return json_answer(pages.page([task_json(task, links) for task in found], limit, last))

    async def cancel(self, request: Request) -> Response:
        """Stop a task: at once (200) while it waits, else the upstream is asked (202)."""
        account_id = await self._doorkeeper.admit(request.scope)
        task_id = read_id(request)
        state = await self._parts.cancel.cancel(account_id, task_id)
        document = await self._read(request, account_id, task_id)
        return json_answer(document, 200 if state == "canceled" else 202)

    async def erase(self, request: Request) -> Response:
        """Erase what a finished task said and drew: prompt, inputs, metadata, pictures. What it cost stays."""
        account_id = await self._doorkeeper.admit(request.scope)
        task_id = read_id(request)
        await self._parts.erase.erase(account_id, task_id)
        return json_answer(await self._read(request, account_id, task_id))

    async def _read(self, request: Request, account_id: UUID, task_id: UUID) -> dict[str, Any]:
        async with self._parts.database.connection() as connection:
            task = await views.task_view(connection, account_id, task_id)
        if task is None:
            raise not_found()
        return task_json(task, self._links(request))

    def _links(self, request: Request) -> Links:
        settings = self._parts.settings
        return Links(base_of(request, settings), self._parts.signer, settings.asset_url_ttl_s)


def read_id(request: Request) -> UUID:
    """The id in the path.

    Raises:
        RequestError: 404, as for any id that does not exist.
    """
    text = request.path_params["id"]
    if not UUID_TEXT.fullmatch(text):
        raise not_found()
    return UUID(text)


def _receipt(accepted: Accepted) -> Response:
    headers = {
        "Location": f"/v1/tasks/{accepted.task_id}",
        "Retry-After": "1",
        "Idempotency-Key-Expires": _expiry(accepted.body),
    }
    if accepted.is_replayed:
        headers["Idempotent-Replayed"] = "true"
    return Response(accepted.body, 202, headers, "application/json")


def _expiry(body: bytes) -> str:
    """When the key of this receipt becomes new again: its own time of day, whole days later."""
    created_at = _CREATED_AT.search(body)
    text = created_at[1].decode() if created_at else ""
    return _last_day(text[:10]) + text[10:]


@functools.lru_cache(maxsize=64)
def _last_day(first_day: str) -> str:
    return (date.fromisoformat(first_day) + timedelta(seconds=KEEP_KEY_S)).isoformat()


_CREATED_AT = re.compile(rb'"created_at":"([^"]{20,40})"')
_KEY_HEADER = {
    **parameter(
        "Idempotency-Key",
        "header",
        {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    ),
    "required": True,
}
_STATUS = parameter("status", "query", {"type": "string", "enum": ["processing", "ready", "failed"]})
_INCLUDE = parameter("include", "query", {"type": "string", "enum": ["timeline"]})
_SINCE = parameter(
    "updated_since",
    "query",
    {"type": "string", "format": "date-time"},
    "Tasks that were made or ended since.",
)
_SUBMIT = described(
    "Submit a task",
    {202: Receipt},
    refusals=(400, 402, 404, 408, 409, 413, 415, 422),
    parameters=(_KEY_HEADER,),
    body=json_body(TaskBody),
)
_SHOW = described("Read a task", {200: Task}, refusals=(404, 422), parameters=(TASK_ID, _INCLUDE))
_LIST = described("List tasks", {200: TaskList}, refusals=(422,), parameters=(CURSOR, LIMIT, _STATUS, _SINCE))
_CANCEL = described("Cancel a task", {200: Task, 202: Task}, refusals=(404, 409), parameters=(TASK_ID,))
_ERASE = described("Erase what a task said and drew", {200: Task}, refusals=(404, 409), parameters=(TASK_ID,))
