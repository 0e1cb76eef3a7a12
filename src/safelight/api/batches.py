"""Batches: handed in as JSON lines, watched, canceled, and taken home as a manifest or as one zip file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from safelight.api import bodies, pages
from safelight.api.auth import Doorkeeper
from safelight.api.batchbodies import Lines, Wanted, check_type, read_lines, read_query, wish_of
from safelight.api.described import CURSOR, LIMIT, TASK_ID, described, parameter
from safelight.api.headers import headers_of
from safelight.api.manifests import Manifest
from safelight.api.parts import ApiParts
from safelight.api.problems import FieldsRefused, not_found
from safelight.api.shapes import Batch, BatchList, BatchReceipt
from safelight.api.shown import Links, base_of, json_answer, time_text
from safelight.api.tasks import read_id
from safelight.db import views
from safelight.db.batches import BatchView, Refusal
from safelight.errors import RequestError
from safelight.lifecycle.accept import Wish
from safelight.lifecycle.batches import CHUNK, Begun, Order, parked
from safelight.lifecycle.inputs import InputsRefused, Sources
from safelight.lifecycle.uploads import Places

BODIES, BODIES_OF_ACCOUNT = 4, 1
"""How many batches a process takes in at once: each is held in memory meanwhile."""
WAIT_S = 30.0


class Batches:
    """The routes below `/v1/batches`."""

    def __init__(self, parts: ApiParts, doorkeeper: Doorkeeper) -> None:
        self._parts = parts
        self._doorkeeper = doorkeeper
        self._bodies = Places(BODIES, BODIES_OF_ACCOUNT)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        router = app.router
        router.add_api_route("/v1/batches", self.submit, methods=["POST"], **_SUBMIT)
        router.add_api_route("/v1/batches", self.list, methods=["GET"], **_LIST)
        router.add_api_route("/v1/batches/{id}", self.show, methods=["GET"], **_SHOW)
        router.add_api_route("/v1/batches/{id}/results", self.results, methods=["GET"], **_RESULTS)
        router.add_api_route("/v1/batches/{id}/cancel", self.cancel, methods=["POST"], **_CANCEL)

    async def submit(self, request: Request) -> Response:
        """Accept a batch. The same `Idempotency-Key` with the same body goes on with it, or gets the same answer."""
        headers = headers_of(request.scope)
        account_id = await self._doorkeeper.admit(request.scope, headers)
        check_type(headers)
        key = bodies.read_idempotency_key(headers)
        wanted = read_query(request.query_params)
        settings = self._parts.settings
        async with self._bodies.take(account_id, within_s=WAIT_S):
            lines = await read_lines(
                request,
                wanted,
                self._parts.catalog,
                line_bytes=settings.max_body_bytes,
                all_bytes=settings.max_batch_bytes,
            )
            return await self._fill(account_id, key, wanted, lines)

    async def _fill(self, account_id: UUID, key: str, wanted: Wanted, lines: Lines) -> Response:
        if wanted.is_all and lines.faults:
            raise FieldsRefused(lines.faults[:50])
        batches = self._parts.batches
        order = Order(
            account_id,
            key,
            lines.digest,
            items=len(lines.raw),
            price=lines.price,
            at_once=wanted.at_once,
            name=wanted.name,
            is_all=wanted.is_all,
        )
        begun = await batches.begin(order)
        if not begun.is_complete:
            await self._add_all(account_id, begun, wanted, lines)
            await batches.open(account_id, begun.id)
        return _receipt(await self._read(account_id, begun.id), is_replayed=begun.is_complete)

    async def _add_all(self, account_id: UUID, begun: Begun, wanted: Wanted, lines: Lines) -> None:
        faulty = {refusal.position: refusal for refusal in lines.refusals}
        for first in range(0, len(lines.raw), CHUNK):
            places = range(first, min(first + CHUNK, len(lines.raw)))
            refusals = [faulty[place] for place in places if place in faulty]
            wishes = []
            for place in places:
                if place in faulty or place in begun.refused:
                    continue
                try:
                    wishes.append(await self._wish(lines.raw[place], account_id, begun.id, place))
                except RequestError as error:
                    refusals.append(Refusal(place, error.problem_code, error.detail))
            refused = await self._parts.batches.add(begun.id, wishes, refusals)
            if refused and wanted.is_all:
                # Others spent what was there when it began. Nothing of it is at work yet: all of it goes back.
                await self._parts.batches.cancel(account_id, begun.id, is_key_free=True)
                first_one = refused[0]
                status = 402 if first_one.code == "insufficient-credits" else 409
                raise RequestError(status, first_one.code, f"items[{first_one.position}]: {first_one.detail}")

    async def _wish(self, raw: bytes, account_id: UUID, batch_id: UUID, place: int) -> Wish:
        wish, sources = wish_of(raw, self._parts.catalog, account_id)
        return parked(await self._with_inputs(wish, sources), batch_id, place)

    async def _with_inputs(self, wish: Wish, sources: Sources) -> Wish:
        if not sources.images:
            return wish
        providers = [route.provider for route in wish.model.routes]
        try:
            taken = await self._parts.inputs.take(wish.account_id, sources, providers=providers)
        except InputsRefused as refused:
            raise FieldsRefused(
                [{"field": field, "message": message} for field, message in refused.faults]
            ) from None
        return replace(wish, images=taken.images, mask=taken.mask)

    async def show(self, request: Request) -> Response:
        """One batch, and how far it is."""
        account_id = await self._doorkeeper.admit(request.scope)
        return json_answer(batch_json(await self._read(account_id, read_id(request))))

    async def list(self, request: Request) -> Response:
        """Your batches, newest first."""
        account_id = await self._doorkeeper.admit(request.scope)
        query = request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.task_position)
        async with self._parts.database.connection() as connection:
            found = await views.batch_list(connection, account_id, before=before, limit=limit)
        last = found[-1].id.bytes if found else None
        return json_answer(pages.page([batch_json(batch) for batch in found], limit, last))

    async def cancel(self, request: Request) -> Response:
        """Take back what has not begun, and ask for the rest; what is ready stays, and is paid for."""
        account_id = await self._doorkeeper.admit(request.scope)
        batch_id = read_id(request)
        await self._parts.batches.cancel(account_id, batch_id)
        return json_answer(batch_json(await self._read(account_id, batch_id)))

    async def results(self, request: Request) -> Response:
        """Every item in order: as JSON lines, or with `format=zip` with the pictures of those that are ready."""
        account_id = await self._doorkeeper.admit(request.scope)
        batch = await self._read(account_id, read_id(request))
        wanted = request.query_params.get("format", "jsonl")
        if wanted not in ("jsonl", "zip"):
            raise FieldsRefused([{"field": "format", "message": "must be one of: jsonl, zip"}])
        settings = self._parts.settings
        links = Links(base_of(request, settings), self._parts.signer, settings.asset_url_ttl_s)
        manifest = Manifest(self._parts.database, self._parts.store, account_id, batch.id, links)
        if wanted == "jsonl":
            return StreamingResponse(manifest.lines(), media_type="application/x-ndjson")
        name = {"Content-Disposition": f'attachment; filename="batch-{batch.id}.zip"'}
        return StreamingResponse(manifest.zipped(), headers=name, media_type="application/zip")

    async def _read(self, account_id: UUID, batch_id: UUID) -> BatchView:
        async with self._parts.database.connection() as connection:
            found = await views.batch(connection, account_id, batch_id)
        if found is None:
            raise not_found()
        return found


def batch_json(batch: BatchView) -> dict[str, Any]:
    """The one public shape of a batch."""
    ended = batch.refused + batch.ready + batch.failed
    return {
        "id": str(batch.id),
        "name": batch.name,
        "status": "finished" if batch.state == "finished" else "processing",
        "at_once": batch.at_once,
        "items": batch.items,
        "counts": {
            "refused": batch.refused,
            "waiting": batch.items - ended - batch.at_work,
            "at_work": batch.at_work,
            "ready": batch.ready,
            "failed": batch.failed,
        },
        "credits": {"held": batch.held, "captured": batch.captured, "released": batch.released},
        "created_at": time_text(batch.created_at),
        "canceled_at": time_text(batch.canceled_at) if batch.canceled_at else None,
        "finished_at": time_text(batch.finished_at) if batch.finished_at else None,
    }


def _receipt(batch: BatchView, *, is_replayed: bool) -> Response:
    """What does not change any more once all is accepted, so that the same key gets the same bytes."""
    document = {
        "id": str(batch.id),
        "status": "processing",
        "items": batch.items,
        "refused": batch.refused,
        "credits": {"held": batch.price, "captured": 0, "released": 0},
        "created_at": time_text(batch.created_at),
    }
    headers = {"Location": f"/v1/batches/{batch.id}", "Retry-After": "1"}
    if is_replayed:
        headers["Idempotent-Replayed"] = "true"
    return json_answer(document, 202, headers=headers)


_KEY_HEADER = {**parameter("Idempotency-Key", "header", {"type": "string"}), "required": True}
_AT_ONCE = parameter("at_once", "query", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 5})
_ACCEPT = parameter(
    "accept",
    "query",
    {"type": "string", "enum": ["all", "partly"], "default": "all"},
    "`all`: one item that cannot be accepted refuses the whole.",
)
_NAME = parameter("name", "query", {"type": "string", "maxLength": 200})
_FORMAT = parameter("format", "query", {"type": "string", "enum": ["jsonl", "zip"], "default": "jsonl"})
_SUBMIT = described(
    "Submit a batch",
    {202: BatchReceipt},
    refusals=(400, 402, 408, 409, 413, 415, 422),
    parameters=(_KEY_HEADER, _AT_ONCE, _ACCEPT, _NAME),
    body={"application/x-ndjson": {"schema": {"type": "string"}}},
)
_LIST = described("List batches", {200: BatchList}, refusals=(422,), parameters=(CURSOR, LIMIT))
_SHOW = described("Read a batch", {200: Batch}, refusals=(404,), parameters=(TASK_ID,))
_RESULTS = described(
    "Take a batch home",
    {200: "application/x-ndjson"},
    refusals=(404, 422),
    parameters=(TASK_ID, _FORMAT),
)
_CANCEL = described("Cancel a batch", {200: Batch}, refusals=(404,), parameters=(TASK_ID,))
