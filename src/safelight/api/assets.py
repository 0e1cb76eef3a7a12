"""Pictures and their thumbnails: by API key, or by a signed link that expires."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from safelight.api.auth import Doorkeeper, too_often
from safelight.api.described import TASK_ID, described, parameter
from safelight.api.limits import Limit
from safelight.api.parts import ApiParts
from safelight.api.problems import not_found
from safelight.api.ranges import Span, read_span
from safelight.api.tasks import read_id
from safelight.api.thumbnails import Thumbnails
from safelight.assets.signing import SignedLink, Variant
from safelight.db import views
from safelight.errors import AssetError, RequestError

SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/avif": "avif"}
"""Types that were checked and are shown in place; anything else is only ever saved."""
SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class _Content:
    """What is sent: `open` streams `length` bytes from an offset."""

    content_type: str
    size_bytes: int
    tag: str
    name: str
    open: Callable[[Span], AsyncIterator[bytes]]


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
        store, key = self._parts.store, asset.store_key

        def stream(span: Span) -> AsyncIterator[bytes]:
            return store.open(key, offset=span.start, length=span.length)

        suffix = SUFFIXES.get(asset.content_type, "bin")
        tag = f'"{asset.sha256.hex()}"'
        content = _Content(asset.content_type, asset.size_bytes, tag, f"{asset.id}.{suffix}", stream)
        return await self._answer(request, content, cache)

    async def thumbnail(self, request: Request) -> Response:
        """A small WebP of the picture, made when it is first asked for."""
        asset, cache = await self._find(request, "thumbnail")
        try:
            data = await self._thumbnails.of(asset)
        except AssetError as error:
            raise _trouble(error) from error

        async def stream(span: Span) -> AsyncIterator[bytes]:
            yield data[span.start : span.start + span.length]

        tag = f'"{asset.sha256.hex()}-small"'
        content = _Content("image/webp", len(data), tag, f"{asset.id}-small.webp", stream)
        return await self._answer(request, content, cache)

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

    async def _answer(self, request: Request, content: _Content, cache: str) -> Response:
        headers = _headers(content, cache)
        if request.headers.get("if-none-match") == content.tag:
            return Response(status_code=304, headers=headers)
        asked = request.headers.get("range")
        if request.headers.get("if-range") not in (None, content.tag):
            asked = None
        span = read_span(asked, content.size_bytes)
        if span is None:
            return Response(
                status_code=416, headers={**headers, "Content-Range": f"bytes */{content.size_bytes}"}
            )
        is_part = span.length < content.size_bytes
        if is_part:
            headers["Content-Range"] = (
                f"bytes {span.start}-{span.start + span.length - 1}/{content.size_bytes}"
            )
        headers["Content-Length"] = str(span.length)
        status = 206 if is_part else 200
        if request.method == "HEAD":
            return Response(status_code=status, headers=headers)
        try:
            body = await _started(content.open(span))
        except AssetError as error:
            raise _trouble(error) from error
        return StreamingResponse(body, status, headers)


async def _started(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, the first of them read: what fails must fail before the headers go out."""
    first = await anext(pieces, b"")

    async def all_pieces() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return all_pieces()


def _headers(content: _Content, cache: str) -> dict[str, str]:
    is_shown = content.content_type in SUFFIXES
    return {
        "Content-Type": content.content_type if is_shown else "application/octet-stream",
        "Content-Disposition": f'{"inline" if is_shown else "attachment"}; filename="{content.name}"',
        "Content-Security-Policy": SANDBOX,
        "Referrer-Policy": "no-referrer",
        "Cache-Control": cache,
        "Vary": "Authorization",
        "ETag": content.tag,
        "Accept-Ranges": "bytes",
    }


def _trouble(error: AssetError) -> RequestError:
    if error.reason == "missing":
        return not_found()
    return RequestError(503, "unavailable", "The picture cannot be read right now.", retry_after_s=5)


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
