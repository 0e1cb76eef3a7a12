"""Stored bytes as an answer: whole or in part, and only ever as the picture they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from safelight.api.problems import not_found
from safelight.api.ranges import Span, read_span
from safelight.assets.store import AssetStore
from safelight.db.views import AssetView
from safelight.errors import AssetError, RequestError

SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/avif": "avif"}
"""Types that were checked and are shown in place; anything else is only ever saved."""
SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class Content:
    """What is sent: `open` streams `length` bytes from an offset; `cache` says how long a reader may keep it."""

    content_type: str
    size_bytes: int
    tag: str
    name: str
    open: Callable[[Span], AsyncIterator[bytes]]
    cache: str


def in_memory(data: bytes) -> Callable[[Span], AsyncIterator[bytes]]:
    """The `open` of bytes that are here already."""

    async def stream(span: Span) -> AsyncIterator[bytes]:
        yield data[span.start : span.start + span.length]

    return stream


def from_store(store: AssetStore, key: str) -> Callable[[Span], AsyncIterator[bytes]]:
    """The `open` of what lies in the store."""

    def stream(span: Span) -> AsyncIterator[bytes]:
        return store.open(key, offset=span.start, length=span.length)

    return stream


def original_of(asset: AssetView, store: AssetStore, cache: str) -> Content:
    """A stored picture, byte for byte as it came."""
    name = f"{asset.id}.{SUFFIXES.get(asset.content_type, 'bin')}"
    opened = from_store(store, asset.store_key)
    return Content(asset.content_type, asset.size_bytes, f'"{asset.sha256.hex()}"', name, opened, cache)


def thumbnail_of(asset: AssetView, data: bytes, cache: str) -> Content:
    """The thumbnail of a stored picture."""
    tag, name = f'"{asset.sha256.hex()}-small"', f"{asset.id}-small.webp"
    return Content("image/webp", len(data), tag, name, in_memory(data), cache)


async def answer_with(request: Request, content: Content) -> Response:
    """The answer to GET or HEAD, with ranges and tags.

    Raises:
        RequestError: 404 if the bytes are gone, 503 if they cannot be read now.
    """
    headers = _headers(content)
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
        headers["Content-Range"] = f"bytes {span.start}-{span.start + span.length - 1}/{content.size_bytes}"
    headers["Content-Length"] = str(span.length)
    status = 206 if is_part else 200
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    try:
        body = await _started(content.open(span))
    except AssetError as error:
        raise trouble(error) from error
    return StreamingResponse(body, status, headers)


def trouble(error: AssetError) -> RequestError:
    """Stored bytes that cannot be read: gone, or not for the moment."""
    if error.reason == "missing":
        return not_found()
    return RequestError(503, "unavailable", "The picture cannot be read right now.", retry_after_s=5)


async def _started(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, the first of them read: what fails must fail before the headers go out."""
    first = await anext(pieces, b"")

    async def all_pieces() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return all_pieces()


def _headers(content: Content) -> dict[str, str]:
    is_shown = content.content_type in SUFFIXES
    return {
        "Content-Type": content.content_type if is_shown else "application/octet-stream",
        "Content-Disposition": f'{"inline" if is_shown else "attachment"}; filename="{content.name}"',
        "Content-Security-Policy": SANDBOX,
        "Referrer-Policy": "no-referrer",
        "Cache-Control": content.cache,
        "Vary": "Authorization",
        "ETag": content.tag,
        "Accept-Ranges": "bytes",
    }
