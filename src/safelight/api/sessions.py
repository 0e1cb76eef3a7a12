"""Signing in and out of a browser's page, at either door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from safelight.api import bodies
from safelight.api.auth import Doorkeeper
from safelight.api.cookies import STUDIO, Cookie, check_csrf
from safelight.api.described import KEY_SCHEME, described, json_body
from safelight.api.headers import Headers, headers_of
from safelight.api.parts import ApiParts
from safelight.api.problems import FieldsRefused
from safelight.api.shapes import Session as SessionShape
from safelight.api.shapes import SessionBody
from safelight.api.shown import json_answer, time_text
from safelight.db.sessions import Holder
from safelight.errors import RequestError
from safelight.lifecycle.sessions import Session, Sessions

MAX_BODY_BYTES = 1_024
NOT_SIGNED_IN = "Nobody is signed in here."

Admit = Callable[[Request, Headers], Awaitable[Holder]]
"""Who is calling by the key in the header; raises 401 or 429."""
Refuse = Callable[[Scope], Awaitable[RequestError]]
"""The answer to whoever guesses; counts against the caller's address."""


@dataclass(frozen=True, slots=True)
class SessionRoutes:
    """The routes of one door: `POST` opens a session by a key or a ticket, `GET` reads it, `DELETE` ends it."""

    path: str
    scheme: str
    cookie: Cookie
    sessions: Sessions
    admit: Admit
    refuse: Refuse
    public_url: str | None
    is_operator: bool

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        for method, handler, shown in (
            ("POST", self.open, self._described("Sign in", 201, (400, 403, 408, 413, 415, 422), SessionBody)),
            ("GET", self.show, self._described("Who is signed in?", 200, ())),
            ("DELETE", self.end, self._described("Sign out", 204, (403,))),
        ):
            app.router.add_api_route(self.path, handler, methods=[method], **shown)

    async def open(self, request: Request) -> Response:
        """Exchange a key, or the ticket of a one-time link, for a session that the browser keeps as a cookie."""
        headers = headers_of(request.scope)
        bodies.check_json_headers(headers)
        body = bodies.parse_object(await bodies.read_body(request, headers, MAX_BODY_BYTES))
        ticket = body.pop("ticket", None)
        if body or (ticket is not None and not isinstance(ticket, str)):
            raise FieldsRefused([{"field": "ticket", "message": "is the only field, and a text"}])
        if ticket is None:
            session = await self.sessions.open(await self.admit(request, headers))
        else:
            session = await self._redeem(request, ticket)
        answer = json_answer(_session_json(session), 201)
        self.cookie.set_on(answer, session, is_secure=_is_secure(request))
        return answer

    async def show(self, request: Request) -> Response:
        """Who is signed in, and the token that changes have to come with."""
        token = self.cookie.token(headers_of(request.scope))
        session = await self.sessions.find(token, is_operator=self.is_operator) if token else None
        if session is None:
            raise RequestError(401, "unauthorized", NOT_SIGNED_IN)
        return json_answer(_session_json(session))

    async def end(self, request: Request) -> Response:
        """End the session, here and in every tab."""
        headers = headers_of(request.scope)
        token = self.cookie.token(headers)
        if token:
            check_csrf(self.sessions, request.scope, headers, token, self.public_url)
            await self.sessions.end(token)
        answer = Response(status_code=204)
        self.cookie.drop_on(answer, is_secure=_is_secure(request))
        return answer

    async def _redeem(self, request: Request, ticket: str) -> Session:
        try:
            return await self.sessions.redeem(ticket, is_operator=self.is_operator)
        except RequestError as error:
            refusal = await self.refuse(request.scope)
            raise (refusal if refusal.status == 429 else error) from None

    def _described(
        self, summary: str, status: int, refusals: tuple[int, ...], body: type[SessionBody] | None = None
    ) -> dict[str, Any]:
        return described(
            summary,
            {status: None if status == 204 else SessionShape},
            refusals=refusals,
            body=json_body(body) if body else None,
            scheme=self.scheme,
        )


def studio_sessions(parts: ApiParts, doorkeeper: Doorkeeper) -> SessionRoutes:
    """The customers' door."""

    async def admit(request: Request, headers: Headers) -> Holder:
        # By a key alone: a session does not renew itself.
        if b"authorization" not in headers:
            raise RequestError(401, "unauthorized", "A valid API key is needed.")
        opener = await doorkeeper.admit_opener(request.scope, headers)
        return Holder(opener.key_id, is_operator=False)

    async def refuse(scope: Scope) -> RequestError:
        return doorkeeper.refusal(scope)

    return SessionRoutes(
        "/v1/session",
        KEY_SCHEME,
        STUDIO,
        parts.sessions,
        admit=admit,
        refuse=refuse,
        public_url=parts.settings.public_url,
        is_operator=False,
    )


def _is_secure(request: Request) -> bool:
    """A browser drops a Secure cookie that comes over plain http."""
    return str(request.scope["scheme"]) == "https"


def _session_json(session: Session) -> dict[str, str]:
    return {
        "id": str(session.account_id or session.key_id),
        "name": session.name,
        "csrf_token": session.csrf_token,
        "expires_at": time_text(session.expires_at),
    }
