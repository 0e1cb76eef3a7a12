"""Session cookies: how they are set, read, and kept from being used by other sites."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import Scope

from safelight.api.headers import Headers
from safelight.errors import RequestError
from safelight.lifecycle.sessions import Session, Sessions

SAFE_METHODS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Cookie:
    """The cookie of one door; the browser sends it below `path` alone."""

    name: str
    path: str

    def token(self, headers: Headers) -> str:
        """The session that the caller's browser brings; empty if it brings none."""
        raw = headers.get(b"cookie")
        if raw is None or self.name.encode() not in raw:
            return ""
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(raw.decode("latin-1"))
        except CookieError:
            return ""
        found = cookies.get(self.name)
        return found.value if found else ""

    def set_on(self, answer: Response, session: Session, *, is_secure: bool) -> None:
        """Let the browser keep the session, out of the reach of scripts; it ends with the browser or by itself."""
        answer.set_cookie(
            self.name, session.token, path=self.path, httponly=True, samesite="strict", secure=is_secure
        )

    def drop_on(self, answer: Response, *, is_secure: bool) -> None:
        """Let the browser forget it."""
        answer.delete_cookie(self.name, path=self.path, httponly=True, samesite="strict", secure=is_secure)


STUDIO = Cookie("safelight_session", "/v1")
CONSOLE = Cookie("safelight_console", "/admin")


def check_csrf(
    sessions: Sessions, scope: Scope, headers: Headers, token: str, public_url: str | None
) -> None:
    """Refuse a change that comes with a session but not from a page of ours.

    The cookie is SameSite=Strict already; this also holds against another service on the same host name.

    Raises:
        RequestError: 403.
    """
    if scope["method"] in SAFE_METHODS:
        return
    given = headers.get(b"x-csrf-token", b"")
    wanted = sessions.csrf_token(token).encode() if token.isascii() else b""
    if not hmac.compare_digest(given, wanted) or not _is_own_origin(headers, public_url):
        raise RequestError(
            403, "csrf-refused", "Changes in a session need its X-CSRF-Token, from our own page."
        )


def _is_own_origin(headers: Headers, public_url: str | None) -> bool:
    origin = headers.get(b"origin")
    if origin is None:
        return True
    own = [headers.get(b"host", b"").decode("latin-1")]
    if public_url:
        own.append(urlsplit(public_url).netloc)
    return urlsplit(origin.decode("latin-1")).netloc in own
