"""Who is calling: API keys and sessions, and the limits that come before anything else is read."""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

from starlette.types import Scope

from safelight.api.cookies import STUDIO, check_csrf
from safelight.api.headers import Headers, address_of, headers_of
from safelight.api.limits import Limit
from safelight.db import accounts
from safelight.db.database import Database
from safelight.domain.keys import ApiKey, is_secret, parse_key
from safelight.errors import RequestError
from safelight.lifecycle.live import Opener
from safelight.lifecycle.sessions import Sessions

KEEP_S = 5.0
"""How long a key that was read is believed: a revocation takes effect within this time."""
MAX_KEYS = 50_000


@dataclass(slots=True)
class _Known:
    row: accounts.KeyRow
    until: float


@dataclass(slots=True)
class _Pass:
    opener: Opener
    until: float


_NOBODY = _Known(accounts.KeyRow(UUID(int=0), secrets.token_bytes(32), None), 0.0)


@dataclass(slots=True)
class Doorkeeper:
    """Knows accounts by their keys, and how often each may knock.

    `failures` limits wrong keys by the caller's address: over it, keys that this process has never seen are
    turned away unread, so that guessing costs the database nothing and known callers are let in all the same.
    """

    database: Database
    pepper: bytes = field(repr=False)
    requests: Limit
    sessions: Sessions
    public_url: str | None = None
    failures: Limit = field(default_factory=lambda: Limit(5.0, burst=50.0))
    _known: dict[str, _Known] = field(default_factory=dict, repr=False)
    _passes: dict[bytes, _Pass] = field(default_factory=dict, repr=False)
    _reading: dict[str, asyncio.Task[_Known | None]] = field(default_factory=dict, repr=False)

    async def admit(self, scope: Scope, headers: Headers | None = None) -> UUID:
        """The account that is calling, within its rate.

        Raises:
            RequestError: 401 for whatever is wrong with the key or session, 403 for a change in a session that does
                not come from our own page, 429 over a limit.
        """
        return (await self.admit_opener(scope, headers)).account_id

    async def admit_opener(self, scope: Scope, headers: Headers | None = None) -> Opener:
        """As `admit`, with the key, and the session if it is one: for what stays open after the answer has begun."""
        headers = headers or headers_of(scope)
        authorization = headers.get(b"authorization", b"")
        token = "" if authorization else STUDIO.token(headers)
        if token:
            check_csrf(self.sessions, scope, headers, token, self.public_url)
        # By a digest, not by the key: a look-up takes as long for one wrong key as for another.
        digest = hashlib.sha256(authorization or b"cookie " + token.encode("latin-1")).digest()
        held = self._passes.get(digest)
        if held is None or held.until <= monotonic():
            held = await (self._find(scope, token) if token else self._check(scope, authorization))
            if len(self._passes) >= MAX_KEYS:
                self._passes.clear()
            self._passes[digest] = held
        wait_s = self.requests.take(held.opener.account_id)
        if wait_s:
            raise too_often(wait_s)
        return held.opener

    async def _find(self, scope: Scope, token: str) -> _Pass:
        until = monotonic() + KEEP_S
        session = None if self.is_guessing(scope) else await self.sessions.find(token, is_operator=False)
        if session is None or session.account_id is None:
            raise self.refusal(scope)
        return _Pass(Opener(session.account_id, session.key_id, session.digest), until)

    async def _check(self, scope: Scope, authorization: bytes) -> _Pass:
        key = _key_of(authorization)
        if key is None:
            raise self.refusal(scope)
        known = self._known.get(key.id)
        if known is None and self.is_guessing(scope):
            raise self.refusal(scope)
        if known is None or known.until <= monotonic():
            known = await self._read(key.id) or _NOBODY
        # Compared for an unknown id too, so that the time taken does not tell which ids exist.
        is_right = is_secret(self.pepper, key.secret, known.row.secret_hash)
        if not is_right or known.row.revoked_at is not None:
            raise self.refusal(scope)
        return _Pass(Opener(known.row.account_id, key.id), known.until)

    def is_guessing(self, scope: Scope) -> bool:
        """Whether this address has shown so many wrong keys that another one is not even looked at."""
        return self.failures.wait_s(address_of(scope)) > 0.0

    def refusal(self, scope: Scope) -> RequestError:
        """The answer to a wrong key; it counts against the caller's address."""
        wait_s = self.failures.take(address_of(scope))
        return (
            too_often(wait_s) if wait_s else RequestError(401, "unauthorized", "A valid API key is needed.")
        )

    async def _read(self, key_id: str) -> _Known | None:
        """Read a key once for everybody who waits for it."""
        reading = self._reading.get(key_id)
        if reading is None:
            reading = self._reading[key_id] = asyncio.create_task(self._read_now(key_id))
            reading.add_done_callback(lambda _: self._reading.pop(key_id, None))
        return await asyncio.shield(reading)

    async def _read_now(self, key_id: str) -> _Known | None:
        until = monotonic() + KEEP_S
        async with self.database.connection() as connection:
            row = await accounts.read_key(connection, key_id)
        if row is None:
            self._known.pop(key_id, None)
            return None
        if len(self._known) >= MAX_KEYS:
            self._known.clear()
        known = self._known[key_id] = _Known(row, until)
        return known


def too_often(wait_s: float) -> RequestError:
    """429 with the seconds to wait."""
    return RequestError(
        429, "rate-limited", "Too many requests; wait.", retry_after_s=max(1, math.ceil(wait_s))
    )


def _key_of(authorization: bytes) -> ApiKey | None:
    scheme, _, text = authorization.partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    # Bytes outside ASCII become characters that no key has.
    return parse_key(text.decode("latin-1"))
