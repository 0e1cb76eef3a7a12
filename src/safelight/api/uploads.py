"""Uploads: pictures that customers hand in once and name in as many tasks as they like."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api import bodies, multipart
from safelight.api.auth import Doorkeeper
from safelight.api.described import TASK_ID, described
from safelight.api.headers import Headers, headers_of
from safelight.api.parts import ApiParts
from safelight.api.problems import not_found
from safelight.api.shapes import Upload
from safelight.api.shown import json_answer, time_text
from safelight.api.tasks import read_id
from safelight.db import views
from safelight.db.uploads import UploadRow
from safelight.errors import AssetError, RequestError
from safelight.lifecycle.inputs import refusal_of

READ_S = 120.0
"""How long a picture may take to arrive: 25 MiB at 2 Mbit/s."""
WAIT_S = 15.0
"""How long a caller waits for a place."""
FORM_ROOM = 16_384
"""What a form may have around its file."""


class Uploads:
    """The routes below `/v1/uploads`."""

    def __init__(self, parts: ApiParts, doorkeeper: Doorkeeper) -> None:
        self._parts = parts
        self._doorkeeper = doorkeeper

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.router.add_api_route("/v1/uploads", self.create, methods=["POST"], **_CREATE)
        app.router.add_api_route("/v1/uploads/{id}", self.show, methods=["GET"], **_SHOW)

    async def create(self, request: Request) -> Response:
        """Hand in a picture. The same picture again has the same id, and is kept for longer."""
        headers = headers_of(request.scope)
        account_id = await self._doorkeeper.admit(request.scope, headers)
        _check_type(headers)
        try:
            async with self._parts.uploads.places.take(account_id, within_s=WAIT_S):
                data = await self._read(request, headers)
                upload = await self._parts.uploads.keep(account_id, data)
        except AssetError as error:
            raise _refusal(error) from error
        return json_answer(_upload_json(upload), 201)

    async def show(self, request: Request) -> Response:
        """What an upload is, and until when it is kept."""
        account_id = await self._doorkeeper.admit(request.scope)
        async with self._parts.database.connection() as connection:
            upload = await views.upload(connection, account_id, read_id(request))
        if upload is None:
            raise not_found()
        return json_answer(_upload_json(upload))

    async def _read(self, request: Request, headers: Headers) -> bytes:
        declared = headers.get(b"content-type", b"")
        limit = self._parts.settings.max_upload_bytes
        if not multipart.is_form(declared):
            return await bodies.read_body(request, headers, limit, within_s=READ_S)
        raw = await bodies.read_body(request, headers, limit + FORM_ROOM, within_s=READ_S)
        form = multipart.read_form(declared, raw)
        if len(form) != 1 or form[0].file_name is None:
            raise RequestError(400, "invalid-form", "Send one file, and nothing else, in the form.")
        return form[0].data


def _check_type(headers: Headers) -> None:
    declared = headers.get(b"content-type", b"").lower()
    if not declared.startswith(b"image/") and not multipart.is_form(declared):
        detail = "Send the picture itself as image/*, or one file as multipart/form-data."
        raise RequestError(415, "unsupported-media-type", detail)
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise RequestError(415, "unsupported-media-type", "Send the body without Content-Encoding.")


def _refusal(error: AssetError) -> RequestError:
    fault = refusal_of(error)
    if fault is None:
        return RequestError(503, "unavailable", "The picture cannot be stored right now.", retry_after_s=5)
    return RequestError(422, "picture-refused", f"This {fault}.")


def _upload_json(upload: UploadRow) -> dict[str, Any]:
    return {
        "id": str(upload.id),
        "content_type": upload.content_type,
        "width": upload.width,
        "height": upload.height,
        "bytes": upload.size_bytes,
        "sha256": upload.sha256.hex(),
        "created_at": time_text(upload.created_at),
        "expires_at": time_text(upload.expires_at),
    }


_BYTES = {"schema": {"type": "string", "format": "binary"}}
_FORM = {
    "type": "object",
    "properties": {"file": {"type": "string", "format": "binary"}},
    "required": ["file"],
}
_CREATE = described(
    "Upload a picture",
    {201: Upload},
    refusals=(400, 408, 413, 415, 422),
    body={"image/*": _BYTES, "multipart/form-data": {"schema": _FORM}},
)
_SHOW = described("Read an upload", {200: Upload}, refusals=(404,), parameters=(TASK_ID,))
