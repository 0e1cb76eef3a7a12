"""What customers decide about their webhooks: endpoints, secrets, tests, and what is to be delivered again."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from safelight.assets.fetch import Fetcher
from safelight.assets.urls import Origin
from safelight.db import endpoints, ledger, outbox
from safelight.db.database import Database
from safelight.db.endpoints import LockedEndpoint
from safelight.db.queue import enqueue_delivering
from safelight.db.statements import Connection
from safelight.domain import webhook
from safelight.domain.ids import new_id
from safelight.domain.sealing import Sealer
from safelight.errors import AssetError, RequestError
from safelight.lifecycle.notify import LIMITS, refuse_own

RECOVERED_AT_ONCE = 10_000
RECOVER_GAP_S = 0.1
"""Recovered deliveries come ten a second at the most: whoever was down is not flooded."""


class AddressRefused(RequestError):
    """422: the address of an endpoint is none that may be called; the detail says why."""

    def __init__(self, detail: str) -> None:
        super().__init__(422, "webhook-url-refused", detail)


@dataclass(frozen=True, slots=True)
class Secret:
    """An endpoint and its new secret, which is shown this once."""

    endpoint_id: UUID
    text: str = field(repr=False)


class Endpoints:
    """The verbs of an endpoint's owner; a foreign id and a missing one answer alike."""

    def __init__(
        self,
        database: Database,
        sealer: Sealer,
        *,
        allowed_origins: Sequence[str],
        own_origins: frozenset[Origin],
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._own_origins = own_origins
        self._fetcher = Fetcher(allowed_origins, limits=LIMITS)

    async def register(
        self, account_id: UUID, *, url: str, description: str = "", types: Sequence[str] = ()
    ) -> Secret:
        """Add an endpoint; every event from this commit on is delivered to it.

        Raises:
            RequestError: 422 the address may not be called, 409 the account has enough of them.
        """
        await self._vet(url)
        endpoint_id = new_id()
        async with self._database.transaction() as connection:
            await ledger.lock_accounts(connection, [account_id])
            if await endpoints.count_endpoints(connection, account_id) >= webhook.MAX_ENDPOINTS:
                detail = f"An account may have {webhook.MAX_ENDPOINTS} endpoints; delete one first."
                raise RequestError(409, "too-many-endpoints", detail)
            await endpoints.insert_endpoint(
                connection, endpoint_id, account_id, url=url, description=description, types=types
            )
            return Secret(endpoint_id, await self._new_secret(connection, endpoint_id))

    async def change(
        self,
        account_id: UUID,
        endpoint_id: UUID,
        *,
        url: str | None = None,
        description: str | None = None,
        types: Sequence[str] | None = None,
    ) -> None:
        """Change what is not None; what is on its way goes to the new address from its next try on.

        Raises:
            RequestError: 404, or 422 for an address that may not be called.
        """
        if url is not None:
            await self._vet(url)
        async with self._database.transaction() as connection:
            await self._lock(connection, account_id, endpoint_id)
            await endpoints.change_endpoint(
                connection, endpoint_id, url=url, description=description, types=types
            )
            await outbox.pace(connection, [endpoint_id])

    async def remove(self, account_id: UUID, endpoint_id: UUID) -> None:
        """Delete an endpoint; nothing more is sent to it.

        Raises:
            RequestError: 404.
        """
        async with self._database.transaction() as connection:
            await self._lock(connection, account_id, endpoint_id)
            await endpoints.delete_endpoint(connection, endpoint_id)

    async def rotate(self, account_id: UUID, endpoint_id: UUID, *, overlap_s: float) -> Secret:
        """Make a new secret, in force at once; the old ones sign as well for `overlap_s` seconds, 0 revokes them now.

        Raises:
            RequestError: 404, or 409 while too many secrets are in force.
        """
        async with self._database.transaction() as connection:
            await self._lock(connection, account_id, endpoint_id)
            await endpoints.retire_secrets(connection, endpoint_id, overlap_s=overlap_s)
            if len(await endpoints.list_secrets(connection, [endpoint_id])) >= webhook.MAX_SECRETS:
                detail = (
                    f"{webhook.MAX_SECRETS} secrets are in force; wait, or revoke them with an overlap of 0."
                )
                raise RequestError(409, "too-many-secrets", detail)
            return Secret(endpoint_id, await self._new_secret(connection, endpoint_id))

    async def enable(self, account_id: UUID, endpoint_id: UUID) -> None:
        """Put an endpoint back in use; what failed meanwhile is sent when its owner asks for it.

        Raises:
            RequestError: 404.
        """
        async with self._database.transaction() as connection:
            await self._lock(connection, account_id, endpoint_id)
            await endpoints.enable_endpoint(connection, endpoint_id)
            await outbox.pace(connection, [endpoint_id])

    async def test(self, account_id: UUID, endpoint_id: UUID) -> int:
        """Send a test event, once; returns the delivery, whose try tells how it went.

        Raises:
            RequestError: 404, or 409 while the endpoint is disabled.
        """
        async with self._database.transaction() as connection:
            found = await ledger.lock_accounts(connection, [account_id])
            _in_use(await self._lock(connection, account_id, endpoint_id))
            moment = found[account_id].now.isoformat().replace("+00:00", "Z")
            document = {
                "type": webhook.TEST_EVENT,
                "timestamp": moment,
                "data": {"endpoint_id": str(endpoint_id)},
            }
            event_id = await outbox.insert_event(
                connection,
                account_id,
                webhook.TEST_EVENT,
                json.dumps(document, separators=(",", ":")).encode(),
                endpoint_id=endpoint_id,
            )
            await enqueue_delivering(connection)
            delivery_id = await outbox.delivery_of_event(connection, event_id, endpoint_id)
        if delivery_id is None:
            raise AssertionError("an event for one endpoint has its delivery")
        return delivery_id

    async def redeliver(self, account_id: UUID, endpoint_id: UUID, delivery_id: int) -> None:
        """Deliver again what has been delivered or has failed, under its old id; what is on its way stays as it is.

        Raises:
            RequestError: 404, or 409 while the endpoint is disabled.
        """
        async with self._database.transaction() as connection:
            _in_use(await self._lock(connection, account_id, endpoint_id))
            if not await outbox.find_delivery(connection, endpoint_id, delivery_id):
                raise RequestError(404, "not-found", "There is no such delivery.")
            if await outbox.redeliver(connection, endpoint_id, delivery_id):
                await outbox.pace(connection, [endpoint_id])
                await enqueue_delivering(connection)

    async def recover(self, account_id: UUID, endpoint_id: UUID, *, since: datetime) -> int:
        """Deliver again what failed since a moment, oldest first and a little apart; how many these are.

        Raises:
            RequestError: 404, or 409 while the endpoint is disabled.
        """
        async with self._database.transaction() as connection:
            _in_use(await self._lock(connection, account_id, endpoint_id))
            recovered = await outbox.recover(
                connection, endpoint_id, since=since, room=RECOVERED_AT_ONCE, apart_s=RECOVER_GAP_S
            )
            await outbox.pace(connection, [endpoint_id])
            await enqueue_delivering(connection)
            return recovered

    async def want_low_credits(self, account_id: UUID, low_credits: int | None) -> None:
        """Set the balance below which the account is told that its credits run low; None for never."""
        async with self._database.transaction() as connection:
            await ledger.lock_accounts(connection, [account_id])
            await endpoints.set_low_credits(connection, account_id, low_credits)

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._fetcher.aclose()

    async def _vet(self, url: str) -> None:
        """The rules that every try keeps as well: a name may lead elsewhere tomorrow."""
        if "#" in url:
            raise AddressRefused("The url must not have a fragment.")
        try:
            refuse_own(url, self._own_origins)
            await self._fetcher.check(url)
        except AssetError as error:
            raise AddressRefused(f"The url cannot be used: {error}.") from None

    async def _lock(self, connection: Connection, account_id: UUID, endpoint_id: UUID) -> LockedEndpoint:
        found = await endpoints.lock_endpoint(connection, account_id, endpoint_id)
        if found is None:
            raise RequestError(404, "not-found", "There is no such webhook endpoint.")
        return found

    async def _new_secret(self, connection: Connection, endpoint_id: UUID) -> str:
        secret, secret_id = secrets.token_bytes(webhook.SECRET_BYTES), new_id()
        sealed = self._sealer.seal(secret, place=secret_id.bytes)
        await endpoints.insert_secret(
            connection, secret_id, endpoint_id, sealed=sealed, key_id=self._sealer.key_id
        )
        return webhook.secret_text(secret)


def _in_use(endpoint: LockedEndpoint) -> None:
    if endpoint.is_disabled:
        raise RequestError(409, "endpoint-disabled", "The endpoint is disabled; enable it first.")
