"""Pictures and their thumbnails: by API key, or by a signed link that expires."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api.auth import Doorkeeper, too_often
from safelight.api.contents import answer_with, original_of, thumbnail_of, trouble
from safelight.api.described import TASK_ID, described, parameter
from safelight.api.limits import Limit
from safelight.api.parts import ApiParts
from safelight.api.problems import not_found
from safelight.api.tasks import read_id
from safelight.api.thumbnails import Thumbnails
from safelight.assets.signing import SignedLink, Variant
from safelight.db import views
from safelight.errors import AssetError, RequestError


class Assets:
    """The routes below `/v1/assets`."""

    def __init__(self, parts: ApiParts, doorkeeper: Doorkeeper) -> None:
        self._parts = parts
        self._doorkeeper = doorkeeper
        self._thumbnails = Thumbnails(parts.store, parts.pictures)
        # Apart from the API's own limit, so that a link in a busy page cannot use that up.
        rate = parts.settings.max_requests_per_s
        self._links = Limit(rate, burst=rate)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes; only one method of each is described, as they differ in nothing else."""
        for path, handler, shown in (
            ("/v1/assets/{id}", self.original, _ORIGINAL),
            ("/v1/assets/{id}/thumbnail", self.thumbnail, _THUMBNAIL),
        ):
            app.router.add_api_route(path, handler, methods=["GET"], **shown)
            app.router.add_api_route(path, handler, methods=["HEAD"], include_in_schema=False)

    async def original(self, request: Request) -> Response:
        """The picture, byte for byte as it came."""
        asset, cache = await self._find(request, "original")
        return await answer_with(request, original_of(asset, self._parts.store, cache))

    async def thumbnail(self, request: Request) -> Response:
        """A small WebP of the picture, made when it is first asked for."""
        asset, cache = await self._find(request, "thumbnail")
        try:
            data = await self._thumbnails.of(asset)
        except AssetError as error:
            raise trouble(error) from error
        return await answer_with(request, thumbnail_of(asset, data, cache))

    async def _find(self, request: Request, variant: Variant) -> tuple[views.AssetView, str]:
        """The asset, and how long what is sent may be kept by its reader."""
        cache = "private, no-cache"
        if request.headers.get("authorization") is None and "signature" in request.query_params:
            link = self._verify(request, variant)
            account_id = link.account_id
            cache = f"private, max-age={max(0, int(link.expires_at - time.time()))}"
        else:
            account_id = await self._doorkeeper.admit(request.scope)
        async with self._parts.database.connection() as connection:
            asset = await views.asset(connection, account_id, read_id(request))
        if asset is None:
            raise not_found()
        return asset, cache

    def _verify(self, request: Request, variant: Variant) -> SignedLink:
        asset_id: UUID = read_id(request)
        try:
            link = self._parts.signer.verify(request.query_params, asset_id=asset_id, now=time.time())
        except AssetError as error:
            raise RequestError(403, error.reason.replace("_", "-"), f"{error}.".capitalize()) from None
        if link.variant != variant:
            raise RequestError(403, "link-wrong", "The link is not genuine.")
        wait_s = self._links.take(link.account_id)
        if wait_s:
            raise too_often(wait_s)
        return link


def _described(summary: str) -> dict[str, Any]:
    signed = [
        parameter(name, "query", {"type": "string"})
        for name in ("account", "variant", "expires", "key", "signature")
    ]
    ranged = parameter("Range", "header", {"type": "string"}, "One range of bytes.")
    shown = described(
        summary,
        {200: "image/*", 206: "image/*", 304: None, 416: None},
        refusals=(403, 404),
        parameters=(TASK_ID, *signed, ranged),
    )
    shown["openapi_extra"]["security"].append({})
    return shown


_ORIGINAL = _described("Download a picture")
_THUMBNAIL = _described("Download a thumbnail")
