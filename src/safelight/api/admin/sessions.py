"""Signing in to the Console: an operator's key opens a session of its own kind."""

from __future__ import annotations

from starlette.requests import Request

from safelight.api.admin.keeper import Keeper
from safelight.api.cookies import CONSOLE
from safelight.api.described import ADMIN_SCHEME
from safelight.api.headers import Headers
from safelight.api.parts import ApiParts
from safelight.api.sessions import SessionRoutes
from safelight.db.sessions import Holder
from safelight.errors import RequestError


def console_sessions(parts: ApiParts, keeper: Keeper) -> SessionRoutes:
    """The operators' door."""

    async def admit(request: Request, headers: Headers) -> Holder:
        # By a key alone: a session does not renew itself.
        if b"authorization" not in headers:
            raise RequestError(401, "unauthorized", "A valid admin key is needed.")
        return Holder(await keeper.admit_key(request.scope, headers), is_operator=True)

    return SessionRoutes(
        "/admin/session",
        ADMIN_SCHEME,
        CONSOLE,
        parts.sessions,
        admit=admit,
        refuse=keeper.refuse,
        public_url=parts.settings.public_url,
        is_operator=True,
    )
