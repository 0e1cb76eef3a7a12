"""Who may operate: keys of their own kind, and a record of whoever knocks without one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import structlog
from starlette.types import Scope

from safelight.api.auth import too_often
from safelight.api.cookies import CONSOLE, check_csrf
from safelight.api.headers import Headers, address_of
from safelight.api.limits import Limit
from safelight.api.problems import REQUEST_ID
from safelight.db import admin
from safelight.db.database import Database
from safelight.domain.audit import Actor
from safelight.domain.keys import ADMIN_PREFIX, ApiKey, is_secret, parse_key
from safelight.errors import RequestError
from safelight.lifecycle.administration import Administration
from safelight.lifecycle.sessions import Sessions
from safelight.telemetry import ADMIN_REFUSALS

log = structlog.get_logger()

MAX_KNOWN = 1_000
_NOBODY = admin.AdminKeyRow("", secrets.token_bytes(32), None)


@dataclass(slots=True)
class Keeper:
    """Reads the key for each request, so that a revoked one ends at once.

    `failures` limits wrong keys by address; over it, only keys that were right before are looked at. `told` and
    `told_in_all` keep the audit log from being filled by whoever guesses.
    """

    database: Database
    administration: Administration
    sessions: Sessions
    public_url: str | None = None
    requests: Limit = field(default_factory=lambda: Limit(20.0, burst=60.0))
    failures: Limit = field(default_factory=lambda: Limit(0.2, burst=20.0))
    told: Limit = field(default_factory=lambda: Limit(1 / 60, burst=1.0))
    told_in_all: Limit = field(default_factory=lambda: Limit(0.2, burst=20.0))
    _known: set[str] = field(default_factory=set, repr=False)

    async def admit(self, scope: Scope, headers: Headers) -> Actor:
        """Who is operating.

        Raises:
            RequestError: 401 for whatever is wrong with the key or session, 403 for a change in a session that does
                not come from our own page, 429 over a limit.
        """
        return _actor(scope, f"admin:{await self.admit_key(scope, headers)}")

    async def admit_key(self, scope: Scope, headers: Headers) -> str:
        """As `admit`; the id of the key."""
        authorization = headers.get(b"authorization", b"")
        token = "" if authorization else CONSOLE.token(headers)
        key_id = await (self._find(scope, headers, token) if token else self._check(scope, authorization))
        wait_s = self.requests.take(key_id)
        if wait_s:
            raise too_often(wait_s)
        return key_id

    async def _find(self, scope: Scope, headers: Headers, token: str) -> str:
        check_csrf(self.sessions, scope, headers, token, self.public_url)
        # Found anew for each request, so that signing out and a revoked key take effect at once.
        session = None if self._is_guessing(scope) else await self.sessions.find(token, is_operator=True)
        if session is None:
            raise await self.refuse(scope)
        return session.key_id

    def _is_guessing(self, scope: Scope) -> bool:
        return self.failures.wait_s(address_of(scope)) > 0.0

    async def _check(self, scope: Scope, authorization: bytes) -> str:
        key = _key_of(authorization)
        if key is None or (key.id not in self._known and self._is_guessing(scope)):
            raise await self.refuse(scope)
        async with self.database.connection() as connection:
            row = await admin.read_admin_key(connection, key.id) or _NOBODY
        # Compared for an unknown id too, so that the time taken does not tell which ids exist.
        is_right = is_secret(self.administration.admin_pepper, key.secret, row.secret_hash)
        if not is_right or row.revoked_at is not None:
            raise await self.refuse(scope)
        if len(self._known) < MAX_KNOWN:
            self._known.add(key.id)
        return key.id

    async def refuse(self, scope: Scope) -> RequestError:
        """The answer to a wrong key; it counts against the caller's address."""
        ADMIN_REFUSALS.inc()
        address = address_of(scope)
        wait_s = self.failures.take(address)
        if not self.told.wait_s(address) and not self.told_in_all.take("all"):
            self.told.take(address)
            caller = _actor(scope, "unknown")
            log.warning("admin_refused", address=caller.address, request_id=caller.request_id)
            await self.administration.note_refusal(caller, "admin.refused")
        if wait_s:
            return too_often(wait_s)
        return RequestError(401, "unauthorized", "A valid admin key is needed.")


def _actor(scope: Scope, name: str) -> Actor:
    client = scope.get("client")
    return Actor(name, client[0] if client else "", scope.get(REQUEST_ID, ""))


def _key_of(authorization: bytes) -> ApiKey | None:
    scheme, _, text = authorization.partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    return parse_key(text.decode("latin-1"), ADMIN_PREFIX)
