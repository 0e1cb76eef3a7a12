"""Batches: many tasks under one key, of which so many are at work at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from safelight.db import batches, ledger, tasks
from safelight.db.batches import NewBatch, Refusal
from safelight.db.database import Database
from safelight.db.queue import enqueue_permits
from safelight.domain.ids import new_id
from safelight.domain.news import CANCELED
from safelight.domain.task import WAITING, State
from safelight.errors import RequestError
from safelight.lifecycle.accept import Accept, Wish
from safelight.lifecycle.changes import Changes
from safelight.lifecycle.routing import Routing
from safelight.settings import Settings
from safelight.telemetry import point

log = structlog.get_logger()

ROUTE = "POST /v1/batches"
MAX_ITEMS = 10_000
CHUNK = 200
"""Items that are accepted, or canceled, in about one transaction: it stays short."""
ABANDONED_S = 3_600.0
"""A batch that nobody handed in to its end within this time is canceled."""
ROOM = 200


@dataclass(frozen=True, slots=True)
class Order:
    """A batch as it is handed in: `price` is that of all items, `is_all` refuses the whole for want of one."""

    account_id: UUID
    key: str
    fingerprint: bytes
    items: int
    price: int
    at_once: int
    name: str = ""
    is_all: bool = True


@dataclass(frozen=True, slots=True)
class Begun:
    """A batch to be filled; `refused` are places that were refused before, `is_complete` says that nothing is left."""

    id: UUID
    refused: frozenset[int]
    is_complete: bool


class Batches:
    """Accepts, releases and cancels batches. Every item is a task from the first moment, with its hold."""

    def __init__(self, database: Database, settings: Settings, routing: Routing | None = None) -> None:
        self._database = database
        self._settings = settings
        self._accept = Accept(database, settings, routing, route=ROUTE)

    async def begin(self, order: Order) -> Begun:
        """Make the batch, or find it again under its key.

        Raises:
            RequestError: 402 or 429 if not all of it can be had and all is wanted, 422 key used for another body.
        """
        async with self._database.transaction() as connection:
            accounts = await ledger.lock_accounts(connection, [order.account_id])
            known = await batches.find_batch(connection, order.account_id, order.key)
            if known is None:
                if order.is_all:
                    self._check_whole(order, accounts[order.account_id])
                batch_id = new_id()
                made = NewBatch(
                    batch_id,
                    order.account_id,
                    order.name,
                    order.key,
                    order.fingerprint,
                    order.items,
                    order.at_once,
                    self._settings.start_by_s,
                )
                await batches.insert_batch(connection, made)
                return Begun(batch_id, frozenset(), is_complete=False)
            if known.fingerprint != order.fingerprint:
                detail = "This Idempotency-Key was used for another body."
                raise RequestError(422, "idempotency-key-reused", detail)
            refused = await batches.refused_positions(connection, known.id)
        return Begun(known.id, frozenset(refused), is_complete=known.state != "accepting")

    async def add(self, batch_id: UUID, wishes: Sequence[Wish], refusals: Sequence[Refusal]) -> list[Refusal]:
        """Accept some of its items, parked; those that were refused, which are kept. Once more does no harm."""
        answers = await asyncio.gather(
            *(self._accept.accept(wish) for wish in wishes), return_exceptions=True
        )
        found = list(refusals)
        for wish, answer in zip(wishes, answers, strict=True):
            if isinstance(answer, RequestError):
                found.append(Refusal(wish.batch_position or 0, answer.problem_code, answer.detail))
            elif isinstance(answer, BaseException):
                raise answer
        if found:
            async with self._database.connection() as connection:
                await batches.insert_refusals(connection, batch_id, found)
        point("after_batch_chunk")
        return found

    async def open(self, account_id: UUID, batch_id: UUID) -> None:
        """All of it is accepted: let the first items go to work."""
        async with self._database.transaction() as connection:
            await ledger.lock_accounts(connection, [account_id])
            await batches.lock_batch(connection, account_id, batch_id)
            await batches.open_batch(connection, batch_id)
            await enqueue_permits(connection, await batches.release(connection, [batch_id]))

    async def cancel(self, account_id: UUID, batch_id: UUID, *, is_key_free: bool = False) -> None:
        """Take back whatever has not begun, and ask for the rest; once more goes on where it was broken off.

        Raises:
            RequestError: 404 no such batch of this account.
        """
        async with self._database.transaction() as connection:
            await ledger.lock_accounts(connection, [account_id])
            if not await batches.lock_batch(connection, account_id, batch_id):
                raise RequestError(404, "not-found", "There is no such batch.")
            await batches.cancel_batch(connection, batch_id, is_key_free=is_key_free)
            await batches.request_cancels(connection, batch_id)
        while await self._cancel_some(account_id, batch_id):
            pass
        async with self._database.transaction() as connection:
            await ledger.lock_accounts(connection, [account_id])
            await batches.release(connection, [batch_id])

    async def step(self) -> None:
        """A round over unfinished batches: nothing waits for a step that was lost."""
        after = UUID(int=0)
        while True:
            async with self._database.connection() as connection:
                found = await batches.to_tend(connection, after=after, abandoned_s=ABANDONED_S, room=ROOM)
            for each in found:
                if each.is_abandoned:
                    log.warning("batch_abandoned", batch_id=str(each.id))
                if each.is_abandoned or each.is_canceled:
                    await self.cancel(each.account_id, each.id)
                else:
                    await self._release(each.account_id, each.id)
            if len(found) < ROOM:
                return
            after = found[-1].id

    async def _release(self, account_id: UUID, batch_id: UUID) -> None:
        async with self._database.transaction() as connection:
            await ledger.lock_accounts(connection, [account_id])
            await enqueue_permits(connection, await batches.release(connection, [batch_id]))

    async def _cancel_some(self, account_id: UUID, batch_id: UUID) -> bool:
        async with self._database.transaction() as connection:
            await ledger.lock_accounts(connection, [account_id])
            ids = await batches.waiting_items(connection, batch_id, room=CHUNK)
            changes = Changes(await tasks.lock_tasks(connection, ids))
            for task_id, row in changes.rows.items():
                if row.state in WAITING:
                    changes.settle(task_id, State.CANCELED, cause="customer", failure=CANCELED)
            await changes.write(connection)
        return len(ids) == CHUNK

    def _check_whole(self, order: Order, account: ledger.LockedAccount) -> None:
        if account.available < order.price:
            detail = f"This batch needs {order.price} credits; {account.available} are available."
            raise RequestError(402, "insufficient-credits", detail)
        if account.open_tasks + order.items > self._settings.max_open_tasks:
            raise RequestError(429, "too-many-open-tasks", "Too many unfinished tasks.", retry_after_s=60)


def parked(wish: Wish, batch_id: UUID, position: int) -> Wish:
    """The wish as an item of a batch, under a key that follows from both."""
    return replace(wish, key=f"{batch_id}:{position}", batch_id=batch_id, batch_position=position)
