"""After a lost answer: never blindly twice, and always cleared up or shown to a person."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from safelight.domain.provider import AfterUncertain, Capabilities, Origin, Trust
from safelight.domain.task import State
from safelight.errors import ProviderError, ProviderRefused
from safelight.providers.declared import DeclaredProvider
from safelight.providers.loading import packaged_declaration
from safelight.upstreams import LAB_CREDENTIALS
from tests.lifecycle.invariants import assert_books, history
from tests.lifecycle.upstreams import (
    Scripted,
    accepted,
    always,
    call_back,
    done,
    failed,
    in_turn,
    install,
    lab_job,
    not_sent,
    pass_until_due,
    record_of,
    run_task,
    signed,
    token_of,
    uncertain,
)
from tests.world import Server, World, running_world

CALLS_BACK = Capabilities(calls_back=True, trust=Trust.BODY)
LOOKS_UP = Capabilities(after_uncertain=AfterUncertain.LOOK_UP)
HAS_KEYS = Capabilities(is_synchronous=True, can_poll=False, after_uncertain=AfterUncertain.SAME_KEY)


async def lose_answer(world: World, shape: str) -> UUID:
    await world.knobs(lose_answer=1)
    task_id = await run_task(world, shape)
    assert await world.state(task_id) is State.UNCERTAIN
    assert await world.balance() == (999, 1)
    return task_id


async def review_reason(world: World, task_id: UUID) -> str:
    return str(await world.value("SELECT review_reason FROM tasks WHERE id = $1", task_id))


async def test_with_keys_the_same_key_is_sent_again_and_nothing_is_generated_twice(world: World) -> None:
    task_id = await lose_answer(world, "lab-sync")
    await world.dispatch("lab-sync")
    assert await world.look("lab-sync") == 0, "not at once"
    await pass_until_due(world, task_id)
    assert await world.look("lab-sync") == 1
    assert await history(world, task_id) == ["queued", "submitting", "uncertain", "archiving"]
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    attempt = await world.attempt(task_id)
    assert (attempt.number, attempt.sends) == (1, 2)
    (item,) = (await world.lab_ledger())["items"]
    assert (item["reference"], item["times_accepted"], item["billed"]) == (attempt.reference, 1, 1)


async def test_with_a_look_up_it_is_found_and_adopted(world: World) -> None:
    task_id = await lose_answer(world, "lab-poll")
    await pass_until_due(world, task_id)
    await world.look("lab-poll")
    assert await world.state(task_id) is State.ARCHIVING
    assert (await world.attempt(task_id)).provider_ref is not None
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert (await world.lab_ledger())["accepted"] == 1


async def test_a_look_up_that_finds_it_running_lets_it_run(world: World) -> None:
    await world.knobs(latency_s=[30, 30])
    task_id = await lose_answer(world, "lab-poll")
    await pass_until_due(world, task_id)
    await world.look("lab-poll")
    assert await world.state(task_id) is State.RUNNING
    assert (await world.attempt(task_id)).provider_ref is not None


async def test_only_a_second_look_up_that_finds_nothing_allows_another_attempt(world: World) -> None:
    provider = install(
        world, Scripted("lab-poll", LOOKS_UP, in_turn(uncertain(), accepted("x", provider_ref="two")))
    )
    task_id = await run_task(world, "lab-poll")
    await pass_until_due(world, task_id)
    await world.look("lab-poll")
    assert (await world.state(task_id), provider.look_ups) == (State.UNCERTAIN, 1)
    await world.dispatch("lab-poll")
    assert len(provider.submissions) == 1
    left_s = await world.value("SELECT extract(epoch FROM wake_at - clock_now())::float8 FROM tasks")
    assert 2 < left_s <= 5, "the visibility delay passes in between"
    await pass_until_due(world, task_id)
    await world.look("lab-poll")
    assert (await world.state(task_id), provider.look_ups) == (State.RETRYING, 2)
    await world.pass_time(seconds=10)
    await world.dispatch("lab-poll")
    assert (await world.state(task_id), (await world.attempt(task_id)).number) == (State.RUNNING, 2)
    (proof,) = await world.rows("SELECT outcome FROM attempts WHERE number = 1")
    assert proof["outcome"] == "refused"


async def test_look_ups_that_fail_prove_nothing(world: World) -> None:
    provider = install(
        world, Scripted("lab-poll", LOOKS_UP, always(uncertain()), look_up_does=always(ProviderError("502")))
    )
    task_id = await run_task(world, "lab-poll")
    for _ in range(6):
        await pass_until_due(world, task_id)
        await world.look("lab-poll")
    assert (await world.state(task_id), provider.look_ups) == (State.UNCERTAIN, 6)
    assert len(provider.submissions) == 1


async def test_what_could_not_be_looked_up_before_the_deadline_is_still_found_from_review(
    world: World,
) -> None:
    task_id = await lose_answer(world, "lab-poll")
    real = world.graph.context.providers["lab-poll"]
    provider = install(world, Scripted("lab-poll", LOOKS_UP, look_up_does=always(ProviderError("502"))))
    await world.pass_time(seconds=301)
    await world.look("lab-poll")
    assert await world.state(task_id) is State.REVIEW
    assert provider.look_ups == 1, "at the deadline comes one last look"
    provider.look_up_does = real.look_up
    provider.poll_does = real.poll
    await pass_until_due(world, task_id)
    await world.look("lab-poll")
    assert await world.state(task_id) is State.ARCHIVING, "slow looking goes on in review"


async def test_a_callback_clears_up_a_lost_answer(world: World) -> None:
    task_id = await lose_answer(world, "lab-callback")
    attempt = await world.attempt(task_id)
    record = await record_of(world, await lab_job(world, attempt.reference))
    await call_back(world, token_of(world, task_id), signed(record))
    assert await world.state(task_id) is State.ARCHIVING
    assert (await world.attempt(task_id)).provider_ref == record["id"]
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert (await world.lab_ledger())["accepted"] == 1


async def test_without_a_callback_a_person_decides_at_the_deadline_and_the_hold_stays(world: World) -> None:
    task_id = await lose_answer(world, "lab-callback")
    await pass_until_due(world, task_id)
    await world.look()
    assert await world.state(task_id) is State.UNCERTAIN
    assert await pass_until_due(world, task_id) > 200, "there is nothing to look at until the deadline"
    await world.look()
    assert await world.state(task_id) is State.REVIEW
    assert await review_reason(world, task_id) == "submit_uncertain"
    assert await world.balance() == (999, 1)
    await world.dispatch()
    assert (await world.lab_ledger())["accepted"] == 1


async def test_genuine_news_moves_a_task_out_of_review_by_itself(world: World) -> None:
    task_id = await lose_answer(world, "lab-callback")
    await world.pass_time(seconds=301)
    await world.look()
    assert await world.state(task_id) is State.REVIEW
    record = await record_of(world, await lab_job(world, (await world.attempt(task_id)).reference))
    await call_back(world, token_of(world, task_id), signed(record))
    assert await world.state(task_id) is State.ARCHIVING
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert await world.balance() == (999, 0)


async def test_an_undecided_review_fails_at_the_operator_s_cost(world: World) -> None:
    task_id = await lose_answer(world, "lab-callback")
    await world.pass_time(seconds=301)
    await world.look()
    await world.pass_time(hours=23)
    await world.look()
    assert await world.state(task_id) is State.REVIEW
    await world.pass_time(hours=1, minutes=1)
    await world.look()
    assert await world.state(task_id) is State.FAILED
    (ending,) = await world.rows("SELECT failure_class, failure_code FROM tasks")
    assert tuple(ending) == ("upstream_fault", "no_result")
    assert await world.balance() == (1_000, 0)


async def test_with_no_time_to_decide_a_task_fails_by_itself(server: Server) -> None:
    async with running_world(server, decide_by_s=0) as world:
        install(world, Scripted("lab-callback", CALLS_BACK, always(uncertain())))
        task_id = await run_task(world)
        await world.pass_time(seconds=301)
        for _ in range(2):
            await world.look()
        assert await history(world, task_id) == ["queued", "submitting", "uncertain", "review", "failed"]
        await assert_books(world)


async def test_a_synchronous_provider_without_keys_goes_to_review_at_once(world: World) -> None:
    capabilities = Capabilities(is_synchronous=True, can_poll=False)
    provider = install(world, Scripted("lab-sync", capabilities, always(uncertain())))
    task_id = await run_task(world, "lab-sync")
    await pass_until_due(world, task_id)
    await world.look("lab-sync")
    assert await world.state(task_id) is State.REVIEW
    assert await review_reason(world, task_id) == "submit_uncertain"
    assert len(provider.submissions) == 1


async def test_the_same_key_is_sent_at_most_five_times(world: World) -> None:
    provider = install(world, Scripted("lab-sync", HAS_KEYS, always(uncertain())))
    task_id = await run_task(world, "lab-sync")
    for _ in range(10):
        await pass_until_due(world, task_id)
        await world.look("lab-sync")
    assert {submission.reference for submission in provider.submissions} == {f"{task_id.hex}-1"}
    assert len(provider.submissions) == 5
    assert await world.state(task_id) is State.REVIEW


async def test_a_later_send_that_was_turned_away_says_nothing_about_the_first(world: World) -> None:
    install(
        world, Scripted("lab-sync", HAS_KEYS, in_turn(uncertain(), not_sent(), done(origin=Origin.ANSWER)))
    )
    task_id = await run_task(world, "lab-sync")
    await pass_until_due(world, task_id)
    await world.look("lab-sync")
    assert await world.state(task_id) is State.UNCERTAIN
    await pass_until_due(world, task_id)
    await world.look("lab-sync")
    assert await world.state(task_id) is State.ARCHIVING
    await world.archive_all()
    assert (await world.attempt(task_id)).number == 1


async def test_nothing_is_sent_again_when_the_task_has_moved_on_meanwhile(world: World) -> None:
    capabilities = replace(CALLS_BACK, after_uncertain=AfterUncertain.SAME_KEY)
    provider = install(world, Scripted("lab-callback", capabilities, in_turn(uncertain(), accepted("x"))))
    task_id = await run_task(world)
    await pass_until_due(world, task_id)
    (due,) = await world.graph.check.claim("lab-callback", 1)
    genuine = ([(b"x-genuine", b"yes")], b'{"status": "succeeded", "pictures": 1}')
    await call_back(world, token_of(world, task_id), genuine)
    await world.graph.check.check(*due)
    assert len(provider.submissions) == 1, "the fence was lost before the send"
    await world.archive_all()


@pytest.mark.parametrize("shape", ["lab-callback", "lab-poll", "lab-sync"])
async def test_a_worker_that_died_while_submitting_leaves_it_uncertain_and_never_resent(
    world: World, shape: str
) -> None:
    task_id = await world.submit(shape)
    await world.graph.dispatch.claim(shape, 1)
    assert await world.look(shape) == 0, "before answer_by nobody touches it"
    await world.pass_time(seconds=95)
    await world.graph.sweep.wake()
    await world.dispatch(shape)
    assert await world.state(task_id) is State.SUBMITTING
    assert await world.look(shape) == 1
    assert await world.state(task_id) is State.UNCERTAIN
    await world.dispatch(shape)
    assert (await world.lab_ledger())["accepted"] == 0


async def test_an_answer_that_comes_after_its_time_still_counts(world: World) -> None:
    task_id = await world.submit()
    (item,) = (await world.graph.dispatch.claim("lab-callback", 1)).items
    await world.pass_time(seconds=61)
    await world.look()
    assert await world.state(task_id) is State.UNCERTAIN
    await world.graph.dispatch.send(item)
    assert await world.state(task_id) is State.RUNNING
    assert (await world.attempt(task_id)).provider_ref is not None


async def test_an_answer_that_comes_after_review_began_still_counts(world: World) -> None:
    task_id = await world.submit()
    (item,) = (await world.graph.dispatch.claim("lab-callback", 1)).items
    for _ in range(2):
        await world.pass_time(seconds=301)
        await world.look()
    assert await world.state(task_id) is State.REVIEW
    await world.graph.dispatch.send(item)
    assert await world.state(task_id) is State.RUNNING


async def test_a_refusal_that_contradicts_running_news_starts_no_second_attempt(world: World) -> None:
    task_id = await world.submit()
    (item,) = (await world.graph.dispatch.claim("lab-callback", 1)).items
    install(world, Scripted("lab-callback", CALLS_BACK))
    genuine = ([(b"x-genuine", b"yes")], b'{"status": "running", "id": "up-1"}')
    await call_back(world, token_of(world, task_id), genuine)
    refusal = ProviderRefused("no", failure_class="upstream_fault", failure_code="generation_failed")
    install(world, Scripted("lab-callback", CALLS_BACK, always(refusal)))
    await world.graph.dispatch.send(item)
    assert await world.state(task_id) is State.RUNNING
    assert [row["kind"] for row in await world.rows("SELECT kind FROM findings")] == ["contradiction"]
    assert await world.look() == 1, "it is looked at now"


async def test_a_provider_that_accepts_and_hangs_is_uncertain_after_its_time_out(world: World) -> None:
    values = {"lab_url": world.lab_url}
    declaration = packaged_declaration("lab-sync", values=values)
    hasty = declaration.model_copy(
        update={"submit": declaration.submit.model_copy(update={"timeout_s": 0.3})}
    )
    provider = DeclaredProvider(
        hasty, credentials=LAB_CREDENTIALS, session=world.session, base_url=world.lab_url
    )
    install(world, provider)
    await world.knobs(hang_after_accept=1)
    task_id = await run_task(world, "lab-sync")
    assert await world.state(task_id) is State.UNCERTAIN
    await pass_until_due(world, task_id)
    await world.look("lab-sync")
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert (await world.lab_ledger())["accepted"] == 1


async def test_the_hold_stays_while_a_failed_attempt_is_only_suspected(world: World) -> None:
    late = failed(Origin.LOOK_UP, provider_ref="up-9")
    provider = install(
        world, Scripted("lab-poll", LOOKS_UP, always(uncertain()), look_up_does=in_turn(None, late))
    )
    task_id = await run_task(world, "lab-poll")
    for _ in range(2):
        assert await world.balance() == (999, 1)
        await pass_until_due(world, task_id)
        await world.look("lab-poll")
    assert (await world.state(task_id), provider.look_ups) == (State.RETRYING, 2)
    assert await world.balance() == (999, 1)
