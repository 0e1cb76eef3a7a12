"""Webhook endpoints through the client: calls below `/v1/webhook-endpoints`, answered in the service's own words."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from safelight.client.errors import ApiError
from safelight.client.exchange import Call, Exchange
from safelight.client.pace import TEMPORARY
from safelight.client.values import Page, checked_id

Document = Mapping[str, Any]
PLACE = "/v1/webhook-endpoints"
T = TypeVar("T")
ONCE = frozenset[int]()
"""A call that makes something is not sent again by itself: a lost answer may have made it."""


class Do(Protocol):
    """Waits for a call on behalf of code without an event loop."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T:
        """What the call gives."""


class WebhookEndpoints:
    """As `client.webhooks`: what an account decides about its webhooks.

    made = await client.webhooks.add("https://shop.example/hooks")
    keep(made["secret"])
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def list(self) -> list[Document]:
        """Every endpoint of the account."""
        answer = await self._ask("GET", PLACE)
        return list(answer["data"])

    async def add(self, url: str, *, description: str = "", events: Sequence[str] = ()) -> Document:
        """Register an endpoint; its `secret` is in this answer and in no other.

        Raises:
            ApiError: the address may not be called, or the account has enough endpoints.
        """
        body = {"url": url, "description": description, "events": list(events)}
        return await self._ask("POST", PLACE, body, repeat_on=ONCE)

    async def change(self, endpoint_id: str, **fields: Any) -> Document:
        """Change `url`, `description` or `events`."""
        return await self._ask("PATCH", _at(endpoint_id), fields)

    async def remove(self, endpoint_id: str) -> None:
        """Delete an endpoint."""
        await self._ask("DELETE", _at(endpoint_id))

    async def rotate(self, endpoint_id: str, *, overlap_s: int = 86_400) -> Document:
        """Make a new secret; the old ones sign as well for `overlap_s` seconds, and with 0 no longer."""
        return await self._ask("POST", _at(endpoint_id, "rotate"), {"overlap_s": overlap_s}, repeat_on=ONCE)

    async def enable(self, endpoint_id: str) -> Document:
        """Put a disabled endpoint back in use."""
        return await self._ask("POST", _at(endpoint_id, "enable"))

    async def test(self, endpoint_id: str) -> Document:
        """Send a test event; returns its delivery, which `delivery` reads again."""
        return await self._ask("POST", _at(endpoint_id, "test"), repeat_on=ONCE)

    async def delivery(self, endpoint_id: str, delivery_id: str) -> Document:
        """One delivery with its tries."""
        return await self._ask("GET", _at(endpoint_id, "deliveries", delivery_id))

    async def deliveries(
        self,
        endpoint_id: str,
        *,
        status: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[Document]:
        """Deliveries of an endpoint, newest first; `status` is pending, delivered, failed or canceled."""
        asked = {"status": status, "cursor": cursor, "limit": limit}
        params = {name: str(value) for name, value in asked.items() if value is not None}
        answer = await self._ask("GET", _at(endpoint_id, "deliveries"), params=params)
        return Page(tuple(answer["data"]), answer["next_cursor"])

    async def redeliver(self, endpoint_id: str, delivery_id: str) -> Document:
        """Send a delivery again, under its old id."""
        return await self._ask("POST", _at(endpoint_id, "deliveries", delivery_id, "redeliver"))

    async def recover(self, endpoint_id: str, since: datetime) -> int:
        """Send what failed since a time again; how many deliveries these are."""
        answer = await self._ask("POST", _at(endpoint_id, "recover"), {"since": since.isoformat()})
        return int(answer["recovered"])

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, str] | None = None,
        repeat_on: frozenset[int] = TEMPORARY,
    ) -> Document:
        raw = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json"} if raw is not None else None
        answer = await self._exchange.ask(
            Call(method, path, repeat_on, body=raw, headers=headers, params=params)
        )
        return answer.body


class PlainWebhookEndpoints:
    """As `client.webhooks` of the plain client: the same calls, one after the other.

    made = client.webhooks.add("https://shop.example/hooks")
    keep(made["secret"])
    """

    def __init__(self, endpoints: WebhookEndpoints, do: Do) -> None:
        self._endpoints = endpoints
        self._do = do

    def list(self) -> list[Document]:
        """As WebhookEndpoints.list."""
        return self._do(self._endpoints.list())

    def add(self, url: str, *, description: str = "", events: Sequence[str] = ()) -> Document:
        """As WebhookEndpoints.add."""
        return self._do(self._endpoints.add(url, description=description, events=events))

    def change(self, endpoint_id: str, **fields: Any) -> Document:
        """As WebhookEndpoints.change."""
        return self._do(self._endpoints.change(endpoint_id, **fields))

    def remove(self, endpoint_id: str) -> None:
        """As WebhookEndpoints.remove."""
        self._do(self._endpoints.remove(endpoint_id))

    def rotate(self, endpoint_id: str, *, overlap_s: int = 86_400) -> Document:
        """As WebhookEndpoints.rotate."""
        return self._do(self._endpoints.rotate(endpoint_id, overlap_s=overlap_s))

    def enable(self, endpoint_id: str) -> Document:
        """As WebhookEndpoints.enable."""
        return self._do(self._endpoints.enable(endpoint_id))

    def test(self, endpoint_id: str) -> Document:
        """As WebhookEndpoints.test."""
        return self._do(self._endpoints.test(endpoint_id))

    def delivery(self, endpoint_id: str, delivery_id: str) -> Document:
        """As WebhookEndpoints.delivery."""
        return self._do(self._endpoints.delivery(endpoint_id, delivery_id))

    def deliveries(
        self,
        endpoint_id: str,
        *,
        status: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[Document]:
        """As WebhookEndpoints.deliveries."""
        return self._do(self._endpoints.deliveries(endpoint_id, status=status, cursor=cursor, limit=limit))

    def redeliver(self, endpoint_id: str, delivery_id: str) -> Document:
        """As WebhookEndpoints.redeliver."""
        return self._do(self._endpoints.redeliver(endpoint_id, delivery_id))

    def recover(self, endpoint_id: str, since: datetime) -> int:
        """As WebhookEndpoints.recover."""
        return self._do(self._endpoints.recover(endpoint_id, since))


def _at(*parts: str) -> str:
    if any(not part for part in parts):
        raise ApiError(404, "not-found", "An id is empty.")
    return "/".join([PLACE, *(checked_id(part) for part in parts)])
