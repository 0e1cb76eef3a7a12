"""Everything at once: the one order of locks keeps two processes from ever standing in each other's way."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg

from safelight.db import accounts, ledger
from safelight.domain.provider import Origin
from safelight.domain.task import State
from safelight.errors import RequestError, StaleAttempt
from safelight.lifecycle.accept import Wish
from tests.races import rivals
from tests.races.rivals import PROVIDER, Verbs
from tests.world import World

OPERATIONS = 2_000
WORKERS = 8


@dataclass(slots=True)
class Crowd:
    """Two processes' verbs over one database, three accounts, and the tasks that came of it."""

    world: World
    processes: list[Verbs]
    account_ids: list[UUID]
    chance: random.Random
    left: int = OPERATIONS
    keys: int = 0
    known: dict[UUID, UUID] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)

    @property
    def verbs(self) -> Verbs:
        return self.chance.choice(self.processes)

    def some(self, count: int, *, among: int = 40) -> list[UUID]:
        """Tasks to meddle with: rather young ones, where others meddle too."""
        young = list(self.known)[-among:]
        return self.chance.sample(young, min(count, len(young)))

    async def at_once(self, *calls: Awaitable[object]) -> None:
        """Count and carry out; what a verb decides against is fine, anything else is not."""
        self.left -= len(calls)
        for result in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(result, RequestError | StaleAttempt):
                self.done[result.code] += 1
            elif isinstance(result, BaseException):
                raise result

    async def submit(self) -> None:
        self.keys += 1
        await self.at_once(*(self._accept(f"key-{self.keys - place}") for place in (0, 0, 1)))

    async def _accept(self, key: str) -> None:
        account_id = self.account_ids[sum(key.encode()) % len(self.account_ids)]
        model = self.world.graph.context.catalog.find(PROVIDER)
        assert model is not None
        wish = Wish(account_id, key, bytes(32), model, "generate", "a red shoe", size="64x64")
        self.known[(await self.verbs.accept.accept(wish)).task_id] = account_id

    async def claim(self) -> None:
        claims = await self.verbs.dispatch.claim(PROVIDER, 8)
        news = [rivals.accepted_news(claim.task.id) for claim in claims.items]
        await self.at_once(*(self.verbs.advance.advance(each) for each in news))

    async def tell(self) -> None:
        origins = [self.chance.choice([Origin.CALLBACK, Origin.POLL]) for _ in range(4)]
        chosen = self.some(2) * 2
        tell = [self.chance.choice([rivals.success, rivals.success, rivals.failure]) for _ in chosen]
        news = [say(task_id, origin) for say, task_id, origin in zip(tell, chosen, origins, strict=False)]
        await self.at_once(*(self.verbs.advance.advance(each) for each in news))

    async def settle(self) -> None:
        ends = [
            rivals.ending(task_id, attempt=1, source=State.ARCHIVING, pictures=1)
            for task_id in self.some(3) * 2
        ]
        await self.at_once(*(self.verbs.settle.settle(end) for end in ends))

    async def end_waiting(self) -> None:
        ends = [rivals.ending(task_id, attempt=0, source=State.QUEUED) for task_id in self.some(1)]
        await self.at_once(*(self.verbs.settle.settle(end) for end in ends))

    async def cancel(self) -> None:
        chosen = self.some(2, among=8)
        await self.at_once(*(self.verbs.cancel.cancel(self.known[one], one) for one in chosen))

    async def sweep(self) -> None:
        await self.at_once(self.world.graph.sweep.wake(), self.world.graph.check.claim(PROVIDER, 8))

    async def work(self) -> None:
        """Do one thing after the other until enough was done."""
        ways: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.submit, 5),
            (self.claim, 5),
            (self.tell, 4),
            (self.settle, 4),
            (self.end_waiting, 1),
            (self.cancel, 2),
            (self.sweep, 1),
        ]
        verbs, weights = zip(*ways, strict=True)
        while self.left > 0:
            (verb,) = self.chance.choices(verbs, weights)
            await verb()
            self.done[verb.__name__] += 1


async def test_two_thousand_mixed_operations_meet_no_deadlock_and_leave_true_books(world: World) -> None:
    account_ids = [world.account_id]
    async with world.database.transaction() as connection:
        for name in ("second", "third"):
            account_ids.append(await accounts.create_account(connection, name))
            await ledger.grant(connection, account_ids[-1], 1_000)
    processes = [Verbs(world, world.database), Verbs(world, world.database)]
    crowd = Crowd(world, processes, account_ids, random.Random(20))
    workers = [asyncio.create_task(crowd.work()) for _ in range(WORKERS)]
    try:
        await asyncio.gather(*workers)
    except asyncpg.DeadlockDetectedError as error:
        raise AssertionError(f"a deadlock came through: {error.detail}") from error
    assert {"submit", "claim", "tell", "settle", "cancel", "sweep"} <= crowd.done.keys()
    assert await world.value("SELECT count(*) FROM tasks WHERE state = 'succeeded'") > 20
    assert await world.value("SELECT count(*) FROM tasks WHERE state = 'canceled'") > 0
    assert await world.value("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 0
