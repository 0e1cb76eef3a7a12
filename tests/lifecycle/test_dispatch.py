"""Dispatch: the intent first, within every limit, fair between accounts, and never twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from safelight.assets.store import staging_key
from safelight.db import accounts, ledger, tasks
from safelight.domain.ids import new_id
from safelight.domain.provider import Capabilities, ProviderUpdate, Submission
from safelight.domain.task import State
from safelight.errors import AssetError, ProviderRefused, ProviderUnavailable
from safelight.telemetry import set_fault_hook
from tests.lifecycle.invariants import history
from tests.lifecycle.upstreams import (
    Scripted,
    accepted,
    always,
    in_turn,
    install,
    not_sent,
    pass_until_due,
    run_task,
    token_of,
)
from tests.world import World

NAME = "lab-callback"


class KilledError(BaseException):
    """Stands for a death at a fault point: no code of ours catches it."""


@pytest.fixture
def no_fault_left() -> Iterator[None]:
    yield
    set_fault_hook(None)


async def claim(world: World, room: int = 64) -> list[UUID]:
    return [item.task.id for item in (await world.graph.dispatch.claim(NAME, room)).items]


async def account_of(world: World, name: str, granted: int = 100_000) -> UUID:
    async with world.database.transaction() as connection:
        account_id = await accounts.create_account(connection, name)
        await ledger.grant(connection, account_id, granted)
    return account_id


async def fill(world: World, account_id: UUID, count: int) -> None:
    """Put waiting tasks of one account into the database by the thousand."""
    model = world.graph.context.catalog.find(NAME)
    assert model is not None
    common: dict[str, Any] = {
        "account_id": account_id, "model": NAME, "operation": "generate", "prompt": "one of many", "n": 1,
        "size": "64x64", "aspect_ratio": None, "images": [], "options": {}, "metadata": {}, "priority": 0,
        "provider": NAME, "upstream_model": model.upstream_model, "unit_price": 1, "held": 1,
        "start_in_s": 3_600.0, "deadline_s": 300.0, "route": "POST /v1/tasks", "fingerprint": "00" * 32,
        "body": "{}", "keep_s": 86_400.0,
    }  # fmt: skip
    async with world.database.transaction() as connection:
        await ledger.lock_accounts(connection, [account_id])
        for start in range(0, count, 2_500):
            items = [
                {**common, "id": new_id(), "key": f"bulk-{number}"}
                for number in range(start, min(start + 2_500, count))
            ]
            await tasks.insert_accepted(connection, items)


async def test_the_intent_is_committed_before_the_provider_hears_of_it(world: World) -> None:
    seen: dict[str, Any] = {}

    async def submit(submission: Submission) -> ProviderUpdate:
        # Through a connection of its own: only what is committed can be seen here.
        (seen["task"],) = await world.rows("SELECT id, state, attempt FROM tasks")
        (seen["attempt"],) = await world.rows(
            "SELECT reference, sends, answer_by > clock_now() AS leased FROM attempts"
        )
        seen["busy"] = await world.value(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND state <> 'idle'"
        )
        return accepted(submission.reference)

    provider = install(world, Scripted(NAME, Capabilities(calls_back=True), submit))
    task_id = await run_task(world)
    assert (seen["task"]["state"], seen["task"]["attempt"]) == ("submitting", 1)
    assert (seen["attempt"]["sends"], seen["attempt"]["leased"]) == (1, True)
    assert seen["busy"] == 0, "a database connection is held during an outside call"
    (submission,) = provider.submissions
    assert submission.reference == seen["attempt"]["reference"] == f"{task_id.hex}-1"
    assert submission.callback_url == f"http://127.0.0.1:9/callbacks/{NAME}/{token_of(world, task_id)}"
    assert await world.state(task_id) is State.RUNNING


async def test_a_claim_and_its_answer_leave_a_lease_each(world: World) -> None:
    task_id = await world.submit()
    claims = await world.graph.dispatch.claim(NAME, 64)
    left_s = await world.value("SELECT extract(epoch FROM wake_at - clock_now())::float8 FROM tasks")
    assert 50 < left_s <= 60, "declared time-out plus 30 s"
    await world.graph.dispatch.send(claims.items[0])
    gap_s = await world.value("SELECT extract(epoch FROM wake_at - state_since)::float8 FROM tasks")
    assert 4 <= gap_s <= 8, "P95 plus uniform(0, P95)"
    assert await history(world, task_id) == ["queued", "submitting", "running"]


async def test_no_more_calls_are_in_flight_than_the_provider_allows(world: World) -> None:
    install(world, Scripted(NAME, Capabilities(max_calls=3)))
    for _ in range(5):
        await world.submit()
    first = await world.graph.dispatch.claim(NAME, 64)
    assert len(first.items) == 3
    again = await world.graph.dispatch.claim(NAME, 64)
    assert (again.items, again.is_limited) == ([], True)
    await world.graph.dispatch.send(first.items[0])
    assert len(await claim(world)) == 1


async def test_room_in_the_worker_limits_a_claim(world: World) -> None:
    for _ in range(3):
        await world.submit()
    assert await claim(world, room=0) == []
    assert len(await claim(world, room=2)) == 2
    assert len(await claim(world, room=2)) == 1


async def test_active_images_count_not_tasks(world: World) -> None:
    install(world, Scripted(NAME, Capabilities(max_active=5)))
    for n in (2, 2, 2, 1):
        await world.submit(n=n)
    assert len(await claim(world)) == 2, "2 + 2 fit, a third pair does not"
    await world.cancel.cancel(
        world.account_id, (await world.rows("SELECT id FROM tasks WHERE state = 'queued' AND n = 2"))[0]["id"]
    )
    assert len(await claim(world)) == 1, "the single one still fits"
    assert await world.value("SELECT sum(n) FROM tasks WHERE state = 'submitting'") == 5


async def test_a_task_larger_than_the_limit_goes_alone_when_nothing_else_is_active(world: World) -> None:
    install(world, Scripted(NAME, Capabilities(max_active=3)))
    large = await world.submit(n=8)
    await world.submit(n=1)
    assert await claim(world) == [large]
    assert await claim(world) == []


async def sent_ago(world: World, seconds: float) -> None:
    """Date every send, so that a slow machine does not age them."""
    await world.rows("UPDATE attempts SET sent_at = clock_now() - make_interval(secs => $1)", seconds)


async def test_no_more_submits_start_in_a_second_than_the_provider_allows(world: World) -> None:
    install(world, Scripted(NAME, Capabilities(calls_per_s=2)))
    for _ in range(5):
        await world.submit()
    assert len(await claim(world)) == 2
    await sent_ago(world, 0.0)
    assert await claim(world) == []
    await sent_ago(world, 1.1)
    assert len(await claim(world)) == 2


async def test_a_rate_below_one_a_second_is_kept_too(world: World) -> None:
    install(world, Scripted(NAME, Capabilities(calls_per_s=0.5)))
    for _ in range(3):
        await world.submit()
    assert len(await claim(world)) == 1
    await sent_ago(world, 1.1)
    assert await claim(world) == [], "one in two seconds was allowed"
    await sent_ago(world, 2.1)
    assert len(await claim(world)) == 1


async def test_ten_thousand_waiting_tasks_of_one_account_do_not_delay_another_s_first(world: World) -> None:
    crowd_id, single_id = await account_of(world, "crowd"), await account_of(world, "single")
    await fill(world, crowd_id, 10_000)
    late = await world.submit(account_id=single_id)
    assert late in await claim(world, room=2)
    later = await world.submit(account_id=single_id)
    first, second = await claim(world, room=1), await claim(world, room=1)
    assert later in first + second
    assert len(await claim(world, room=10)) == 10, "spare capacity still goes to the crowd"


async def test_accounts_take_turns_and_the_one_with_less_in_flight_goes_first(world: World) -> None:
    owner: dict[UUID, str] = {}
    for name in ("a", "b", "c"):
        account_id = await account_of(world, name)
        for _ in range(4):
            owner[await world.submit(account_id=account_id)] = name
    taken = [owner[task_id] for _ in range(6) for task_id in await claim(world, room=1)]
    assert sorted(taken[:3]) == sorted(taken[3:]) == ["a", "b", "c"]


async def test_priority_counts_within_one_account_only(world: World) -> None:
    other_id = await account_of(world, "other")
    low = await world.submit(priority=-10)
    old = await world.submit()
    urgent = await world.submit(priority=10)
    others = [await world.submit(account_id=other_id, priority=-10) for _ in range(2)]
    first = await claim(world, room=2)
    assert set(first) == {urgent, others[0]}
    assert set(await claim(world, room=2)) == {old, others[1]}
    assert await claim(world, room=2) == [low]


async def test_a_429_closes_the_provider_s_gate_and_uses_up_no_attempt(world: World) -> None:
    refusal = ProviderUnavailable("too many", reason="rate_limited", retry_after_s=120.0)

    async def submit(submission: Submission) -> ProviderUpdate:
        if len(provider.submissions) <= 7:
            raise refusal
        return accepted(submission.reference)

    provider = install(world, Scripted(NAME, submit_does=submit))
    task_id = await run_task(world)
    assert await world.state(task_id) is State.RETRYING
    await world.submit()
    assert await claim(world) == [], "the gate is closed for every task"
    await world.pass_time(seconds=119)
    assert await claim(world) == []
    for _ in range(7):
        await world.pass_time(seconds=121)
        await world.dispatch(room=1)
    attempt = await world.attempt(task_id)
    assert await world.state(task_id) is State.RUNNING
    assert (attempt.number, attempt.provider_ref) == (1, f"up.{attempt.reference}")
    assert attempt.throttled == attempt.sends - 1 >= 4


async def test_the_lab_s_429_is_honoured(world: World) -> None:
    await world.knobs(rate_limit=1)
    task_id = await run_task(world)
    attempt = await world.attempt(task_id)
    assert (await world.state(task_id), attempt.number, attempt.throttled) == (State.RETRYING, 1, 1)
    await world.knobs(rate_limit=0)
    gap_s = await world.value("SELECT extract(epoch FROM wake_at - state_since)::float8 FROM tasks")
    assert gap_s >= 0.99, "not before its Retry-After"
    await world.pass_time(seconds=3)
    await world.dispatch()
    assert await world.state(task_id) is State.RUNNING
    assert (await world.lab_ledger())["accepted"] == 1


async def test_an_absurd_retry_after_does_not_close_the_gate_for_days(world: World) -> None:
    refusal = ProviderUnavailable("too many", reason="rate_limited", retry_after_s=99_999.0)
    install(world, Scripted(NAME, submit_does=always(refusal)))
    await run_task(world)
    closed_s = await world.value(
        "SELECT extract(epoch FROM closed_until - clock_now())::float8 FROM gates WHERE name = $1", NAME
    )
    assert closed_s < 2


async def test_rejected_credentials_open_the_breaker_for_one_probe_at_a_time(world: World) -> None:
    rejected = ProviderUnavailable("401", reason="credentials", retry_after_s=30.0)
    good = asyncio.Event()

    async def submit(submission: Submission) -> ProviderUpdate:
        if not good.is_set():
            raise rejected
        return accepted(submission.reference)

    provider = install(world, Scripted(NAME, submit_does=submit))
    made = [await world.submit() for _ in range(4)]
    await world.dispatch(room=2)
    sent = len(provider.submissions)
    assert await claim(world) == [], "the breaker is open"
    await world.pass_time(seconds=100)
    probe = await world.graph.dispatch.claim(NAME, 64)
    assert len(probe.items) == 1
    assert await claim(world) == [], "one probe at a time"
    await world.graph.dispatch.send(probe.items[0])
    assert len(provider.submissions) == sent + 1
    good.set()
    await world.pass_time(seconds=200)
    await world.dispatch()
    assert {await world.state(task_id) for task_id in made} == {State.RUNNING}, "a good probe lets all pass"
    assert await world.value("SELECT failures FROM gates WHERE name = $1", NAME) == 0


@pytest.mark.parametrize("reason", ["credentials", "funds"])
async def test_tasks_wait_for_our_own_account_to_be_mended_until_their_start_by(
    world: World, reason: str
) -> None:
    """Design, section 5: an environment fault is retried and alerted; the task waits until `start_by`."""
    provider = install(world, Scripted(NAME, submit_does=always(ProviderUnavailable("no", reason=reason))))
    task_id = await world.submit()
    for _ in range(16):
        await world.pass_time(seconds=80)
        await world.dispatch()
    assert len(provider.submissions) >= 15
    assert await world.state(task_id) is State.RETRYING


async def test_what_was_never_sent_is_tried_five_times_an_attempt_and_three_attempts(world: World) -> None:
    provider = install(world, Scripted(NAME, submit_does=always(not_sent())))
    task_id = await world.submit()
    for _ in range(20):
        await world.pass_time(seconds=80)
        await world.dispatch()
    task = await world.task(task_id)
    assert task.state is State.FAILED
    references = [submission.reference for submission in provider.submissions]
    assert references == [f"{task_id.hex}-{number}" for number in (1, 2, 3) for _ in range(5)]
    (ending,) = await world.rows("SELECT failure_class, failure_code FROM tasks")
    assert tuple(ending) == ("environment", "provider_unavailable")
    assert await world.balance() == (1_000, 0)


async def test_a_retry_goes_out_under_the_same_reference(world: World) -> None:
    provider = install(
        world, Scripted(NAME, submit_does=in_turn(not_sent(), accepted("x", provider_ref="one")))
    )
    task_id = await run_task(world)
    assert await world.state(task_id) is State.RETRYING
    await world.pass_time(seconds=10)
    await world.dispatch()
    assert [submission.reference for submission in provider.submissions] == [f"{task_id.hex}-1"] * 2
    assert (await world.attempt(task_id)).sends == 2


async def test_a_refusal_of_the_input_ends_at_once_and_releases(world: World) -> None:
    refusal = ProviderRefused("no", failure_class="invalid_request", failure_code="bad_size")
    provider = install(world, Scripted(NAME, submit_does=always(refusal)))
    task_id = await run_task(world)
    assert await world.state(task_id) is State.FAILED
    assert len(provider.submissions) == 1
    assert await world.balance() == (1_000, 0)


async def test_a_block_is_final_and_is_not_sent_again(world: World) -> None:
    refusal = ProviderRefused("no", failure_class="content_blocked", failure_code="content_blocked")
    install(world, Scripted(NAME, submit_does=always(refusal)))
    task_id = await run_task(world)
    assert await world.state(task_id) is State.BLOCKED
    assert await world.balance() == (1_000, 0)


async def test_the_provider_s_own_failures_take_three_attempts(world: World) -> None:
    refusal = ProviderRefused("no", failure_class="upstream_fault", failure_code="generation_failed")
    provider = install(world, Scripted(NAME, submit_does=always(refusal)))
    task_id = await world.submit()
    for _ in range(5):
        await world.dispatch()
        await world.pass_time(seconds=80)
    assert await world.state(task_id) is State.FAILED
    assert [submission.reference[-2:] for submission in provider.submissions] == ["-1", "-2", "-3"]


async def test_a_claim_that_has_grown_old_is_not_sent(world: World) -> None:
    provider = install(world, Scripted(NAME))
    task_id = await world.submit()
    (item,) = (await world.graph.dispatch.claim(NAME, 1)).items
    await world.graph.dispatch.send(replace(item, claimed_at=item.claimed_at - 21))
    assert provider.submissions == []
    assert await world.state(task_id) is State.RETRYING
    await world.pass_time(seconds=5)
    await world.dispatch()
    assert await world.state(task_id) is State.RUNNING


async def test_our_own_slowness_does_not_open_the_provider_s_breaker(world: World) -> None:
    install(world, Scripted(NAME))
    await world.submit()
    (item,) = (await world.graph.dispatch.claim(NAME, 1)).items
    await world.graph.dispatch.send(replace(item, claimed_at=item.claimed_at - 21))
    assert await world.rows("SELECT name FROM gates WHERE failures > 0 OR closed_until > clock_now()") == []


async def test_two_claims_at_once_never_take_the_same_task(world: World) -> None:
    for _ in range(20):
        await world.submit()
    taken = await asyncio.gather(*(claim(world, room=8) for _ in range(5)))
    flat = [task_id for one in taken for task_id in one]
    assert len(flat) == len(set(flat)) == 20


@pytest.mark.usefixtures("no_fault_left")
async def test_pictures_inside_an_answer_are_staged_before_it_is_recorded(world: World) -> None:
    task_id = await world.submit("lab-sync", n=2)
    (item,) = (await world.graph.dispatch.claim("lab-sync", 1)).items

    def die(name: str) -> None:
        if name == "after_send":
            raise KilledError

    set_fault_hook(die)
    with pytest.raises(KilledError):
        await world.graph.dispatch.send(item)
    set_fault_hook(None)
    assert await world.state(task_id) is State.SUBMITTING
    store = world.graph.context.store
    assert [await store.exists(staging_key(task_id, 1, place)) for place in (0, 1)] == [True, True]

    await world.pass_time(seconds=95)
    await world.look("lab-sync")
    assert await world.state(task_id) is State.UNCERTAIN
    await pass_until_due(world, task_id)
    await world.look("lab-sync")
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert (await world.lab_ledger())["accepted"] == 1


async def test_a_picture_that_cannot_be_staged_is_asked_for_again_under_its_key(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = world.graph.context.store
    put, tries = store.put, 0

    async def full(key: str, data: bytes) -> None:
        nonlocal tries
        tries += 1
        raise AssetError("storage", "disk full", is_retryable=True)

    monkeypatch.setattr(store, "put", full)
    task_id = await run_task(world, "lab-sync")
    assert (await world.state(task_id), tries) == (State.UNCERTAIN, 1)
    assert (
        await world.value("SELECT count(*) FROM gates WHERE name = 'storage' AND closed_until > clock_now()")
        == 1
    )
    await world.submit("lab-poll")
    assert (await world.graph.dispatch.claim("lab-poll", 1)).items == [], "nothing is dispatched anywhere"
    monkeypatch.setattr(store, "put", put)
    await world.pass_time(seconds=5)
    await world.look("lab-sync")
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert (await world.lab_ledger())["accepted"] == 1
    assert len((await world.graph.dispatch.claim("lab-poll", 1)).items) == 1


async def test_a_long_storage_outage_does_not_use_up_the_sends_of_a_synchronous_attempt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = world.graph.context.store
    put = store.put

    async def full(key: str, data: bytes) -> None:
        raise AssetError("storage", "disk full", is_retryable=True)

    monkeypatch.setattr(store, "put", full)
    task_id = await run_task(world, "lab-sync")
    for _ in range(8):
        await pass_until_due(world, task_id)
        await world.look("lab-sync")
        if await world.state(task_id) is not State.UNCERTAIN:
            break
    assert await world.state(task_id) is State.UNCERTAIN, "our own outage is no question for a person"
    monkeypatch.setattr(store, "put", put)
    await world.pass_time(seconds=90)
    await world.look("lab-sync")
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED


async def test_a_task_that_did_not_start_in_time_is_not_claimed(world: World) -> None:
    await world.submit()
    await world.pass_time(seconds=3_601)
    assert await claim(world) == []


async def test_the_second_task_with_the_same_provider_ref_does_not_get_it(world: World) -> None:
    install(
        world, Scripted(NAME, Capabilities(calls_back=True), in_turn(accepted("x", provider_ref="same-id")))
    )
    first, second = await run_task(world), await run_task(world)
    assert (await world.attempt(first)).provider_ref == "same-id"
    assert (await world.attempt(second)).provider_ref is None
    findings = await world.rows("SELECT kind, task_id FROM findings")
    assert [tuple(row) for row in findings] == [("provider_ref_conflict", second)]
