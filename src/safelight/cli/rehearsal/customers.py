"""The customers of a rehearsal: they submit, repeat themselves, change their minds, and keep a log of their own."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from random import Random
from types import TracebackType

from safelight.cli.rehearsal.plan import Plan
from safelight.client import ApiError, AsyncClient, ClientError

MODELS = ("lab-callback", "lab-poll", "lab-sync")
TWICE = 0.1
"""One of ten submits is sent twice at once, under one key."""
CANCELED = 0.05
TRY_AGAIN_S = 0.5
TRY_AGAIN_MOST_S = 5.0
GIVE_UP_S = 180.0


@dataclass(slots=True)
class Receipts:
    """The customers' own log: what a 202 told them, and how long it took."""

    ids: dict[str, str] = field(default_factory=dict)
    """Task id by idempotency key."""
    latencies_ms: list[float] = field(default_factory=list)
    """Of submits that were answered at the first try."""
    split_keys: list[str] = field(default_factory=list)
    """Keys that got two ids."""
    unanswered: list[str] = field(default_factory=list)
    repeated: int = 0
    canceled: int = 0
    tries: int = 0


class Customers:
    """Submit at a steady rate, whatever becomes of the service."""

    def __init__(self, url: str, key: str, plan: Plan) -> None:
        self._client = AsyncClient(url, key)
        self._plan = plan
        self._random = Random(plan.seed)
        self._open: set[asyncio.Task[None]] = set()
        self.receipts = Receipts()

    async def __aenter__(self) -> Customers:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._client.close()

    async def submit_all(self) -> None:
        """Until the minutes are over or the tasks are in; not all may have their answer then."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        number = 0
        while loop.time() - began < self._plan.minutes * 60.0 and number != self._plan.tasks:
            self._start(number)
            number += 1
            await asyncio.sleep(max(began + number / self._plan.rate - loop.time(), 0.0))

    async def hear_all(self) -> None:
        """Until the last submit has its answer."""
        if self._open:
            _, late = await asyncio.wait(set(self._open), timeout=GIVE_UP_S)
            self.receipts.unanswered = sorted({task.get_name() for task in late})

    def _start(self, number: int) -> None:
        key = f"drill-{self._plan.seed}-{number}"
        copies = 2 if self._random.random() < TWICE else 1
        is_canceled = self._random.random() < CANCELED
        count = self._random.choice((1, 1, 2, 3))
        self.receipts.repeated += copies - 1
        for _ in range(copies):
            task = asyncio.create_task(self._submit(number, key, count, is_canceled=is_canceled), name=key)
            self._open.add(task)
            task.add_done_callback(self._open.discard)

    async def _submit(self, number: int, key: str, count: int, *, is_canceled: bool) -> None:
        began = time.monotonic()
        tries = 0
        while True:
            tries += 1
            self.receipts.tries += 1
            try:
                receipt = await self._client.create(
                    f"a lamp, number {number}",
                    model=MODELS[number % 3],
                    n=count,
                    size="64x64",
                    idempotency_key=key,
                )
            except ClientError:
                # Each time later: hundreds that ask twice a second would cost more than the service does.
                await asyncio.sleep(min(TRY_AGAIN_S * tries, TRY_AGAIN_MOST_S))
                continue
            if tries == 1:
                self.receipts.latencies_ms.append((time.monotonic() - began) * 1_000.0)
            if self.receipts.ids.setdefault(key, receipt.id) != receipt.id:
                self.receipts.split_keys.append(key)
            if is_canceled:
                await self._cancel(receipt.id)
            return

    async def _cancel(self, task_id: str) -> None:
        try:
            await self._client.cancel(task_id)
            self.receipts.canceled += 1
        except (ApiError, ClientError):
            return  # it may be too late, or the service away: both are answers that a customer lives with
