"""Who is calling: API keys, and the limits that come before anything else is read."""

from __future__ import annotations

import asyncio
import math
import secrets
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from time import monotonic
from uuid import UUID

from starlette.types import Scope

from safelight.api.limits import Limit
from safelight.db import accounts
from safelight.db.database import Database
from safelight.domain.keys import ApiKey, is_secret, parse_key
from safelight.errors import RequestError

KEEP_S = 5.0
"""How long a key that was read is believed: a revocation takes effect within this time."""
MAX_KEYS = 50_000
_NOBODY = accounts.KeyRow(UUID(int=0), secrets.token_bytes(32), None)

Headers = list[tuple[bytes, bytes]]


@dataclass(slots=True)
class _Known:
    row: accounts.KeyRow
    until: float


@dataclass(slots=True)
class Doorkeeper:
    """Knows accounts by their keys, and how often each may knock.

    `failures` limits wrong keys by the caller's address: over it, keys that this process has never seen are
    turned away unread, so that guessing costs the database nothing and known callers are let in all the same.
    """

    database: Database
    pepper: bytes = field(repr=False)
    requests: Limit
    failures: Limit = field(default_factory=lambda: Limit(5.0, burst=50.0))
    _known: dict[str, _Known] = field(default_factory=dict, repr=False)
    _reading: dict[str, asyncio.Task[accounts.KeyRow | None]] = field(default_factory=dict, repr=False)

    async def admit(self, scope: Scope) -> UUID:
        """The account that is calling, within its rate.

        Raises:
            RequestError: 401 for whatever is wrong with the key, 429 over a limit.
        """
        account_id = await self._account_of(scope)
        wait_s = self.requests.take(account_id)
        if wait_s:
            raise too_often(wait_s)
        return account_id

    async def _account_of(self, scope: Scope) -> UUID:
        key = _key_of(scope["headers"])
        if key is None:
            raise self._refusal(scope)
        known = self._known.get(key.id)
        if known is None or known.until < monotonic():
            if known is None and self.failures.wait_s(address_of(scope)):
                raise self._refusal(scope)
            row = await self._read(key.id) or _NOBODY
        else:
            row = known.row
        # Compared for an unknown id too, so that the time taken does not tell which ids exist.
        if not is_secret(self.pepper, key.secret, row.secret_hash) or row.revoked_at is not None:
            raise self._refusal(scope)
        return row.account_id

    def _refusal(self, scope: Scope) -> RequestError:
        wait_s = self.failures.take(address_of(scope))
        return (
            too_often(wait_s) if wait_s else RequestError(401, "unauthorized", "A valid API key is needed.")
        )

    async def _read(self, key_id: str) -> accounts.KeyRow | None:
        """Read a key once for everybody who waits for it."""
        reading = self._reading.get(key_id)
        if reading is None:
            reading = self._reading[key_id] = asyncio.create_task(self._read_now(key_id))
            reading.add_done_callback(lambda _: self._reading.pop(key_id, None))
        return await asyncio.shield(reading)

    async def _read_now(self, key_id: str) -> accounts.KeyRow | None:
        until = monotonic() + KEEP_S
        async with self.database.connection() as connection:
            row = await accounts.read_key(connection, key_id)
        if row is not None:
            if len(self._known) >= MAX_KEYS:
                self._known.clear()
            self._known[key_id] = _Known(row, until)
        return row


def too_often(wait_s: float) -> RequestError:
    """429 with the seconds to wait."""
    return RequestError(
        429, "rate-limited", "Too many requests; wait.", retry_after_s=max(1, math.ceil(wait_s))
    )


def address_of(scope: Scope) -> str:
    """The caller's address as limits count it: of IPv6 the /64, which is what one customer has."""
    client = scope.get("client")
    address: str = client[0] if client else ""
    if ":" not in address:
        return address
    try:
        return str(IPv6Address(int(IPv6Address(address)) >> 64 << 64))
    except ValueError:
        return address


def sole(headers: Headers, name: bytes) -> bytes | None:
    """The value of a header that is there once; b"" if it is there more often, None if it is not there."""
    found = [value for key, value in headers if key == name]
    if not found:
        return None
    return found[0] if len(found) == 1 else b""


def _key_of(headers: Headers) -> ApiKey | None:
    scheme, _, text = (sole(headers, b"authorization") or b"").partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    # Bytes outside ASCII become characters that no key has.
    return parse_key(text.decode("latin-1"))
