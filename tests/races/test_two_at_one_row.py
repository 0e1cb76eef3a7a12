"""Two verbs meet at one row, in both orders, at the very moment when one holds what the other waits for."""

from __future__ import annotations

from uuid import UUID

import pytest

from safelight.db import tasks
from safelight.domain.ids import new_id
from safelight.domain.news import Verdict
from safelight.domain.provider import Origin
from safelight.domain.task import State
from safelight.errors import RequestError, StaleAttempt
from safelight.lifecycle.dispatch import Claims
from tests.races import rivals, rounds
from tests.races.rivals import PROVIDER, REPETITIONS, Verb, Verbs, race
from tests.races.rounds import accepting, canceling, endings, settling, telling, wish
from tests.world import World

both_orders = pytest.mark.parametrize("is_swapped", [False, True], ids=["in order", "the other way round"])


async def claiming(verbs: Verbs) -> Claims:
    return await verbs.dispatch.claim(PROVIDER, 64)


@both_orders
@pytest.mark.parametrize("name", rounds.ROUNDS)
async def test_of_two_at_one_row_the_first_counts(world: World, name: str, is_swapped: bool) -> None:
    for number in range(REPETITIONS):
        await rounds.ROUNDS[name](world, number, is_swapped)


async def test_the_same_settlement_twice_captures_once(world: World) -> None:
    for _ in range(REPETITIONS):
        task_id = await rivals.archiving(world)
        verb = settling(task_id, attempt=1, source=State.ARCHIVING, pictures=1)
        won, lost = await race(world, verb, verb)
        assert won is State.SUCCEEDED
        assert isinstance(lost, StaleAttempt)
        assert await world.value("SELECT count(*) FROM assets WHERE task_id = $1", task_id) == 1
        assert await world.value("SELECT captured FROM settlements WHERE task_id = $1", task_id) == 1


@both_orders
async def test_a_task_being_copied_is_settled_and_its_cancel_refused(world: World, is_swapped: bool) -> None:
    for _ in range(REPETITIONS):
        task_id = await rivals.archiving(world)
        settle = settling(task_id, attempt=1, source=State.ARCHIVING, pictures=1)
        cancel = canceling(world, task_id)
        results = (
            await race(world, settle, cancel)
            if not is_swapped
            else await _refused_first(world, cancel, settle)
        )
        assert State.SUCCEEDED in results
        (refused,) = [result for result in results if isinstance(result, RequestError)]
        assert refused.status == 409
        assert await endings(world, task_id) == ["succeeded"]


async def _refused_first(world: World, cancel: Verb, settle: Verb) -> tuple[object, object]:
    """A refused cancel holds its locks until its rollback; there is no commit to stand before."""
    verbs = Verbs(world, world.database)
    with pytest.raises(RequestError) as caught:
        await cancel(verbs)
    return caught.value, await settle(verbs)


async def test_of_two_submits_with_one_key_the_second_replays_the_first(world: World) -> None:
    for number in range(REPETITIONS):
        verb = accepting(wish(world, f"same-{number}"))
        first, second = await race(world, verb, verb)
        assert not first.is_replayed
        assert second.is_replayed
        assert (second.task_id, second.body) == (first.task_id, first.body)
    assert await world.value("SELECT count(*) FROM tasks") == REPETITIONS
    assert await world.balance() == (1_000 - REPETITIONS, REPETITIONS)


async def test_of_two_equal_callbacks_one_is_applied(world: World) -> None:
    for _ in range(REPETITIONS):
        task_id = await rivals.running(world)
        verb = telling(rivals.success(task_id, Origin.CALLBACK))
        assert await race(world, verb, verb) == (Verdict.APPLIED, Verdict.DUPLICATE)
        verdicts = await world.rows("SELECT verdict FROM callbacks WHERE task_id = $1 ORDER BY id", task_id)
        assert [row["verdict"] for row in verdicts] == ["applied", "duplicate"]


@both_orders
async def test_of_a_success_and_a_failure_from_upstream_the_first_counts(
    world: World, is_swapped: bool
) -> None:
    for _ in range(REPETITIONS):
        task_id = await rivals.running(world)
        pair = [
            telling(rivals.success(task_id, Origin.CALLBACK)),
            telling(rivals.failure(task_id, Origin.POLL)),
        ]
        first, second = await race(world, *(reversed(pair) if is_swapped else pair))
        assert (first, second) == (Verdict.APPLIED, Verdict.OUT_OF_ORDER)
        assert await world.state(task_id) is (State.FAILED if is_swapped else State.ARCHIVING)
        orphans = await world.value("SELECT count(*) FROM findings WHERE task_id = $1", task_id)
        assert orphans == (1 if is_swapped else 0)


@both_orders
async def test_a_callback_that_overtakes_the_answer_is_applied_and_the_answer_changes_nothing(
    world: World, is_swapped: bool
) -> None:
    for _ in range(REPETITIONS):
        (task_id,) = await rivals.claimed(world)
        pair = [telling(rivals.success(task_id, Origin.CALLBACK)), telling(rivals.accepted_news(task_id))]
        first, second = await race(world, *(reversed(pair) if is_swapped else pair))
        assert first is Verdict.APPLIED
        assert second is (Verdict.APPLIED if is_swapped else Verdict.OUT_OF_ORDER)
        assert await world.state(task_id) is State.ARCHIVING
        assert (await world.attempt(task_id)).provider_ref == f"ref-{task_id.hex}"


async def test_of_two_claims_the_second_waits_and_takes_what_is_left(world: World) -> None:
    for _ in range(REPETITIONS):
        ids = {await world.submit(PROVIDER) for _ in range(4)}

        async def claim_two(verbs: Verbs) -> Claims:
            return await verbs.dispatch.claim(PROVIDER, 2)

        first, second = await race(world, claim_two, claim_two)
        taken = [claim.task.id for claims in (first, second) for claim in claims.items]
        assert len(taken) == 4
        assert set(taken) == ids
        assert [claim.attempt.number for claim in first.items] == [1, 1]


async def test_a_task_is_claimed_once_even_without_the_providers_lock(world: World) -> None:
    async def claim_bare(verbs: Verbs) -> list[UUID]:
        async with verbs.database.transaction() as connection:
            found = await tasks.claim_fairest(
                connection, PROVIDER, calls_free=9, images_free=99, is_idle=False, answer_in_s=60.0
            )
        return [task.id for task, _ in found]

    for _ in range(REPETITIONS):
        task_id = await world.submit(PROVIDER)
        first, second = await race(world, claim_bare, claim_bare, is_waiting=False)
        assert first == [task_id]
        assert second == []
        assert await world.value("SELECT count(*) FROM attempts WHERE task_id = $1", task_id) == 1


async def test_a_look_is_claimed_once(world: World) -> None:
    async def look(verbs: Verbs) -> list[UUID]:
        async with verbs.database.transaction() as connection:
            found = await tasks.claim_looks(connection, PROVIDER, room=100, lease_s=60.0)
        return [task.id for task, _ in found]

    for _ in range(REPETITIONS):
        task_id = await rivals.running(world)
        await world.pass_time(hours=12)
        first, second = await race(world, look, look, is_waiting=False)
        assert task_id in first
        assert second == []
        await world.graph.advance.advance(rivals.failure(task_id, Origin.POLL))


async def test_a_cancel_that_waits_for_a_claim_becomes_a_wish(world: World) -> None:
    for _ in range(REPETITIONS):
        task_id = await world.submit(PROVIDER)
        claims, canceled = await race(world, claiming, canceling(world, task_id))
        assert [claim.task.id for claim in claims.items] == [task_id]
        assert canceled == "requested"
        task = await world.task(task_id)
        assert task.state is State.SUBMITTING
        assert task.cancel_requested_at is not None


async def test_a_claim_passes_by_a_task_that_is_being_canceled(world: World) -> None:
    for _ in range(REPETITIONS):
        task_id = await world.submit(PROVIDER)
        canceled, claims = await race(world, canceling(world, task_id), claiming, is_waiting=False)
        assert canceled == "canceled"
        assert claims.items == []
        assert await world.value("SELECT count(*) FROM attempts WHERE task_id = $1", task_id) == 0
        assert await world.state(task_id) is State.CANCELED


async def test_a_success_that_waits_for_a_cancel_still_brings_the_picture(world: World) -> None:
    for _ in range(REPETITIONS):
        task_id = await rivals.running(world)
        verb = telling(rivals.success(task_id, Origin.CALLBACK))
        canceled, verdict = await race(world, canceling(world, task_id), verb)
        assert canceled == "requested"
        assert verdict is Verdict.APPLIED
        assert await world.state(task_id) is State.ARCHIVING


async def test_a_cancel_that_waits_for_a_success_comes_too_late(world: World) -> None:
    for _ in range(REPETITIONS):
        task_id = await rivals.running(world)
        verb = telling(rivals.success(task_id, Origin.CALLBACK))
        verdict, refused = await race(world, verb, canceling(world, task_id))
        assert verdict is Verdict.APPLIED
        assert isinstance(refused, RequestError)
        assert refused.status == 409
        assert (await world.task(task_id)).cancel_requested_at is None


async def test_two_cancels_release_one_hold(world: World) -> None:
    for _ in range(REPETITIONS):
        task_id = await world.submit(PROVIDER, n=3, fingerprint=new_id().bytes * 2)
        verb = canceling(world, task_id)
        first, second = await race(world, verb, verb)
        assert first == "canceled"
        assert isinstance(second, RequestError)
        assert await world.balance() == (1_000, 0)
