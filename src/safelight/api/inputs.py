"""Input pictures for providers: our own copies, by an address that is signed and expires."""

from __future__ import annotations

import time

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api.auth import too_often
from safelight.api.contents import Content, answer_with, from_store, in_memory, trouble
from safelight.api.described import described, parameter
from safelight.api.limits import Limit
from safelight.api.parts import ApiParts
from safelight.api.problems import not_found
from safelight.assets.inputlinks import InputLink
from safelight.db import views
from safelight.db.uploads import UploadRow
from safelight.errors import AssetError, RequestError

WAIT_S = 15.0
"""How long a provider waits for a mask to be made, if many are asked for at once."""


class Inputs:
    """The route `/inputs/{token}`; whoever has the address may read what it opens."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        rate = parts.settings.max_requests_per_s
        self._limit = Limit(rate, burst=rate)

    def add_to(self, app: FastAPI) -> None:
        """Add the route; HEAD differs in nothing that is described."""
        app.router.add_api_route("/inputs/{token}", self.read, methods=["GET"], **_READ)
        app.router.add_api_route("/inputs/{token}", self.read, methods=["HEAD"], include_in_schema=False)

    async def read(self, request: Request) -> Response:
        """The picture, or the mask in the form that its provider reads."""
        link = self._verify(request.path_params["token"])
        async with self._parts.database.connection() as connection:
            upload = await views.upload(connection, link.account_id, link.upload_id)
        if upload is None:
            raise not_found()
        return await answer_with(request, await self._content(upload, link))

    def _verify(self, token: str) -> InputLink:
        try:
            link = self._parts.links.read(token, now=time.time())
        except AssetError as error:
            raise RequestError(403, error.reason.replace("_", "-"), f"{error}.".capitalize()) from None
        wait_s = self._limit.take(link.account_id)
        if wait_s:
            raise too_often(wait_s)
        return link

    async def _content(self, upload: UploadRow, link: InputLink) -> Content:
        store, pictures = self._parts.store, self._parts.pictures
        cache = f"private, max-age={max(0, int(link.expires_at - time.time()))}"
        tag = upload.sha256.hex()
        if link.mask_style is None:
            suffix = upload.content_type.removeprefix("image/")
            return Content(
                content_type=upload.content_type,
                size_bytes=upload.size_bytes,
                tag=f'"{tag}"',
                name=f"{upload.id}.{suffix}",
                open=from_store(store, upload.store_key),
                cache=cache,
            )
        try:
            async with self._parts.uploads.places.take(link.account_id, within_s=WAIT_S):
                mask = await pictures.mask(await store.get(upload.store_key), link.mask_style)
        except AssetError as error:
            raise trouble(error) from error
        return Content(
            content_type="image/png",
            size_bytes=len(mask),
            tag=f'"{tag}-{link.mask_style}"',
            name=f"{upload.id}-mask.png",
            open=in_memory(mask),
            cache=cache,
        )


_READ = described(
    "Read an input picture",
    {200: "image/*", 206: "image/*", 304: None, 416: None},
    refusals=(403, 404, 429),
    parameters=(
        parameter("token", "path", {"type": "string"}),
        parameter("Range", "header", {"type": "string"}, "One range of bytes."),
    ),
    needs_key=False,
)
