"""A task's pictures for the operator: read within a viewing, which the audit log knows before a byte is sent."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api.admin.exchange import KEY_HEADER, admin_described, changed, read_change
from safelight.api.admin.keeper import Keeper
from safelight.api.admin.shapes import Viewing, ViewingBody
from safelight.api.contents import answer_with, original_of, thumbnail_of, trouble
from safelight.api.described import TASK_ID, json_body, parameter
from safelight.api.headers import headers_of
from safelight.api.parts import ApiParts
from safelight.api.problems import not_found
from safelight.api.tasks import UUID_TEXT, read_id
from safelight.api.thumbnails import Thumbnails
from safelight.db.adminviews import TaskPicture
from safelight.errors import AssetError
from safelight.lifecycle.viewings import Viewings

CACHE = "private, no-store"
"""Nothing of a customer's stays behind in an operator's browser."""
_LINE = re.compile(r"[0-9]{1,18}")


class AdminPictures:
    """The routes `/admin/tasks/{id}/viewings` and `/admin/tasks/{id}/pictures`."""

    def __init__(self, parts: ApiParts, keeper: Keeper) -> None:
        self._store = parts.store
        self._keeper = keeper
        self._viewings = Viewings(parts.database)
        self._thumbnails = Thumbnails(parts.store, parts.pictures)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes; of reading only one method is described, as HEAD differs in nothing else."""
        app.router.add_api_route("/admin/tasks/{id}/viewings", self.view, methods=["POST"], **_VIEW)
        place = "/admin/tasks/{id}/pictures/{picture_id}"
        for path, handler, described in (
            (place, self.original, _ORIGINAL),
            (f"{place}/thumbnail", self.thumbnail, _THUMBNAIL),
        ):
            app.router.add_api_route(path, handler, methods=["GET"], **described)
            app.router.add_api_route(path, handler, methods=["HEAD"], include_in_schema=False)

    async def view(self, request: Request) -> Response:
        """Begin a viewing: the audit log names you and the pictures, which you may read for a quarter of an hour."""
        headers = headers_of(request.scope)
        by = await self._keeper.admit(request.scope, headers)
        task_id = read_id(request)
        _, once = await read_change(request, headers, ViewingBody)
        return changed(await self._viewings.open(task_id, by, once), 201)

    async def original(self, request: Request) -> Response:
        """A picture of a viewing, byte for byte as it came."""
        picture = await self._find(request)
        return await answer_with(request, original_of(picture.stored, self._store, CACHE))

    async def thumbnail(self, request: Request) -> Response:
        """A small WebP of a picture of a viewing."""
        picture = await self._find(request)
        try:
            data = await self._shrunk(picture)
        except AssetError as error:
            raise trouble(error) from error
        return await answer_with(request, thumbnail_of(picture.stored, data, CACHE))

    async def _find(self, request: Request) -> TaskPicture:
        by = await self._keeper.admit(request.scope, headers_of(request.scope))
        task_id, picture_text = read_id(request), request.path_params["picture_id"]
        if not UUID_TEXT.fullmatch(picture_text):
            raise not_found()
        viewing = request.query_params.get("viewing", "")
        viewing_id = int(viewing) if _LINE.fullmatch(viewing) else None
        return await self._viewings.picture(task_id, UUID(picture_text), by, viewing_id=viewing_id)

    async def _shrunk(self, picture: TaskPicture) -> bytes:
        # An upload is deleted without looking for a thumbnail of it, so none is kept.
        if picture.is_input:
            return await self._thumbnails.made(picture.stored.store_key)
        return await self._thumbnails.of(picture.stored)


def _read(summary: str) -> dict[str, Any]:
    return admin_described(
        summary,
        {200: "image/*", 206: "image/*", 304: None, 416: None},
        refusals=(403, 404),
        parameters=(
            TASK_ID,
            parameter("picture_id", "path", {"type": "string", "format": "uuid"}),
            {
                **parameter("viewing", "query", {"type": "string"}, "The id of your viewing."),
                "required": True,
            },
            parameter("Range", "header", {"type": "string"}, "One range of bytes."),
        ),
    )


_VIEW = admin_described(
    "Begin to view a task's pictures",
    {201: Viewing},
    refusals=(400, 404, 408, 409, 413, 415, 422),
    parameters=(TASK_ID, KEY_HEADER),
    body=json_body(ViewingBody),
)
_ORIGINAL = _read("Read a picture of a task")
_THUMBNAIL = _read("Read a thumbnail of a task's picture")
