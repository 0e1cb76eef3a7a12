"""Group commit: concurrent calls of a verb share one transaction."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import asyncpg
import structlog

from safelight.db.database import Database
from safelight.db.statements import Connection
from safelight.telemetry import GROUP_SIZE

log = structlog.get_logger()

MAX_ITEMS = 256
"""Largest batch: keeps one transaction's locks short."""
GATHER_S = 0.002
"""How long the first caller waits for company; a good trade of latency for commits."""
MAX_BATCHES = 2
"""Batches of one verb in flight: one commits while the next is prepared."""
CONFLICT_TRIES = 5
CONFLICTS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class Group(Generic[ItemT, ResultT]):
    """Coalesces calls of one list verb; each caller gets its own result, nobody before the commit.

    The verb takes an open transaction and a list and returns a list of equal length, in which an exception
    stands for an item that was decided against. An exception that it raises rolls the batch back: a deadlock
    is tried again, anything else makes the items run one by one, so that a poisoned item fails alone.
    """

    def __init__(
        self,
        database: Database,
        verb: Callable[[Connection, Sequence[ItemT]], Awaitable[Sequence[ResultT | Exception]]],
        *,
        name: str,
    ) -> None:
        self._database = database
        self._verb = verb
        self._name = name
        self._waiting: list[tuple[ItemT, asyncio.Future[ResultT]]] = []
        self._batches: set[asyncio.Task[None]] = set()

    async def do(self, item: ItemT) -> ResultT:
        """Have the item carried out and committed, together with whatever else is waiting.

        A caller that is canceled does not undo its item: it may be committed all the same.
        """
        future: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        # A batch that has just ended is still in the set until its callback ran: it will take nothing more.
        if sum(not batch.done() for batch in self._batches) < MAX_BATCHES:
            self._start_batch()
        return await future

    def _start_batch(self) -> None:
        batch = asyncio.create_task(self._run_batches(), name=f"group-{self._name}")
        self._batches.add(batch)
        batch.add_done_callback(self._batches.discard)

    async def _run_batches(self) -> None:
        await asyncio.sleep(GATHER_S)
        while self._waiting:
            taken, self._waiting = self._waiting[:MAX_ITEMS], self._waiting[MAX_ITEMS:]
            GROUP_SIZE.labels(self._name).observe(len(taken))
            await self._run(taken)

    async def _run(self, taken: list[tuple[ItemT, asyncio.Future[ResultT]]]) -> None:
        try:
            results = await self._transact([item for item, _ in taken])
        except Exception as error:  # noqa: BLE001 - handed to the caller, whose item it is
            if len(taken) == 1:
                _resolve(taken[0][1], error)
                return
            log.warning("batch_split", verb=self._name, items=len(taken), error=repr(error))
            for single in taken:
                await self._run([single])
            return
        except BaseException as error:
            for _, future in taken:
                _resolve(
                    future, asyncio.CancelledError() if isinstance(error, asyncio.CancelledError) else error
                )
            raise
        for (_, future), result in zip(taken, results, strict=True):
            _resolve(future, result)

    async def _transact(self, items: list[ItemT]) -> Sequence[ResultT | Exception]:
        for tries in range(1, CONFLICT_TRIES + 1):
            try:
                async with self._database.transaction() as connection:
                    results = await self._verb(connection, items)
                    if len(results) != len(items):
                        raise AssertionError(f"{self._name} answered {len(results)} of {len(items)} items")
                    return results
            except CONFLICTS:
                if tries == CONFLICT_TRIES:
                    raise
                await asyncio.sleep(random.uniform(0.0, 0.01 * 2**tries))
        raise AssertionError("unreachable")


def _resolve(future: asyncio.Future[ResultT], result: ResultT | BaseException) -> None:
    if future.done():
        return
    if isinstance(result, asyncio.CancelledError):
        future.cancel()
    elif isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)
