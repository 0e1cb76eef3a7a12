"""One clock: whoever moves it moves every lease, deadline and expiry with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from safelight.db import accounts, gates, ledger, tasks
from safelight.db.database import Database
from safelight.db.queue import providers_with_due_tasks
from safelight.domain.ids import new_id
from safelight.lifecycle.accept import KEEP_KEY_S, ROUTE, Accept, Cancel, Wish
from safelight.settings import Settings
from tests.cli.books import MODEL

HOUR = timedelta(hours=1)


async def test_the_clock_is_the_servers_until_it_is_moved(database: Database) -> None:
    assert abs(await database.now() - datetime.now(UTC)) < timedelta(seconds=30)
    await database.shift_clock(3 * HOUR)
    await database.shift_clock(-HOUR)
    assert abs(await database.now() - datetime.now(UTC) - 2 * HOUR) < timedelta(seconds=30)
    assert (await database.now()).utcoffset() == timedelta(0)


async def test_the_clock_goes_on_within_a_transaction(database: Database) -> None:
    async with database.transaction() as connection:
        first = await connection.fetchval("SELECT clock_now()")
        second = await connection.fetchval("SELECT clock_now()")
        assert second > first
        assert await connection.fetchval("SELECT clock_now() = clock_now()")


async def _accept_one(database: Database) -> Wish:
    async with database.transaction() as connection:
        account_id = await accounts.create_account(connection, "default")
        await ledger.grant(connection, account_id, 100)
    wish = Wish(account_id, "key", new_id().bytes * 2, MODEL, "generate", "a red shoe")
    await Accept(database, Settings()).accept(wish)
    return wish


async def _claim(database: Database) -> int:
    async with database.transaction() as connection:
        claimed = await tasks.claim_fairest(
            connection, MODEL.provider, calls_free=9, images_free=9, is_idle=True, answer_in_s=60.0
        )
    return len(claimed)


async def _looks_due(database: Database, lease_s: float = 60.0) -> int:
    async with database.transaction() as connection:
        return len(await tasks.claim_looks(connection, MODEL.provider, room=9, lease_s=lease_s))


async def test_a_step_back_makes_a_task_wait_and_a_step_forward_lets_it_go(database: Database) -> None:
    await _accept_one(database)
    await database.shift_clock(-HOUR)
    assert await _claim(database) == 0
    await database.shift_clock(HOUR)
    assert await _claim(database) == 1


async def test_a_task_past_its_start_is_not_claimed_but_ended(database: Database) -> None:
    await _accept_one(database)
    await database.shift_clock(HOUR + timedelta(seconds=1))
    assert await _claim(database) == 0
    async with database.connection() as connection:
        assert len(await tasks.past_start(connection, room=9)) == 1


async def test_a_lease_ends_with_the_clock(database: Database) -> None:
    await _accept_one(database)
    await _claim(database)
    assert await _looks_due(database) == 0
    await database.shift_clock(timedelta(seconds=61))
    assert await _looks_due(database, lease_s=30.0) == 1
    assert await _looks_due(database) == 0
    await database.shift_clock(timedelta(seconds=31))
    assert await _looks_due(database) == 1


async def test_a_gate_opens_with_the_clock(database: Database) -> None:
    async with database.transaction() as connection:
        await gates.close_gate(
            connection, MODEL.provider, for_s=60.0, reason="rate_limited", is_failure=False
        )
        assert (await gates.lock_gate(connection, MODEL.provider)).is_closed
    await database.shift_clock(timedelta(seconds=61))
    async with database.transaction() as connection:
        assert not (await gates.lock_gate(connection, MODEL.provider)).is_closed


async def test_a_key_is_new_again_when_its_receipt_has_expired(database: Database) -> None:
    wish = await _accept_one(database)
    pair = (wish.account_id, wish.key)
    async with database.connection() as connection:
        receipt = (await tasks.find_receipts(connection, ROUTE, [pair]))[pair]
        assert not receipt.is_expired
    await database.shift_clock(timedelta(seconds=KEEP_KEY_S + 1))
    async with database.connection() as connection:
        # Its task is still open: the key is not free before the task has ended for a day.
        assert not (await tasks.find_receipts(connection, ROUTE, [pair]))[pair].is_expired
    await Cancel(database).cancel(wish.account_id, receipt.task_id)
    await database.shift_clock(25 * HOUR)
    async with database.connection() as connection:
        assert (await tasks.find_receipts(connection, ROUTE, [pair]))[pair].is_expired
    accepted = await Accept(database, Settings()).accept(wish)
    assert not accepted.is_replayed
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM tasks") == 2


async def test_what_is_due_is_due_by_the_clock(database: Database) -> None:
    await _accept_one(database)
    async with database.connection() as connection:
        assert await providers_with_due_tasks(connection, [MODEL.provider, "another"]) == [MODEL.provider]
        assert await providers_with_due_tasks(connection, [MODEL.provider], overdue_s=600.0) == []
    await database.shift_clock(timedelta(seconds=601))
    async with database.connection() as connection:
        assert await providers_with_due_tasks(connection, [MODEL.provider], overdue_s=600.0) == [
            MODEL.provider
        ]
