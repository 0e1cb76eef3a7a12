"""People in a browser: a key or a one-time ticket opens a session, which ends by itself."""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from safelight.db import sessions
from safelight.db.database import Database
from safelight.db.sessions import Holder
from safelight.errors import RequestError

LIFE_S = 12 * 3_600.0
IDLE_S = LIFE_S
OPERATOR_IDLE_S = 30 * 60.0
"""An operator's session that nobody uses ends much earlier."""
TICKET_S = 30 * 60.0
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who is signed in; `account_id` is None for an operator. `token` is the cookie's value.

    `digest` is what is kept of it: it names the session and opens nothing.
    """

    token: str = field(repr=False)
    digest: bytes = field(repr=False)
    csrf_token: str = field(repr=False)
    key_id: str
    account_id: UUID | None
    name: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Ticket:
    """Opens one session, once."""

    token: str = field(repr=False)
    expires_at: datetime


def studio_link(base: str, ticket: str) -> str:
    """The link that a ticket is handed out as: in the fragment, which a browser keeps out of every request and log."""
    return f"{base.strip().rstrip('/')}/#ticket={ticket}"


@dataclass(frozen=True, slots=True)
class Sessions:
    """The verbs of signing in and out; `pepper` hashes what is kept of tokens."""

    database: Database
    pepper: bytes = field(repr=False)

    async def open(self, holder: Holder) -> Session:
        """Begin a session that stands on a key, which the caller has checked."""
        token = _new_token()
        async with self.database.transaction() as connection:
            await sessions.create_session(connection, self._digest(token), holder, life_s=LIFE_S)
        return await self._found(token, is_operator=holder.is_operator)

    async def redeem(self, ticket: str, *, is_operator: bool) -> Session:
        """Use a ticket up and begin its session, in one commit.

        Raises:
            RequestError: 401, it was used before, is too old, or opens another door.
        """
        token = _new_token()
        async with self.database.transaction() as connection:
            holder = await sessions.take_ticket(connection, self._digest(ticket))
            if holder is None or holder.is_operator != is_operator:
                raise RequestError(401, "ticket-refused", "This ticket was used before, or is too old.")
            await sessions.create_session(connection, self._digest(token), holder, life_s=LIFE_S)
        return await self._found(token, is_operator=is_operator)

    async def issue(self, holder: Holder) -> Ticket:
        """A ticket that opens one session on this key, within half an hour."""
        token = _new_token()
        async with self.database.transaction() as connection:
            expires_at = await sessions.create_ticket(
                connection, self._digest(token), holder, life_s=TICKET_S
            )
        return Ticket(token, expires_at)

    async def find(self, token: str, *, is_operator: bool) -> Session | None:
        """The session of a cookie; None for whatever is wrong with it."""
        if not _TOKEN.fullmatch(token):
            return None
        digest = self._digest(token)
        async with self.database.connection() as connection:
            idle_s = OPERATOR_IDLE_S if is_operator else IDLE_S
            row = await sessions.read_session(connection, digest, idle_s=idle_s)
            if row is None or (row.account_id is None) != is_operator:
                return None
            if row.is_stale:
                await sessions.touch_session(connection, digest)
        return Session(
            token=token,
            digest=digest,
            csrf_token=self.csrf_token(token),
            key_id=row.key_id,
            account_id=row.account_id,
            name=row.name,
            expires_at=row.expires_at,
        )

    async def end(self, token: str) -> None:
        """Sign out; once more does no harm."""
        async with self.database.connection() as connection:
            await sessions.end_session(connection, self._digest(token))

    def csrf_token(self, token: str) -> str:
        """What a page of ours has to say with every change: another site cannot read it."""
        return hmac.digest(self.pepper, b"csrf " + token.encode("ascii"), "sha256").hex()

    async def _found(self, token: str, *, is_operator: bool) -> Session:
        found = await self.find(token, is_operator=is_operator)
        if found is None:
            raise RequestError(401, "unauthorized", "The key was revoked.")
        return found

    def _digest(self, token: str) -> bytes:
        return hmac.digest(self.pepper, b"session " + token.encode("ascii", "replace"), "sha256")


def _new_token() -> str:
    return secrets.token_urlsafe(32)
