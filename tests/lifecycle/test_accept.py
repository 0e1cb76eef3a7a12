"""Accept: one key, one task, one hold; and taking it back."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from safelight.db import accounts, ledger
from safelight.domain.ids import new_id
from safelight.domain.provider import Capabilities, Origin, ProviderUpdate, Submission
from safelight.domain.task import State
from safelight.errors import RequestError
from safelight.lifecycle.accept import Accept, Wish
from tests.lifecycle.invariants import assert_books, fingerprint, history
from tests.lifecycle.upstreams import (
    Scripted,
    accepted,
    call_back,
    done,
    install,
    record_of,
    run_task,
    signed,
    token_of,
)
from tests.world import Server, World, running_world


def wish_of(world: World, key: str = "one key", **more: Any) -> Wish:
    model = world.graph.context.catalog.find("lab-callback")
    assert model is not None
    values: dict[str, Any] = {
        "account_id": world.account_id,
        "key": key,
        "fingerprint": b"f" * 32,
        "model": model,
        "operation": "generate",
        "prompt": "a red shoe",
        "size": "64x64",
    }
    return Wish(**{**values, **more})


def receipt_key(wish: Wish) -> tuple[UUID, str, bytes]:
    return wish.account_id, wish.key, wish.fingerprint


async def rows_made(world: World) -> int:
    return int(
        await world.value(
            "SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM entries) + (SELECT count(*) FROM receipts)"
            " + (SELECT count(*) FROM task_events) + (SELECT count(*) FROM pgqueuer.pgqueuer)"
        )
    )


async def test_an_accepted_task_has_its_hold_receipt_event_and_permit_together(world: World) -> None:
    made = await world.accept.accept(wish_of(world, n=3))
    task = await world.task(made.task_id)
    assert (task.state, task.held, task.unit_price, task.n) == (State.QUEUED, 3, 1, 3)
    assert await world.balance() == (997, 3)
    assert await history(world, made.task_id) == ["queued"]
    jobs = await world.rows("SELECT entrypoint, payload FROM pgqueuer.pgqueuer")
    assert [(job["entrypoint"], bytes(job["payload"])) for job in jobs] == [("submit", b"lab-callback")]
    receipt = json.loads(made.body)
    assert list(receipt) == ["id", "status", "credits", "created_at"]
    assert (receipt["id"], receipt["status"]) == (str(made.task_id), "processing")
    assert receipt["credits"] == {"held": 3, "captured": 0, "released": 0}


async def test_a_repeated_key_gets_the_same_bytes_and_makes_nothing(world: World) -> None:
    first = await world.accept.accept(wish_of(world))
    assert not first.is_replayed
    before = await fingerprint(world)
    again = await world.accept.accept(wish_of(world))
    found = await world.accept.find_receipt(*receipt_key(wish_of(world)))
    assert again.is_replayed
    assert (again.task_id, again.body) == (first.task_id, first.body)
    assert found == again
    assert await fingerprint(world) == before


async def test_a_replay_needs_neither_credits_nor_an_open_task(world: World) -> None:
    first = await world.accept.accept(wish_of(world, n=10))
    async with world.database.transaction() as connection:
        await ledger.grant(connection, world.account_id, -990)
    assert await world.balance() == (0, 10)
    assert (await world.accept.accept(wish_of(world, n=10))).body == first.body
    await world.cancel.cancel(world.account_id, first.task_id)
    assert (await world.accept.accept(wish_of(world, n=10))).body == first.body


async def test_another_body_under_a_used_key_is_refused_and_changes_nothing(world: World) -> None:
    first = await world.accept.accept(wish_of(world))
    before = await fingerprint(world)
    other = wish_of(world, fingerprint=b"g" * 32, prompt="a blue shoe")
    with pytest.raises(RequestError) as refused:
        await world.accept.accept(other)
    assert (refused.value.status, refused.value.problem_code) == (422, "idempotency-key-reused")
    assert str(first.task_id) not in refused.value.detail
    with pytest.raises(RequestError):
        await world.accept.find_receipt(*receipt_key(other))
    assert await fingerprint(world) == before


async def test_a_key_belongs_to_its_account_and_its_case_counts(world: World) -> None:
    other_id = await other_account(world)
    made = [
        await world.accept.accept(wish_of(world, key="Key")),
        await world.accept.accept(wish_of(world, key="key")),
        await world.accept.accept(wish_of(world, key="Key", account_id=other_id)),
    ]
    assert len({one.task_id for one in made}) == 3
    assert not any(one.is_replayed for one in made)


async def test_too_few_credits_leave_nothing_and_the_key_stays_free(world: World) -> None:
    poor_id = await other_account(world, granted=2)
    before = await fingerprint(world)
    wish = wish_of(world, account_id=poor_id, n=3)
    for _ in range(2):
        with pytest.raises(RequestError) as refused:
            await world.accept.accept(wish)
        assert (refused.value.status, refused.value.problem_code) == (402, "insufficient-credits")
    assert await fingerprint(world) == before
    async with world.database.transaction() as connection:
        await ledger.grant(connection, poor_id, 1)
    assert not (await world.accept.accept(wish)).is_replayed


async def test_fifty_submits_at_once_with_one_key_make_one_task(world: World) -> None:
    made = await asyncio.gather(*(world.accept.accept(wish_of(world)) for _ in range(50)))
    assert len({one.body for one in made}) == 1
    assert sum(not one.is_replayed for one in made) == 1
    assert await world.value("SELECT count(*) FROM tasks") == 1
    assert await world.balance() == (999, 1)


async def test_one_key_at_once_through_two_doors_makes_one_task(world: World) -> None:
    """Two processes do not share a batch: only the account's lock and the unique key stand between them."""
    doors = [Accept(world.database, world.graph.settings) for _ in range(4)]
    made = await asyncio.gather(*(door.accept(wish_of(world)) for door in doors for _ in range(5)))
    assert len({one.body for one in made}) == 1
    assert await world.value("SELECT count(*) FROM tasks") == 1


async def test_twenty_submits_at_once_on_the_last_credit_make_exactly_one_task(world: World) -> None:
    poor_id = await other_account(world, granted=1)
    doors = [Accept(world.database, world.graph.settings) for _ in range(4)]
    wishes = [wish_of(world, account_id=poor_id, key=f"key-{number}") for number in range(20)]
    results = await asyncio.gather(
        *(doors[place % 4].accept(wish) for place, wish in enumerate(wishes)), return_exceptions=True
    )
    refused = [one for one in results if isinstance(one, RequestError)]
    assert len(refused) == 19
    assert {one.status for one in refused} == {402}
    (left,) = await world.rows("SELECT available, held FROM accounts WHERE id = $1", poor_id)
    assert tuple(left) == (0, 1)


async def test_a_poisoned_submit_fails_alone_and_takes_no_other_with_it(world: World) -> None:
    wishes = [wish_of(world, key=f"key-{number}") for number in range(10)]
    wishes[4] = replace(wishes[4], prompt="a NUL \x00 inside")
    results = await asyncio.gather(*(world.accept.accept(wish) for wish in wishes), return_exceptions=True)
    assert isinstance(results[4], asyncpg.PostgresError)
    assert [place for place, one in enumerate(results) if isinstance(one, BaseException)] == [4]
    assert await world.value("SELECT count(*) FROM tasks") == 9
    assert await world.balance() == (991, 9)


async def test_one_batch_decides_each_submit_by_itself(world: World) -> None:
    poor_id = await other_account(world, granted=0)
    first = await world.accept.accept(wish_of(world, key="used"))
    results = await asyncio.gather(
        world.accept.accept(wish_of(world, key="new")),
        world.accept.accept(wish_of(world, key="used")),
        world.accept.accept(wish_of(world, key="used", fingerprint=b"x" * 32)),
        world.accept.accept(wish_of(world, key="new", account_id=poor_id)),
        world.accept.accept(wish_of(world, key="new", account_id=new_id())),
        return_exceptions=True,
    )
    statuses = [one.status if isinstance(one, RequestError) else 202 for one in results]
    assert statuses == [202, 202, 422, 402, 404]
    assert getattr(results[1], "body", None) == first.body


async def test_an_expired_key_is_new_again(world: World) -> None:
    first = await world.accept.accept(wish_of(world))
    await world.cancel.cancel(world.account_id, first.task_id)
    await world.pass_time(days=29, hours=23)
    assert (await world.accept.accept(wish_of(world))).is_replayed
    await world.pass_time(hours=2)
    assert await world.accept.find_receipt(*receipt_key(wish_of(world))) is None
    second = await world.accept.accept(wish_of(world, fingerprint=b"z" * 32))
    assert not second.is_replayed
    assert second.task_id != first.task_id


async def test_too_many_open_tasks_are_refused_until_one_has_ended(server: Server) -> None:
    async with running_world(server, max_open_tasks=2) as world:
        made = [await world.submit() for _ in range(2)]
        with pytest.raises(RequestError) as refused:
            await world.submit()
        assert (refused.value.status, refused.value.retry_after_s) == (429, 5)
        await world.cancel.cancel(world.account_id, made[0])
        await world.submit()
        await assert_books(world)


async def test_a_price_is_frozen_when_the_task_is_accepted(world: World) -> None:
    model = world.graph.context.catalog.find("lab-callback")
    assert model is not None
    made = await world.accept.accept(wish_of(world, model=replace(model, price=5), n=2))
    await world.accept.accept(wish_of(world, key="later", model=replace(model, price=7)))
    install(world, Scripted("lab-callback", submit_does=_drawn))
    await world.dispatch()
    await world.archive_all()
    (settled,) = await world.rows(
        "SELECT captured, released FROM settlements WHERE task_id = $1", made.task_id
    )
    assert tuple(settled) == (5, 5)


async def test_a_waiting_task_is_canceled_at_once_and_released(world: World) -> None:
    task_id = await world.submit(n=4)
    assert await world.cancel.cancel(world.account_id, task_id) == "canceled"
    assert await world.state(task_id) is State.CANCELED
    assert await world.balance() == (1_000, 0)
    await world.dispatch()
    assert (await world.lab_ledger())["accepted"] == 0


async def test_a_retrying_task_is_canceled_at_once_and_not_sent_again(world: World) -> None:
    await world.knobs(rate_limit=1)
    task_id = await run_task(world)
    assert await world.state(task_id) is State.RETRYING
    assert await world.cancel.cancel(world.account_id, task_id) == "canceled"
    await world.knobs(rate_limit=0)
    await world.pass_time(seconds=120)
    await world.dispatch()
    assert await world.balance() == (1_000, 0)
    assert (await world.lab_ledger())["accepted"] == 0


async def test_a_running_task_is_canceled_when_the_provider_confirms_it(world: World) -> None:
    await world.knobs(latency_s=[60, 60])
    task_id = await run_task(world)
    assert await world.cancel.cancel(world.account_id, task_id) == "requested"
    assert await world.state(task_id) is State.RUNNING
    assert await world.balance() == (999, 1)
    assert await world.look() == 1, "the provider is asked at once"
    assert await world.state(task_id) is State.CANCELED
    assert await world.balance() == (1_000, 0)
    (item,) = (await world.lab_ledger())["items"]
    assert (item["outcome"], item["billed"]) == ("canceled", 0)


async def test_a_cancel_that_comes_too_late_upstream_lets_the_task_finish(world: World) -> None:
    task_id = await run_task(world)
    await world.until_drawn()
    assert await world.cancel.cancel(world.account_id, task_id) == "requested"
    await world.look()
    assert await world.state(task_id) is State.ARCHIVING
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert await world.balance() == (999, 0)


async def test_a_cancel_during_the_submit_is_asked_for_as_soon_as_the_answer_is_there(world: World) -> None:
    task_id = await world.submit()

    async def submit(submission: Submission) -> ProviderUpdate:
        assert await world.cancel.cancel(world.account_id, task_id) == "requested"
        return accepted(submission.reference)

    provider = install(
        world, Scripted("lab-callback", Capabilities(can_cancel=True, calls_back=True), submit, cancels=True)
    )
    await world.dispatch()
    assert await world.state(task_id) is State.RUNNING
    assert await world.look() == 1, "the wish waits for the first look instead of being asked at once"
    assert provider.cancel_calls == 1
    assert await world.state(task_id) is State.CANCELED


async def test_a_cancel_stops_further_attempts(world: World) -> None:
    await world.knobs(fail=1)
    task_id = await run_task(world)
    await world.until_drawn()
    await world.cancel.cancel(world.account_id, task_id)
    await world.look()
    assert await world.state(task_id) is State.CANCELED
    assert await world.value("SELECT count(*) FROM attempts") == 1


async def test_archiving_review_and_ended_tasks_cannot_be_canceled(world: World) -> None:
    task_id = await run_task(world)
    await world.until_drawn()
    provider_ref = (await world.attempt(task_id)).provider_ref
    assert provider_ref is not None
    await call_back(world, token_of(world, task_id), signed(await record_of(world, provider_ref)))
    assert await world.state(task_id) is State.ARCHIVING
    await assert_not_cancelable(world, task_id)
    await world.archive_all()
    await assert_not_cancelable(world, task_id)

    provider = install(world, Scripted("lab-poll", submit_does=None))
    reviewed_id = await run_task(world, "lab-poll")
    await world.pass_time(seconds=301)
    await world.look("lab-poll")
    assert provider.polls == 1
    assert await world.state(reviewed_id) is State.REVIEW
    await assert_not_cancelable(world, reviewed_id)


async def test_a_foreign_task_and_a_missing_one_are_answered_alike(world: World) -> None:
    task_id = await world.submit()
    other_id = await other_account(world)
    answers = []
    for account_id, wanted in ((other_id, task_id), (world.account_id, new_id()), (new_id(), task_id)):
        with pytest.raises(RequestError) as refused:
            await world.cancel.cancel(account_id, wanted)
        answers.append((refused.value.status, refused.value.problem_code, refused.value.detail))
    assert set(answers) == {(404, "not-found", "There is no such task.")}
    assert await world.state(task_id) is State.QUEUED


async def test_cancel_and_claim_at_once_end_in_one_of_two_ways(world: World) -> None:
    for _ in range(5):
        task_id = await world.submit()
        answer, claims = await asyncio.gather(
            world.cancel.cancel(world.account_id, task_id), world.graph.dispatch.claim("lab-callback", 1)
        )
        if answer == "canceled":
            assert claims.items == []
        else:
            await world.graph.dispatch.send(claims.items[0])
        assert await world.state(task_id) in (State.CANCELED, State.RUNNING)


async def assert_not_cancelable(world: World, task_id: UUID) -> None:
    before = await fingerprint(world)
    with pytest.raises(RequestError) as refused:
        await world.cancel.cancel(world.account_id, task_id)
    assert (refused.value.status, refused.value.problem_code) == (409, "not-cancelable")
    assert await fingerprint(world) == before


async def other_account(world: World, granted: int = 100) -> UUID:
    async with world.database.transaction() as connection:
        account_id = await accounts.create_account(connection, f"other-{new_id()}")
        if granted:
            await ledger.grant(connection, account_id, granted)
    return account_id


async def _drawn(submission: Submission) -> ProviderUpdate:
    return done(origin=Origin.ANSWER, provider_ref=f"up.{submission.reference}")
