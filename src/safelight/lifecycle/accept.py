"""Accept a task: idempotency → quote → hold → queued, one commit for many; and take it back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from safelight.db import batches, ledger, tasks
from safelight.db.database import Database
from safelight.db.group import Group
from safelight.db.queue import enqueue_permits
from safelight.db.statements import Connection
from safelight.domain.catalog import Catalog, Model
from safelight.domain.credits import quote
from safelight.domain.ids import new_id
from safelight.domain.news import CANCELED
from safelight.domain.routes import Demand, KeyState, Place
from safelight.domain.task import UPSTREAM, WAITING, State
from safelight.errors import RequestError
from safelight.lifecycle.changes import Changes
from safelight.lifecycle.routing import Routing
from safelight.settings import Settings
from safelight.telemetry import SUBMITS, point

ROUTE = "POST /v1/tasks"
KEEP_KEY_S = 30 * 86_400.0
"""A key is kept 30 days; after that it is new."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A checked submit: what the account wants of which model, under which key; its inputs are uploads.

    An item of a batch is parked until its batch lets it go.
    """

    account_id: UUID
    key: str
    fingerprint: bytes
    model: Model
    operation: str
    prompt: str
    n: int = 1
    size: str | None = None
    aspect_ratio: str | None = None
    images: Sequence[UUID] = ()
    mask: UUID | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    batch_id: UUID | None = None
    batch_position: int | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer: `body` are the stored bytes of the receipt `{id, status, credits, created_at}`."""

    task_id: UUID
    body: bytes
    is_replayed: bool


class Accept:
    """T1 as a list verb: concurrent submits share a commit."""

    def __init__(
        self, database: Database, settings: Settings, routing: Routing | None = None, *, route: str = ROUTE
    ) -> None:
        self._database = database
        self._route = route
        self._settings = settings
        self._routing = routing or Routing(Catalog(()), {})
        self._group: Group[Wish, Accepted] = Group(database, self._accept_many, name="accept")

    async def accept(self, wish: Wish) -> Accepted:
        """Accept one wish; when this returns it is committed.

        Raises:
            RequestError: 402 not enough credits, 404 unknown account or a model that has retired, 422 key used
                for another body, 429 too many open tasks. Nothing is stored then, and the key stays free.
        """
        try:
            accepted = await self._group.do(wish)
        except RequestError as error:
            SUBMITS.labels(error.problem_code).inc()
            raise
        point("after_accept_commit")
        SUBMITS.labels("replayed" if accepted.is_replayed else "accepted").inc()
        return accepted

    async def find_receipt(self, account_id: UUID, key: str, fingerprint: bytes) -> Accepted | None:
        """The stored answer to this key, before anything else about a submit is judged.

        Raises:
            RequestError: 422, the key was used for another body.
        """
        async with self._database.connection() as connection:
            found = await tasks.find_receipts(connection, self._route, [(account_id, key)])
        receipt = found.get((account_id, key))
        return _replay(receipt, fingerprint) if receipt and not receipt.is_expired else None

    async def _accept_many(
        self, connection: Connection, wishes: Sequence[Wish]
    ) -> Sequence[Accepted | Exception]:
        accounts = await ledger.lock_accounts(connection, {wish.account_id for wish in wishes})
        found = await tasks.find_receipts(
            connection, self._route, [(wish.account_id, wish.key) for wish in wishes]
        )
        states: Mapping[str, KeyState] = {}
        if any(self._routing.has_choice(wish.model) for wish in wishes):
            states = await self._routing.states(connection, is_fresh=False)
        wanted = {wish.batch_id for wish in wishes if wish.batch_id is not None}
        accepting = await batches.accepting(connection, sorted(wanted)) if wanted else set()
        receipts = {pair: receipt for pair, receipt in found.items() if not receipt.is_expired}
        results: list[Accepted | Exception] = []
        items: list[dict[str, Any]] = []
        for wish in wishes:
            account = accounts.get(wish.account_id)
            if account is None:
                results.append(RequestError(404, "not-found", "There is no such account."))
                continue
            try:
                receipt = receipts.get((wish.account_id, wish.key))
                if receipt is None:
                    if wish.batch_id is not None and wish.batch_id not in accepting:
                        raise RequestError(409, "batch-closed", "The batch takes no more items.")
                    item = self._admit(wish, account, states)
                    items.append(item)
                    body = item["body"].encode()
                    receipts[(wish.account_id, wish.key)] = tasks.Receipt(wish.fingerprint, body, item["id"])
                    results.append(Accepted(item["id"], body, is_replayed=False))
                else:
                    results.append(_replay(receipt, wish.fingerprint))
            except RequestError as error:
                results.append(error)
        if items:
            admitted = {(item["account_id"], item["key"]) for item in items}
            await tasks.forget_receipts(connection, self._route, sorted(admitted & found.keys()))
            await tasks.insert_accepted(connection, items)
            due = {item["provider"] for item in items if item["batch_id"] is None}
            await enqueue_permits(connection, sorted(due))
        point("before_accept_commit")
        return results

    def _admit(
        self, wish: Wish, account: ledger.LockedAccount, states: Mapping[str, KeyState]
    ) -> dict[str, Any]:
        held = quote(wish.model.price, wish.n)
        if account.available < held:
            detail = f"This task needs {held} credits; {account.available} are available."
            raise RequestError(402, "insufficient-credits", detail)
        if account.open_tasks >= self._settings.max_open_tasks:
            raise RequestError(429, "too-many-open-tasks", "Too many unfinished tasks.", retry_after_s=5)
        place = self._place(wish, account.now, states)
        account.available -= held
        account.open_tasks += 1
        task_id = new_id()
        return {
            "id": task_id,
            "account_id": wish.account_id,
            "model": wish.model.name,
            "operation": wish.operation,
            "prompt": wish.prompt,
            "n": wish.n,
            "size": wish.size,
            "aspect_ratio": wish.aspect_ratio,
            "images": list(wish.images),
            "mask": wish.mask,
            "options": dict(wish.options),
            "metadata": dict(wish.metadata),
            "priority": wish.priority,
            "provider": place.provider,
            "upstream_model": place.route.upstream_model,
            "unit_price": wish.model.price,
            "held": held,
            "start_in_s": self._settings.start_by_s,
            "deadline_s": place.route.deadline_s,
            "route": self._route,
            "batch_id": wish.batch_id,
            "batch_position": wish.batch_position,
            "key": wish.key,
            "fingerprint": wish.fingerprint.hex(),
            "body": _receipt_body(task_id, held, account.now),
            "keep_s": KEEP_KEY_S,
        }

    def _place(self, wish: Wish, now: datetime, states: Mapping[str, KeyState]) -> Place:
        demand = Demand(
            operation=wish.operation,
            n=wish.n,
            prompt_chars=len(wish.prompt),
            size=wish.size,
            aspect_ratio=wish.aspect_ratio,
            images=len(wish.images),
            has_mask=wish.mask is not None,
            options=wish.options.keys(),
        )
        place = self._routing.first_place(wish.model, demand, now.date(), states)
        if place is None:
            raise RequestError(
                404, "model-retired", "This model has retired; GET /v1/models lists the others."
            )
        return place


def _receipt_body(task_id: UUID, held: int, created_at: datetime) -> str:
    receipt = {
        "id": str(task_id),
        "status": "processing",
        "credits": {"held": held, "captured": 0, "released": 0},
        "created_at": created_at.isoformat().replace("+00:00", "Z"),
    }
    return json.dumps(receipt, separators=(",", ":"))


def _replay(receipt: tasks.Receipt, fingerprint: bytes) -> Accepted:
    if receipt.fingerprint != fingerprint:
        raise RequestError(422, "idempotency-key-reused", "This Idempotency-Key was used for another body.")
    return Accepted(receipt.task_id, receipt.body, is_replayed=True)


class Cancel:
    """The customer wants it back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def cancel(self, account_id: UUID, task_id: UUID) -> str:
        """Cancel a waiting task at once ("canceled"), or note the wish of one that is upstream ("requested").

        Raises:
            RequestError: 404 no such task of this account, 409 it can no longer be canceled.
        """
        async with self._database.transaction() as connection:
            await ledger.lock_accounts(connection, [account_id])
            changes = Changes(await tasks.lock_tasks(connection, [task_id]))
            row = changes.rows.get(task_id)
            if row is None or row.account_id != account_id:
                raise RequestError(404, "not-found", "There is no such task.")
            if row.state in WAITING:
                changes.settle(task_id, State.CANCELED, cause="customer", failure=CANCELED)
                await changes.write(connection)
                answer = "canceled"
            elif row.state in UPSTREAM:
                await tasks.request_cancel(connection, task_id)
                answer = "requested"
            else:
                raise RequestError(409, "not-cancelable", "The task can no longer be canceled.")
            point("before_cancel_commit")
        point("after_cancel_commit")
        return answer
