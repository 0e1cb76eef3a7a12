"""The pages for people: built files, served as they are, under a policy that lets them reach no other host."""

from __future__ import annotations

import gzip
import mimetypes
import secrets
from functools import cached_property
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api.problems import not_found

FILES = Path(__file__).with_name("web_files")
PAGES = {"/": "index.html", "/console": "console.html"}
NONCE = b"__NONCE__"
FOREVER = "public, max-age=31536000, immutable"
"""For files whose names change with their contents."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' blob: data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
NOT_BUILT = b"The web pages are not part of this installation. In a checkout, `make web` builds them.\n"


class _File:
    """A file of the pages, read at the start: a new build beside a running process does not mix with what it serves."""

    def __init__(self, path: Path) -> None:
        self.plain = path.read_bytes()
        self.media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.plain, mtime=0)


class Web:
    """The two pages and what they load; an installation without built pages says so."""

    def __init__(self, folder: Path = FILES) -> None:
        # Looked up by name, never by path: what is not listed here cannot be asked for.
        found = sorted(folder.rglob("*")) if folder.is_dir() else []
        self._files = {
            path.relative_to(folder).as_posix(): _File(path)
            for path in found
            if path.is_file() and not path.name.startswith(".")
        }

    def add_to(self, app: FastAPI) -> None:
        """Add the routes; they are no part of the API's description."""
        for path in PAGES:
            app.router.add_api_route(path, self.page, methods=["GET", "HEAD"], include_in_schema=False)
        for path in ("/web/{name}", "/icon.svg"):
            app.router.add_api_route(path, self.file, methods=["GET", "HEAD"], include_in_schema=False)

    async def page(self, request: Request) -> Response:
        """A page, with a nonce of its own for the styles that it makes while it runs."""
        file = self._files.get(PAGES[request.url.path])
        if file is None:
            return Response(NOT_BUILT, 404, media_type="text/plain")
        nonce = secrets.token_urlsafe(16)
        policy = {"Content-Security-Policy": POLICY.format(nonce=nonce)}
        body = file.plain.replace(NONCE, nonce.encode())
        return Response(body, 200, PAGE_HEADERS | policy, media_type="text/html")

    async def file(self, request: Request) -> Response:
        """A script, a style sheet, a font or the icon."""
        name = request.url.path.removeprefix("/")
        file = self._files.get(name)
        if file is None:
            raise not_found()
        headers = {
            "Cache-Control": FOREVER if name.startswith("web/") else "no-cache",
            "Vary": "Accept-Encoding",
        }
        body = file.plain
        if "gzip" in request.headers.get("accept-encoding", "") and file.media_type != "font/woff2":
            headers["Content-Encoding"] = "gzip"
            body = file.packed
        return Response(body, 200, headers, media_type=file.media_type)
