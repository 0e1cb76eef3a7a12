"""Group commit: company shares a transaction, and nobody pays for another's trouble."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import asyncpg
import pytest

from safelight.db.database import Database
from safelight.db.group import CONFLICT_TRIES, MAX_BATCHES, MAX_ITEMS, Group
from safelight.db.statements import Connection
from safelight.errors import StaleAttempt

Verb = Callable[[Connection, Sequence[str]], Awaitable[Sequence[str | Exception]]]
PATIENCE_S = 60.0


@pytest.fixture
async def marked(database: Database) -> Database:
    """A database with a table whose rows tell the transaction that wrote them (xmin)."""
    async with database.connection() as connection:
        await connection.execute("CREATE TABLE marks (text text PRIMARY KEY, value int NOT NULL DEFAULT 0)")
    return database


async def mark(connection: Connection, items: Sequence[str]) -> Sequence[str | Exception]:
    """Write a row for each item; one called `stale…` is decided against, `poison…` breaks its batch."""
    if any(item.startswith("poison") for item in items):
        await connection.execute("INSERT INTO marks (text) SELECT unnest($1::text[])", list(items))
        raise ValueError(f"{len(items)} items with poison among them")
    good = [item for item in items if not item.startswith("stale")]
    await connection.execute("INSERT INTO marks (text) SELECT unnest($1::text[])", good)
    return [
        StaleAttempt(f"{item} has moved on") if item.startswith("stale") else item.upper() for item in items
    ]


async def together(group: Group[str, str], items: Sequence[str]) -> list[str | BaseException]:
    """Call for every item at once."""
    async with asyncio.timeout(PATIENCE_S):
        return await asyncio.gather(*(group.do(item) for item in items), return_exceptions=True)


async def transactions(database: Database) -> dict[str, str]:
    """Which transaction wrote which row."""
    async with database.connection() as connection:
        rows = await connection.fetch("SELECT text, xmin::text AS transaction FROM marks")
    return {row["text"]: row["transaction"] for row in rows}


async def test_concurrent_calls_share_a_transaction_and_each_gets_its_own_result(marked: Database) -> None:
    group: Group[str, str] = Group(marked, mark, name="test")
    items = [f"item-{number}" for number in range(200)]
    assert await together(group, items) == [item.upper() for item in items]
    found = await transactions(marked)
    assert found.keys() == set(items)
    assert len(set(found.values())) == 1


async def test_a_call_alone_is_committed_when_it_returns(marked: Database) -> None:
    group: Group[str, str] = Group(marked, mark, name="test")
    for item in ("first", "second"):
        assert await group.do(item) == item.upper()
        assert item in await transactions(marked)
    assert len(set((await transactions(marked)).values())) == 2


async def test_a_batch_has_a_largest_size(marked: Database) -> None:
    sizes: list[int] = []

    async def counting(connection: Connection, items: Sequence[str]) -> Sequence[str | Exception]:
        sizes.append(len(items))
        return await mark(connection, items)

    group: Group[str, str] = Group(marked, counting, name="test")
    items = [f"item-{number}" for number in range(2 * MAX_ITEMS + 1)]
    assert await together(group, items) == [item.upper() for item in items]
    assert sorted(sizes) == [1, MAX_ITEMS, MAX_ITEMS]


async def test_calls_that_come_meanwhile_share_the_next_transaction(marked: Database) -> None:
    entered = asyncio.Event()
    may_go = asyncio.Event()

    async def slow(connection: Connection, items: Sequence[str]) -> Sequence[str | Exception]:
        if "first" in items:
            entered.set()
            await may_go.wait()
        return await mark(connection, items)

    group: Group[str, str] = Group(marked, slow, name="test")
    first = asyncio.create_task(group.do("first"))
    await entered.wait()
    late = [f"late-{number}" for number in range(20)]
    assert await together(group, late) == [item.upper() for item in late]
    assert not first.done()
    may_go.set()
    assert await first == "FIRST"
    found = await transactions(marked)
    assert len({found[item] for item in late}) <= 2
    assert found["first"] not in {found[item] for item in late}


async def test_what_is_decided_against_reaches_its_own_caller_only(marked: Database) -> None:
    group: Group[str, str] = Group(marked, mark, name="test")
    results = await together(group, ["good", "stale", "better"])
    assert results[0::2] == ["GOOD", "BETTER"]
    assert isinstance(results[1], StaleAttempt)
    found = await transactions(marked)
    assert found.keys() == {"good", "better"}
    assert found["good"] == found["better"]


async def test_a_poisoned_item_fails_alone(marked: Database) -> None:
    group: Group[str, str] = Group(marked, mark, name="test")
    results = await together(group, ["good", "poison", "better", "stale"])
    assert results[0::2] == ["GOOD", "BETTER"]
    assert isinstance(results[1], ValueError)
    assert isinstance(results[3], StaleAttempt)
    assert (await transactions(marked)).keys() == {"good", "better"}


async def test_an_item_that_the_database_refuses_fails_alone(marked: Database) -> None:
    group: Group[str, str] = Group(marked, mark, name="test")
    assert await group.do("taken") == "TAKEN"
    results = await together(group, ["good", "taken", "better"])
    assert results[0::2] == ["GOOD", "BETTER"]
    assert isinstance(results[1], asyncpg.UniqueViolationError)
    assert (await transactions(marked)).keys() == {"taken", "good", "better"}


async def test_a_deadlock_is_tried_again(marked: Database) -> None:
    """Two verbs take two rows in opposite order, once: PostgreSQL ends one of them with 40P01."""
    async with marked.connection() as connection:
        await connection.execute("INSERT INTO marks (text) VALUES ('a'), ('b')")
    both_have_one = asyncio.Barrier(2)
    tries = {"ab": 0, "ba": 0}

    async def crossing(connection: Connection, items: Sequence[str]) -> Sequence[str | Exception]:
        (order,) = items
        tries[order] += 1
        await connection.execute("SET LOCAL deadlock_timeout = '50ms'")
        await connection.execute("UPDATE marks SET value = value + 1 WHERE text = $1", order[0])
        if tries[order] == 1:
            await both_have_one.wait()
        await connection.execute("UPDATE marks SET value = value + 1 WHERE text = $1", order[1])
        return [order.upper()]

    groups: list[Group[str, str]] = [Group(marked, crossing, name=f"test-{number}") for number in range(2)]
    async with asyncio.timeout(PATIENCE_S):
        results = await asyncio.gather(groups[0].do("ab"), groups[1].do("ba"))
    assert list(results) == ["AB", "BA"]
    assert sorted(tries.values()) == [1, 2]
    async with marked.connection() as connection:
        assert [row["value"] for row in await connection.fetch("SELECT value FROM marks")] == [2, 2]


async def test_a_conflict_that_never_ends_is_told_after_some_tries(marked: Database) -> None:
    tries = 0

    async def conflicting(connection: Connection, items: Sequence[str]) -> Sequence[str | Exception]:
        nonlocal tries
        tries += 1
        await connection.execute("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40P01'; END $$")
        return []

    group: Group[str, str] = Group(marked, conflicting, name="test")
    with pytest.raises(asyncpg.DeadlockDetectedError):
        await group.do("alone")
    assert tries == CONFLICT_TRIES


async def test_a_canceled_caller_neither_undoes_nor_delays_anything(marked: Database) -> None:
    entered = asyncio.Event()
    may_go = asyncio.Event()

    async def slow(connection: Connection, items: Sequence[str]) -> Sequence[str | Exception]:
        entered.set()
        await may_go.wait()
        return await mark(connection, items)

    group: Group[str, str] = Group(marked, slow, name="test")
    calls = {name: asyncio.create_task(group.do(name)) for name in ("patient", "canceled", "other")}
    await entered.wait()
    calls["canceled"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await calls["canceled"]
    may_go.set()
    async with asyncio.timeout(PATIENCE_S):
        assert await calls["patient"] == "PATIENT"
        assert await calls["other"] == "OTHER"
    assert (await transactions(marked)).keys() == {"patient", "canceled", "other"}
    assert await group.do("later") == "LATER"


async def test_a_caller_canceled_before_its_batch_began_holds_nobody_up(marked: Database) -> None:
    group: Group[str, str] = Group(marked, mark, name="test")
    first = asyncio.create_task(group.do("first"))
    second = asyncio.create_task(group.do("second"))
    await asyncio.sleep(0)
    first.cancel()
    async with asyncio.timeout(PATIENCE_S):
        assert await second == "SECOND"
        assert await group.do("third") == "THIRD"


async def test_without_a_database_everyone_learns_it_and_later_calls_work(marked: Database) -> None:
    group: Group[str, str] = Group(marked, mark, name="test")
    assert await group.do("before") == "BEFORE"
    name = marked.url.partition("?")[0].rpartition("/")[2]
    admin = await asyncpg.connect(marked.url.replace(f"/{name}?", "/postgres?"))
    await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
    results = await together(group, ["one", "two", "three"])
    assert [type(result) for result in results if not isinstance(result, Exception)] == []
    assert all(
        isinstance(result, asyncpg.PostgresError | asyncpg.InterfaceError | OSError) for result in results
    )
    await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    await admin.close()
    assert await together(group, ["after", "at last"]) == ["AFTER", "AT LAST"]
    assert (await transactions(marked)).keys() == {"before", "after", "at last"}


async def test_a_connection_cut_in_mid_batch_costs_nobody_the_result(marked: Database) -> None:
    """The batch was rolled back with its connection: its items are carried out one by one."""
    cuts = 0

    async def cut_once(connection: Connection, items: Sequence[str]) -> Sequence[str | Exception]:
        nonlocal cuts
        if len(items) > 1:
            cuts += 1
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return await mark(connection, items)

    group: Group[str, str] = Group(marked, cut_once, name="test")
    assert await together(group, ["one", "two", "three"]) == ["ONE", "TWO", "THREE"]
    assert cuts == 1
    assert len(set((await transactions(marked)).values())) == 3


class EndingTogether(Database):
    """Lets transactions return to their callers at one and the same moment, as two answers in one read do."""

    def __init__(self, url: str, count: int) -> None:
        super().__init__(url, pool_size=count + 1)
        self.count = count
        self._committed = 0
        self._all_committed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with super().transaction() as connection:
            yield connection
        self._committed += 1
        if self._committed == self.count:
            self._all_committed.set()
        await self._all_committed.wait()


async def test_a_call_made_while_every_batch_ends_is_carried_out(marked: Database) -> None:
    """It must not count on a batch that has found nothing more to do."""
    together_ending = EndingTogether(marked.url, MAX_BATCHES)
    await together_ending.open()
    entered = asyncio.Semaphore(0)

    async def announcing(connection: Connection, items: Sequence[str]) -> Sequence[str | Exception]:
        entered.release()
        return await mark(connection, items)

    group: Group[str, str] = Group(together_ending, announcing, name="test")

    once = [asyncio.create_task(group.do("once-0"))]
    await entered.acquire()
    for number in range(1, MAX_BATCHES - 1):
        once.append(asyncio.create_task(group.do(f"once-{number}")))
        await entered.acquire()

    async def twice() -> list[str]:
        return [await group.do("twice-1"), await group.do("twice-2")]

    async with asyncio.timeout(PATIENCE_S):
        assert await twice() == ["TWICE-1", "TWICE-2"]
        await asyncio.gather(*once)
    await together_ending.close()


async def test_a_verb_that_returns_too_few_results_leaves_nobody_waiting(marked: Database) -> None:
    async def forgetful(connection: Connection, items: Sequence[str]) -> Sequence[str | Exception]:
        return list(await mark(connection, items))[:1]

    group: Group[str, str] = Group(marked, forgetful, name="test")
    async with asyncio.timeout(PATIENCE_S):
        results = await asyncio.gather(group.do("one"), group.do("two"), return_exceptions=True)
    # The batch is rolled back before its commit, and each item done alone.
    assert list(results) == ["ONE", "TWO"]
