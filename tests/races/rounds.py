"""One round of each race: at the exact wait point, in the order that is asked for; nothing is left waiting."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from safelight.assets.store import AssetStore
from safelight.db import accounts, ledger
from safelight.domain.audit import Actor
from safelight.domain.news import Verdict
from safelight.domain.provider import Origin
from safelight.domain.review import Choice
from safelight.domain.task import ReviewReason, State
from safelight.errors import RequestError, StaleAttempt
from safelight.lifecycle.accept import Accepted, Wish
from safelight.lifecycle.advance import News
from safelight.lifecycle.attach import Attach
from safelight.lifecycle.once import Once
from safelight.lifecycle.review import Review, Ruling
from tests.lifecycle.reviews import to_review
from tests.races import rivals
from tests.races.rivals import PROVIDER, Verb, Verbs, race
from tests.world import World

Round = Callable[[World, int, bool], Awaitable[None]]
"""Runs one race once; the number makes its keys its own, and the flag swaps who comes first."""

FAIL: dict[str, Any] = {"reason_code": "no_result"}


def wish(world: World, key: str, **other: object) -> Wish:
    model = world.graph.context.catalog.find(PROVIDER)
    assert model is not None
    values = {"account_id": world.account_id, "key": key, "fingerprint": bytes(32), "model": model}
    return Wish(**{**values, "operation": "generate", "prompt": "a red shoe", "size": "64x64", **other})  # type: ignore[arg-type]  # a mixed dictionary


def accepting(one: Wish) -> Verb:
    async def accept(verbs: Verbs) -> Accepted:
        return await verbs.accept.accept(one)

    return accept


def settling(task_id: UUID, *, attempt: int, source: State, pictures: int = 0) -> Verb:
    async def settle(verbs: Verbs) -> State:
        end = rivals.ending(task_id, attempt=attempt, source=source, pictures=pictures)
        return await verbs.settle.settle(end)

    return settle


def canceling(world: World, task_id: UUID) -> Verb:
    async def cancel(verbs: Verbs) -> str:
        return await verbs.cancel.cancel(world.account_id, task_id)

    return cancel


def telling(news: News) -> Verb:
    async def advance(verbs: Verbs) -> Verdict:
        return await verbs.advance.advance(news)

    return advance


def deciding(
    world: World, ruling: Ruling, who: str, *, once: Once | None = None, store: AssetStore | None = None
) -> Verb:
    """One person's decision, in a process of its own."""

    async def decide(verbs: Verbs) -> dict[str, Any]:
        context = world.graph.context
        attach = Attach(store or context.store, context.pictures, context.fetcher, max_bytes=1_000_000)
        review = Review(verbs.database, attach, context.routing, start_by_s=60.0)
        answer = await review.decide(ruling, Actor(who), once)
        return {**json.loads(answer.body), "is_replayed": answer.is_replayed}

    return decide


async def in_review(world: World) -> tuple[Any, int]:
    """A task in review, and the version that a person sees."""
    task_id = await rivals.running(world)
    await to_review(world, task_id, ReviewReason.DEADLINE)
    return task_id, (await world.task(task_id)).version


async def endings(world: World, task_id: UUID) -> list[str]:
    """Every terminal move of a task."""
    rows = await world.rows(
        "SELECT target FROM task_events WHERE task_id = $1"
        " AND target IN ('succeeded', 'failed', 'blocked', 'canceled')",
        task_id,
    )
    return [row["target"] for row in rows]


async def settle_and_settle(world: World, _: int, is_swapped: bool) -> None:
    """A success and a failure: the first settles, the second is stale."""
    task_id = await rivals.archiving(world, n=2)
    before = await world.balance()
    good = settling(task_id, attempt=1, source=State.ARCHIVING, pictures=2)
    bad = settling(task_id, attempt=1, source=State.ARCHIVING)
    won, lost = await race(world, *((bad, good) if is_swapped else (good, bad)))
    assert won is (State.FAILED if is_swapped else State.SUCCEEDED)
    assert isinstance(lost, StaleAttempt)
    assert await world.state(task_id) is won
    assert await endings(world, task_id) == [won.value]
    released = 2 if is_swapped else 0
    assert await world.balance() == (before[0] + released, before[1] - 2)


async def settle_and_cancel(world: World, _: int, is_swapped: bool) -> None:
    """An ending and a cancel of a waiting task: the first counts."""
    before = await world.balance()
    task_id = await world.submit(PROVIDER)
    settle = settling(task_id, attempt=0, source=State.QUEUED)
    cancel = canceling(world, task_id)
    if is_swapped:
        won, lost = await race(world, cancel, settle)
        assert won == "canceled"
        assert isinstance(lost, StaleAttempt)
        assert await endings(world, task_id) == ["canceled"]
    else:
        won, lost = await race(world, settle, cancel)
        assert won is State.FAILED
        assert isinstance(lost, RequestError)
        assert (lost.status, lost.problem_code) == (409, "not-cancelable")
        assert await endings(world, task_id) == ["failed"]
    assert await world.balance() == before


async def accept_and_accept(world: World, number: int, is_swapped: bool) -> None:
    """Two bodies under one key: the first is accepted, the second refused; sent again the first is replayed."""
    one = wish(world, f"same-{number}-{is_swapped}", n=1, fingerprint=b"1" * 32)
    two = wish(world, f"same-{number}-{is_swapped}", n=2, fingerprint=b"2" * 32)
    pair = (two, one) if is_swapped else (one, two)
    first, second = await race(world, *(accepting(each) for each in pair))
    assert isinstance(first, Accepted)
    assert isinstance(second, RequestError)
    assert second.status == 422
    assert (await world.task(first.task_id)).n == pair[0].n
    again = await world.accept.accept(pair[0])
    assert (again.is_replayed, again.body) == (True, first.body)
    assert await world.cancel.cancel(world.account_id, first.task_id) == "canceled"


async def callback_and_poll(world: World, number: int, is_swapped: bool) -> None:
    """The same news twice: the first is applied, the second a duplicate."""
    is_success = number % 2 == 0
    tell = rivals.success if is_success else rivals.failure
    task_id = await rivals.running(world)
    pair = [telling(tell(task_id, origin)) for origin in (Origin.CALLBACK, Origin.POLL)]
    first, second = await race(world, *(reversed(pair) if is_swapped else pair))
    assert (first, second) == (Verdict.APPLIED, Verdict.DUPLICATE)
    assert await world.state(task_id) is (State.ARCHIVING if is_success else State.FAILED)
    verdicts = await world.rows("SELECT verdict FROM callbacks WHERE task_id = $1", task_id)
    assert [row["verdict"] for row in verdicts] == ["duplicate" if is_swapped else "applied"]


async def review_and_news(world: World, number: int, is_swapped: bool) -> None:
    """A person gives a task up while news of it comes: the first counts."""
    is_success = number % 2 == 0
    task_id, version = await in_review(world)
    decide = deciding(world, Ruling(task_id, version, Choice.FAIL_AND_RELEASE, **FAIL), "admin:anna")
    news = telling((rivals.success if is_success else rivals.failure)(task_id, Origin.CALLBACK))
    if is_swapped:
        verdict, lost = await race(world, news, decide)
        assert verdict is Verdict.APPLIED
        assert isinstance(lost, RequestError)
        assert (lost.status, lost.problem_code) == (409, "not-in-review")
        assert await world.state(task_id) is (State.ARCHIVING if is_success else State.FAILED)
        return
    made, verdict = await race(world, decide, news)
    assert (made["state"], verdict) == ("failed", Verdict.OUT_OF_ORDER)
    orphans = await world.value("SELECT count(*) FROM findings WHERE task_id = $1", task_id)
    assert orphans == (1 if is_success else 0)
    code = await world.value("SELECT failure_code FROM tasks WHERE id = $1", task_id)
    assert code == "no_result"


async def hold_and_hold(world: World, number: int, is_swapped: bool) -> None:
    """Two tasks want the last credit: the first holds it."""
    async with world.database.transaction() as connection:
        account_id = await accounts.create_account(connection, f"poor {number} {is_swapped}")
        await ledger.grant(connection, account_id, 1)
    pair = [accepting(wish(world, key, account_id=account_id)) for key in ("one", "two")]
    first, second = await race(world, *(reversed(pair) if is_swapped else pair))
    assert isinstance(first, Accepted)
    assert isinstance(second, RequestError)
    assert (second.status, second.problem_code) == (402, "insufficient-credits")
    rows = await world.rows("SELECT available, held FROM accounts WHERE id = $1", account_id)
    assert [tuple(row) for row in rows] == [(0, 1)]
    assert await world.cancel.cancel(account_id, first.task_id) == "canceled"


ROUNDS: dict[str, Round] = {
    "settle∥settle": settle_and_settle,
    "settle∥cancel": settle_and_cancel,
    "accept∥accept": accept_and_accept,
    "callback∥poll": callback_and_poll,
    "review∥news": review_and_news,
    "hold∥hold": hold_and_hold,
}
