"""A lost answer where the provider knows no reference of ours: found in its list, or not sent again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from safelight.domain.provider import (
    AfterUncertain,
    Capabilities,
    Origin,
    Output,
    ProviderUpdate,
    RecordKey,
    UpdateStatus,
    UpstreamRecord,
)
from safelight.domain.task import State
from safelight.errors import ProviderError
from safelight.providers.declaration import Declaration
from safelight.providers.declared import DeclaredProvider
from safelight.providers.loading import packaged_declaration
from safelight.upstreams import LAB_CREDENTIALS
from tests.lifecycle.invariants import history
from tests.lifecycle.upstreams import (
    ListRecords,
    Scripted,
    accepted,
    always,
    done,
    in_turn,
    install,
    pages,
    pass_until_due,
    run_task,
    running,
    token_of,
    uncertain,
)
from tests.world import World

NAME = "lab-callback"
PROMPT = "a red shoe on white"
BY_PROMPT = Capabilities(
    calls_back=True,
    can_list=True,
    after_uncertain=AfterUncertain.LIST,
    visibility_delay_s=3.0,
    record_keys=frozenset({RecordKey.PROMPT}),
)
BY_ADDRESS = replace(BY_PROMPT, record_keys=frozenset({RecordKey.CALLBACK_URL, RecordKey.PROMPT}))


async def sent_at(world: World, task_id: UUID) -> datetime:
    moment: datetime = await world.value("SELECT sent_at FROM attempts WHERE task_id = $1", task_id)
    return moment


def record(ref: str, created_at: datetime, **more: Any) -> UpstreamRecord:
    update = ProviderUpdate(UpdateStatus.RUNNING, Origin.RECONCILIATION, ref, "processing")
    values = {"reference": None, "update": update, "prompt": PROMPT, "upstream_model": NAME, **more}
    return UpstreamRecord(provider_ref=ref, created_at=created_at, **values)


async def lost(world: World, capabilities: Capabilities = BY_PROMPT, **does: Any) -> tuple[UUID, Scripted]:
    """A task whose answer was lost at a provider that lists."""
    provider = install(world, Scripted(NAME, capabilities, always(uncertain()), **does))
    task_id = await run_task(world)
    assert await world.state(task_id) is State.UNCERTAIN
    return task_id, provider


async def look(world: World, task_id: UUID) -> State:
    await pass_until_due(world, task_id)
    await world.look()
    return await world.state(task_id)


async def test_the_only_record_with_its_prompt_is_adopted_and_polled_from_then_on(world: World) -> None:
    task_id, provider = await lost(world)
    at = await sent_at(world, task_id)
    provider.list_does = pages([record("theirs-1", at), record("other", at, prompt="a blue shoe")])
    provider.poll_does = in_turn(done())
    assert await look(world, task_id) is State.RUNNING
    assert (await world.attempt(task_id)).provider_ref == "theirs-1"
    assert await look(world, task_id) is State.ARCHIVING
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert len(provider.submissions) == 1


async def test_a_record_with_another_model_is_not_it(world: World) -> None:
    task_id, provider = await lost(world)
    at = await sent_at(world, task_id)
    provider.list_does = pages([record("theirs-1", at, upstream_model="another")])
    assert await look(world, task_id) is State.UNCERTAIN


async def test_of_two_records_with_the_prompt_neither_is_taken_and_a_person_decides(world: World) -> None:
    task_id, provider = await lost(world)
    at = await sent_at(world, task_id)
    provider.list_does = pages([record("theirs-1", at), record("theirs-2", at)])
    for _ in range(12):
        if await look(world, task_id) is not State.UNCERTAIN:
            break
    assert await history(world, task_id) == ["queued", "submitting", "uncertain", "review"]
    assert len(provider.submissions) == 1
    assert await world.balance() == (999, 1)


async def test_of_two_attempts_with_one_prompt_none_takes_the_only_record(world: World) -> None:
    first, provider = await lost(world)
    second = await run_task(world)
    at = await sent_at(world, first)
    provider.list_does = pages([record("theirs-1", at)])
    assert await look(world, first) is State.UNCERTAIN
    assert await look(world, second) is State.UNCERTAIN


async def test_a_record_of_another_attempt_is_not_taken_by_its_prompt(world: World) -> None:
    provider = install(
        world, Scripted(NAME, BY_PROMPT, in_turn(accepted("x", provider_ref="theirs-1"), uncertain()))
    )
    await run_task(world)
    task_id = await run_task(world)
    at = await sent_at(world, task_id)
    provider.list_does = pages([record("theirs-1", at), record("theirs-2", at)])
    assert await look(world, task_id) is State.RUNNING
    assert (await world.attempt(task_id)).provider_ref == "theirs-2"


async def test_a_list_that_breaks_off_proves_nothing_but_by_an_exact_key(world: World) -> None:
    task_id, provider = await lost(world, BY_ADDRESS)
    at = await sent_at(world, task_id)
    provider.list_does = pages([record("theirs-1", at)], ProviderError("502"))
    for _ in range(3):
        assert await look(world, task_id) is State.UNCERTAIN
    address = f"https://ours.example/callbacks/{NAME}/{token_of(world, task_id)}"
    provider.list_does = pages([record("theirs-9", at, callback_url=address)], ProviderError("502"))
    assert await look(world, task_id) is State.RUNNING
    assert (await world.attempt(task_id)).provider_ref == "theirs-9"


async def test_the_callback_address_in_a_record_names_the_attempt_among_equal_ones(world: World) -> None:
    first, provider = await lost(world, BY_ADDRESS)
    second = await run_task(world)
    at = await sent_at(world, first)
    address = f"https://ours.example/callbacks/{NAME}/"
    provider.list_does = pages(
        [
            record("theirs-2", at, callback_url=address + token_of(world, second)),
            record("theirs-1", at, callback_url=address + token_of(world, first)),
        ]
    )
    await look(world, first)
    await look(world, second)
    assert (await world.attempt(first)).provider_ref == "theirs-1"
    assert (await world.attempt(second)).provider_ref == "theirs-2"


async def test_an_exact_key_that_is_absent_twice_from_a_complete_list_proves_it_was_not_accepted(
    world: World,
) -> None:
    task_id, provider = await lost(world, BY_ADDRESS, list_does=pages([]))
    assert await look(world, task_id) is State.UNCERTAIN
    left_s = await world.value("SELECT extract(epoch FROM wake_at - clock_now())::float8 FROM tasks")
    assert 1 < left_s <= 3, "the visibility delay passes in between"
    assert await look(world, task_id) is State.RETRYING
    assert len(provider.lists) == 2
    provider.submit_does = in_turn(accepted("x", provider_ref="second"))
    await world.pass_time(seconds=30)
    await world.dispatch()
    assert (await world.state(task_id), (await world.attempt(task_id)).number) == (State.RUNNING, 2)


async def test_a_prompt_that_is_absent_proves_nothing(world: World) -> None:
    task_id, provider = await lost(world, list_does=pages([]))
    for _ in range(4):
        assert await look(world, task_id) is State.UNCERTAIN
    assert len(provider.lists) == 4
    await world.pass_time(seconds=301)
    await world.look()
    assert await world.state(task_id) is State.REVIEW
    assert await world.value("SELECT review_reason FROM tasks") == "submit_uncertain"
    assert len(provider.submissions) == 1


async def test_a_record_without_any_key_keeps_the_attempt_from_being_proved_absent(world: World) -> None:
    task_id, provider = await lost(world, BY_ADDRESS)
    at = await sent_at(world, task_id)
    provider.list_does = pages([record("theirs-1", at, prompt=None)])
    for _ in range(4):
        assert await look(world, task_id) is State.UNCERTAIN


async def test_a_list_is_asked_for_the_time_of_the_send_with_room_for_clocks_that_differ(
    world: World,
) -> None:
    asked: list[tuple[datetime, datetime]] = []

    async def note(since: datetime, until: datetime, cursor: str | None) -> Any:
        asked.append((since, until))
        return await pages([record("theirs-1", at - timedelta(seconds=40))])(since, until, cursor)

    task_id, provider = await lost(world)
    at = await sent_at(world, task_id)
    provider.list_does = note
    assert await look(world, task_id) is State.RUNNING, "its clock is 40 s behind ours"
    attempt = await world.attempt(task_id)
    skew = timedelta(seconds=60)
    assert asked == [(attempt.sent_at - skew, attempt.answer_by + skew)]


async def test_a_success_without_pictures_in_the_list_is_asked_for_by_its_id(world: World) -> None:
    task_id, provider = await lost(world)
    at = await sent_at(world, task_id)
    ended = ProviderUpdate(UpdateStatus.SUCCEEDED, Origin.RECONCILIATION, "theirs-1", "succeeded")
    provider.list_does = pages([record("theirs-1", at, update=ended)])
    provider.poll_does = in_turn(done(Output(url=f"{world.lab_url}/results/none")))
    assert await look(world, task_id) is State.ARCHIVING
    assert provider.polls == 1


async def test_an_end_that_cannot_be_asked_for_now_is_asked_for_later(world: World) -> None:
    task_id, provider = await lost(world)
    at = await sent_at(world, task_id)
    ended = ProviderUpdate(UpdateStatus.FAILED, Origin.RECONCILIATION, "theirs-1", "failed")
    provider.list_does = pages([record("theirs-1", at, update=ended)])
    provider.poll_does = in_turn(ProviderError("502"), done())
    assert await look(world, task_id) is State.RUNNING
    assert (await world.attempt(task_id)).provider_ref == "theirs-1"
    assert await look(world, task_id) is State.ARCHIVING


async def test_what_comes_up_in_the_list_late_is_still_found_from_review(world: World) -> None:
    task_id, provider = await lost(world, list_does=always_failing())
    await world.pass_time(seconds=301)
    await world.look()
    assert await world.state(task_id) is State.REVIEW
    provider.list_does = pages([record("theirs-1", await sent_at(world, task_id))])
    provider.poll_does = in_turn(running(), done())
    assert await look(world, task_id) is State.RUNNING
    assert await look(world, task_id) is State.REVIEW, "it is past its deadline, but now its id is known"
    assert await look(world, task_id) is State.ARCHIVING


async def test_the_lab_s_own_list_clears_up_a_lost_answer_by_our_reference(world: World) -> None:
    install(world, listing_lab(world))
    await world.knobs(lose_answer=1)
    task_id = await run_task(world)
    assert await world.state(task_id) is State.UNCERTAIN
    await world.until_drawn()
    assert await look(world, task_id) is State.ARCHIVING
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert (await world.lab_ledger())["accepted"] == 1


async def test_the_lab_s_own_list_proves_that_a_submit_never_arrived(world: World) -> None:
    lab = listing_lab(world)
    install(world, Scripted(NAME, lab.capabilities, always(uncertain()), list_does=lab.list_records))
    task_id = await run_task(world)
    assert await look(world, task_id) is State.UNCERTAIN
    assert await look(world, task_id) is State.RETRYING
    assert (await world.lab_ledger())["accepted"] == 0


def always_failing() -> ListRecords:
    return pages(ProviderError("502"))


def listing_lab(world: World) -> DeclaredProvider:
    """The lab, declared to be asked for its list after a lost answer."""
    declared = packaged_declaration(NAME, values={"lab_url": world.lab_url})
    submit = declared.submit.model_copy(update={"after_uncertain": AfterUncertain.LIST})
    declaration: Declaration = declared.model_copy(update={"submit": submit})
    return DeclaredProvider(
        declaration, credentials=LAB_CREDENTIALS, session=world.session, base_url=world.lab_url
    )
