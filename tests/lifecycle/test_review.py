"""A person decides: every decision for every reason, before the news and after, and the books stay true."""

from __future__ import annotations

import pytest

from safelight.domain.audit import Actor
from safelight.domain.review import Choice, FailReason, ResubmitReason, faults_of
from safelight.domain.task import ReviewReason, State
from safelight.errors import RequestError
from safelight.lifecycle.once import Once
from tests.lifecycle.invariants import history
from tests.lifecycle.reviews import (
    CALLS_BACK,
    NAME,
    OPERATOR,
    WORDS,
    Desk,
    always_says,
    in_review,
    refused,
    stored,
    to_review,
)
from tests.lifecycle.upstreams import (
    Scripted,
    accepted,
    done,
    install,
    run_task,
    running,
)
from tests.world import World

AFTERWARDS = {
    Choice.CHECK_AGAIN: State.REVIEW,
    Choice.RESUBMIT: State.RETRYING,
    Choice.ATTACH_RESULT: State.ARCHIVING,
    Choice.FAIL_AND_RELEASE: State.FAILED,
    Choice.ACCEPT_AS_DONE: State.ARCHIVING,
}


def is_possible(choice: Choice, reason: ReviewReason) -> bool:
    """Only known pictures can be accepted, and only unknown ones be made again."""
    if choice is Choice.ACCEPT_AS_DONE:
        return reason is ReviewReason.ARCHIVE_STUCK
    return choice is not Choice.RESUBMIT or reason is not ReviewReason.ARCHIVE_STUCK


@pytest.mark.parametrize("reason", ReviewReason)
@pytest.mark.parametrize("choice", Choice)
async def test_a_decision_does_what_it_says_and_late_news_behaves_as_ever(
    world: World, reason: ReviewReason, choice: Choice
) -> None:
    desk = await in_review(world, reason)
    install(world, desk.provider)  # its callbacks are verified again, even of one that was gone
    if not is_possible(choice, reason):
        code = "nothing-to-accept" if choice is Choice.ACCEPT_AS_DONE else "result-known"
        assert await refused(desk, choice) == (409, code)
        assert await world.balance() == (999, 1)
        return
    document = await desk.decide(choice)
    assert (document["state"], document["decided_by"]) == (AFTERWARDS[choice].value, "admin:test")
    assert await desk.state() is AFTERWARDS[choice]
    await check_record(desk, choice, reason)
    await desk.call_back()
    await world.archive_all()
    ends = {
        Choice.CHECK_AGAIN: (State.SUCCEEDED, []),
        Choice.RESUBMIT: (State.RETRYING, ["orphan_result"]),
        Choice.FAIL_AND_RELEASE: (State.FAILED, ["orphan_result"]),
    }
    state, findings = ends.get(choice, (State.SUCCEEDED, []))
    assert (await desk.state(), await desk.findings()) == (state, findings)
    expected = {State.SUCCEEDED: (999, 0), State.FAILED: (1_000, 0)}.get(state, (999, 1))
    assert await world.balance() == expected


async def check_record(desk: Desk, choice: Choice, reason: ReviewReason) -> None:
    """The decision and its audit line were written with it."""
    (record,) = await desk.world.rows("SELECT * FROM decisions WHERE task_id = $1", desk.task_id)
    assert (record["decision"], record["review_reason"]) == (choice, reason)
    assert (record["version"], record["attempt"], record["decided_by"]) == (desk.version, 1, "admin:test")
    (line,) = await desk.world.rows("SELECT * FROM audit_lines")
    assert (line["action"], line["object"]) == (f"review.{choice}", f"task:{desk.task_id}")
    assert (line["actor"], line["address"], line["request_id"]) == ("admin:test", "192.0.2.1", "request-1")
    assert (line["account_id"], line["outcome"]) == (desk.world.account_id, "done")


@pytest.mark.parametrize(
    "reason", [reason for reason in ReviewReason if reason is not ReviewReason.ARCHIVE_STUCK]
)
async def test_news_that_came_first_leaves_nothing_to_decide(world: World, reason: ReviewReason) -> None:
    desk = await in_review(world, reason)
    install(world, desk.provider)
    await desk.call_back()
    assert await desk.state() is State.ARCHIVING
    for choice in Choice:
        assert await refused(desk, choice) == (409, "not-in-review")
    await world.archive_all()
    assert (await desk.state(), await world.balance()) == (State.SUCCEEDED, (999, 0))
    for choice in Choice:
        assert await refused(desk, choice) == (409, "not-in-review")
    assert await world.value("SELECT count(*) FROM decisions") == 0


async def test_a_task_that_came_back_to_review_is_decided_as_it_stands_now(world: World) -> None:
    desk = await in_review(world, ReviewReason.NO_PROGRESS)
    await desk.call_back("running", pictures=0)
    assert await desk.state() is State.RUNNING
    await to_review(world, desk.task_id, ReviewReason.DEADLINE)
    assert await refused(desk, Choice.FAIL_AND_RELEASE) == (409, "task-moved-on")
    await desk.decide(Choice.FAIL_AND_RELEASE, version=desk.version + 2)
    assert await desk.state() is State.FAILED


@pytest.mark.parametrize("second", Choice)
async def test_the_second_of_two_people_is_told_that_it_was_decided(world: World, second: Choice) -> None:
    desk = await in_review(world, ReviewReason.ARCHIVE_STUCK)
    await desk.decide(Choice.FAIL_AND_RELEASE)
    with pytest.raises(RequestError) as caught:
        await desk.decide(second, by=Actor("os:somebody"))
    assert (caught.value.status, caught.value.problem_code) == (409, "already-decided")
    assert "admin:test" in caught.value.detail
    assert "fail_and_release" in caught.value.detail


async def test_looking_again_is_no_decision_that_keeps_others_from_deciding(world: World) -> None:
    desk = await in_review(world, ReviewReason.NO_PROGRESS)
    for _ in range(2):
        await desk.decide(Choice.CHECK_AGAIN)
    await desk.decide(Choice.FAIL_AND_RELEASE)
    assert await desk.state() is State.FAILED


# ---------------------------------------------------------------------------- check again


async def test_looking_again_looks_at_once_and_a_success_is_taken(world: World) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    await desk.look()
    assert desk.provider.polls == 0
    desk.provider.poll_does = always_says(done())
    await desk.decide(Choice.CHECK_AGAIN)
    await desk.look()
    assert (desk.provider.polls, await desk.state()) == (1, State.ARCHIVING)
    await world.archive_all()
    assert await world.balance() == (999, 0)


async def test_looking_again_lets_a_task_that_still_runs_run_on_with_its_whole_time(world: World) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    await world.pass_time(hours=2)
    await desk.decide(Choice.CHECK_AGAIN)
    await desk.look()
    assert await desk.state() is State.RUNNING
    left_s = await world.value("SELECT extract(epoch FROM deadline_at - clock_now())::float8 FROM tasks")
    assert left_s > 100
    assert await history(world, desk.task_id) == ["queued", "submitting", "running", "review", "running"]


async def test_a_task_that_nobody_asked_about_stays_in_review_while_it_runs(world: World) -> None:
    desk = await in_review(world, ReviewReason.NO_PROGRESS)
    await world.pass_time(seconds=601)
    await desk.look()
    assert (desk.provider.polls, await desk.state()) == (1, State.REVIEW)


async def test_looking_again_without_news_stays_in_review_and_looks_slowly_on(world: World) -> None:
    desk = await in_review(world, ReviewReason.SUBMIT_UNCERTAIN)
    await desk.decide(Choice.CHECK_AGAIN)
    await desk.look()
    assert await desk.state() is State.REVIEW
    left_s = await world.value("SELECT extract(epoch FROM wake_at - clock_now())::float8 FROM tasks")
    assert 500 < left_s <= 600


async def test_looking_again_at_a_stuck_copy_copies_again(world: World) -> None:
    desk = await in_review(world, ReviewReason.ARCHIVE_STUCK)
    await desk.decide(Choice.CHECK_AGAIN)
    await desk.look()
    await world.archive_all()
    assert (await desk.state(), desk.provider.polls) == (State.SUCCEEDED, 0)


# ---------------------------------------------------------------------------- resubmit


@pytest.mark.parametrize(
    ("reason_code", "reason", "outcome"),
    [
        ("proved_absent", ReviewReason.SUBMIT_UNCERTAIN, "refused"),
        ("provider_confirmed", ReviewReason.SUBMIT_UNCERTAIN, "refused"),
        ("risk_accepted", ReviewReason.SUBMIT_UNCERTAIN, "abandoned"),
        ("provider_confirmed", ReviewReason.DEADLINE, "abandoned"),
        ("risk_accepted", ReviewReason.DEADLINE, "abandoned"),
    ],
)
async def test_a_resubmit_makes_another_attempt_and_keeps_its_reason(
    world: World, reason_code: str, reason: ReviewReason, outcome: str
) -> None:
    desk = await in_review(world, reason)
    desk.provider.submit_does = None
    await world.pass_time(hours=3)
    await desk.decide(Choice.RESUBMIT, reason_code=reason_code, note="support says so, mail of today")
    await world.dispatch(NAME)
    task = await world.task(desk.task_id)
    assert (task.state, task.attempt) == (State.RUNNING, 2)
    rows = await world.rows("SELECT number, outcome, failure_code FROM attempts ORDER BY number")
    assert [tuple(row) for row in rows] == [(1, outcome, reason_code), (2, None, None)]
    references = [submission.reference for submission in desk.provider.submissions]
    assert references == [f"{desk.task_id.hex}-1", f"{desk.task_id.hex}-2"]
    (record,) = await world.rows("SELECT reason_code, note FROM decisions")
    assert tuple(record) == (reason_code, "support says so, mail of today")


async def test_the_result_of_the_attempt_that_was_given_up_is_an_orphan_and_the_next_is_paid(
    world: World,
) -> None:
    desk = await in_review(world, ReviewReason.SUBMIT_UNCERTAIN)
    desk.provider.submit_does = None
    await desk.decide(Choice.RESUBMIT)
    await world.dispatch(NAME)
    await desk.call_back(attempt=1)
    assert (await desk.state(), await desk.findings()) == (State.RUNNING, ["orphan_result"])
    await desk.call_back(attempt=2)
    await world.archive_all()
    assert (await desk.state(), await world.balance()) == (State.SUCCEEDED, (999, 0))
    losses = await world.rows("SELECT attempt, cost FROM losses")
    assert [tuple(row) for row in losses] == [(1, None)], "it may have been charged, nobody told how much"


async def test_the_orphan_of_an_earlier_attempt_can_be_accepted_when_the_next_gets_stuck(
    world: World,
) -> None:
    desk = await in_review(world, ReviewReason.SUBMIT_UNCERTAIN)
    desk.provider.submit_does = None
    await desk.decide(Choice.RESUBMIT)
    await world.dispatch(NAME)
    await desk.call_back(attempt=1)
    await to_review(world, desk.task_id, ReviewReason.NO_PROGRESS)
    desk.version = (await world.task(desk.task_id)).version
    await desk.decide(Choice.ACCEPT_AS_DONE)
    await world.archive_all()
    assert (await desk.state(), await world.balance()) == (State.SUCCEEDED, (999, 0))


async def test_what_the_provider_has_accepted_cannot_be_proved_absent(world: World) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    words = {"reason_code": "proved_absent", "note": "I do not see it in the list"}
    assert await refused(desk, Choice.RESUBMIT, **words) == (409, "attempt-accepted")


async def test_what_the_customer_wants_canceled_is_not_made_again(world: World) -> None:
    install(world, Scripted(NAME, CALLS_BACK))
    task_id = await run_task(world, NAME)
    await world.cancel.cancel(world.account_id, task_id)
    await to_review(world, task_id, ReviewReason.DEADLINE)
    desk = Desk(world, Scripted(NAME), task_id, (await world.task(task_id)).version)
    assert await refused(desk, Choice.RESUBMIT) == (409, "cancel-requested")
    await desk.decide(Choice.FAIL_AND_RELEASE)
    assert await world.balance() == (1_000, 0)


async def test_a_person_cannot_make_more_attempts_than_a_task_may_have(world: World) -> None:
    desk = await in_review(world, ReviewReason.SUBMIT_UNCERTAIN)
    for _ in range(2):
        await desk.decide(Choice.RESUBMIT)
        await world.dispatch(NAME)
        await to_review(world, desk.task_id, ReviewReason.SUBMIT_UNCERTAIN)
        desk.version = (await world.task(desk.task_id)).version
    assert (await world.task(desk.task_id)).attempt == 3
    assert await refused(desk, Choice.RESUBMIT) == (409, "no-attempt-left")


async def test_the_database_refuses_another_attempt_that_nobody_decided(world: World) -> None:
    install(world, Scripted(NAME, CALLS_BACK))
    task_id = await run_task(world, NAME)
    await to_review(world, task_id, ReviewReason.NO_PROGRESS)
    insert = (
        "INSERT INTO attempts (task_id, number, provider, upstream_model, reference, images, answer_by)"
        " SELECT task_id, 2, provider, upstream_model, reference || 'x', images, answer_by FROM attempts"
    )
    with pytest.raises(Exception, match="follows one that is not over"):
        await world.rows(insert)
    await world.rows("UPDATE attempts SET outcome = 'abandoned', ended_at = clock_now()")
    with pytest.raises(Exception, match="follows one that nobody gave up"):
        await world.rows(insert)


# ---------------------------------------------------------------------------- attach, accept


@pytest.mark.parametrize("code", FailReason)
async def test_a_task_that_is_released_says_so_to_the_customer(world: World, code: FailReason) -> None:
    desk = await in_review(world, ReviewReason.NO_PROGRESS)
    await desk.decide(Choice.FAIL_AND_RELEASE, reason_code=code)
    (row,) = await world.rows("SELECT failure_class, failure_code FROM tasks")
    assert tuple(row) == ("upstream_fault", code)
    assert await world.balance() == (1_000, 0)
    losses = await world.rows("SELECT attempt, cost, reason FROM losses")
    assert [tuple(row) for row in losses] == [(1, None, "failed")]


@pytest.mark.parametrize("cost", [None, 0.04])
async def test_what_nobody_decided_is_released_and_the_loss_is_the_operator_s(
    world: World, cost: float | None
) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    if cost is not None:
        desk.provider.poll_does = always_says(running(cost=cost))
        await desk.decide(Choice.CHECK_AGAIN)
        await desk.look()
        await to_review(world, desk.task_id, ReviewReason.DEADLINE)
    await world.pass_time(hours=25)
    await desk.look()
    assert (await desk.state(), await world.balance()) == (State.FAILED, (1_000, 0))
    (row,) = await world.rows("SELECT failure_code FROM tasks")
    assert row["failure_code"] == "no_result"
    losses = await world.rows("SELECT attempt, cost::float8 AS cost FROM losses")
    assert [tuple(row) for row in losses] == [(1, cost)]
    await desk.call_back()
    assert (await desk.state(), await desk.findings()) == (State.FAILED, ["orphan_result"])
    assert await world.balance() == (1_000, 0)


async def test_a_task_that_failed_in_the_provider_s_own_words_is_no_loss_of_unknown_size(
    world: World,
) -> None:
    install(world, Scripted(NAME, CALLS_BACK))
    task_id = await run_task(world, NAME)
    desk = Desk(world, Scripted(NAME), task_id, 0)
    await desk.call_back("blocked", pictures=0)
    assert await desk.state() is State.BLOCKED
    assert await world.rows("SELECT attempt FROM losses") == []


# ---------------------------------------------------------------------------- a provider that is gone


async def test_tasks_of_a_provider_that_is_gone_come_to_a_person_at_their_deadline_and_to_an_end(
    world: World,
) -> None:
    install(world, Scripted(NAME, CALLS_BACK))
    running_id = await run_task(world, NAME)
    submitting_id = await world.submit(NAME)
    await world.graph.dispatch.claim(NAME, 1)
    world.graph.context.providers.pop(NAME)  # type: ignore[attr-defined]  # the tests' own mapping
    await world.graph.gone.tend()
    assert await world.state(running_id) is State.RUNNING, "the key may come back before its deadline"
    for _ in range(3):
        await world.pass_time(seconds=400)
        await world.graph.gone.tend()
    rows = await world.rows("SELECT id, state, review_reason FROM tasks ORDER BY id")
    assert [tuple(row) for row in rows] == [
        (running_id, "review", "provider_gone"),
        (submitting_id, "review", "provider_gone"),
    ]
    await world.pass_time(hours=25)
    await world.graph.gone.tend()
    assert {await world.state(running_id), await world.state(submitting_id)} == {State.FAILED}
    assert await world.balance() == (1_000, 0)


# ---------------------------------------------------------------------------- once, and what is missing


def once(key: str = "k-1", body: bytes = b"1" * 32) -> Once:
    return Once("POST /admin/tasks/{id}/decisions", key, body)


async def test_a_decision_that_is_sent_again_under_its_key_is_answered_again_and_made_once(
    world: World,
) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    first = await desk.decide(Choice.ATTACH_RESULT, once=once())
    await world.archive_all()
    keys = await stored(world)
    assert await desk.decide(Choice.ATTACH_RESULT, once=once()) == first
    assert await stored(world) == keys
    assert await world.value("SELECT count(*) FROM decisions") == 1
    assert await refused(desk, Choice.ATTACH_RESULT, once=once(body=b"2" * 32)) == (
        422,
        "idempotency-key-reused",
    )
    await world.pass_time(days=31)
    assert await refused(desk, Choice.ATTACH_RESULT, once=once()) == (409, "already-decided")
    await world.graph.retention.prune()
    assert await world.value("SELECT count(*) FROM admin_receipts") == 0


async def test_a_refused_decision_leaves_its_key_free(world: World) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    assert await refused(desk, Choice.ACCEPT_AS_DONE, once=once()) == (409, "nothing-to-accept")
    await desk.decide(Choice.FAIL_AND_RELEASE, once=once())
    assert await desk.state() is State.FAILED


async def test_a_task_that_is_not_there_or_waits_has_nothing_to_decide(world: World) -> None:
    task_id = await world.submit()
    desk = Desk(world, Scripted(NAME), task_id, 1)
    assert await refused(desk, Choice.FAIL_AND_RELEASE) == (409, "not-in-review")
    desk.task_id = world.account_id
    with pytest.raises(RequestError) as caught:
        await desk.decide(Choice.FAIL_AND_RELEASE)
    assert caught.value.status == 404


async def test_a_task_in_review_cannot_be_canceled(world: World) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    with pytest.raises(RequestError) as caught:
        await world.cancel.cancel(world.account_id, desk.task_id)
    assert (caught.value.status, caught.value.problem_code) == (409, "not-cancelable")


@pytest.mark.parametrize(
    ("choice", "reason_code", "note", "pictures", "fields"),
    [
        (Choice.RESUBMIT, "", "long enough to say", 0, ["reason_code"]),
        (Choice.RESUBMIT, "no_result", "long enough to say", 0, ["reason_code"]),
        (Choice.RESUBMIT, "risk_accepted", "  short   ", 0, ["note"]),
        (Choice.RESUBMIT, "risk_accepted", "x" * 2_001, 0, ["note"]),
        (Choice.RESUBMIT, "risk_accepted", "with a NUL \0 in it", 0, ["note"]),
        (Choice.FAIL_AND_RELEASE, "risk_accepted", "", 0, ["reason_code"]),
        (Choice.FAIL_AND_RELEASE, "no_result", "", 1, ["urls"]),
        (Choice.CHECK_AGAIN, "no_result", "", 0, ["reason_code"]),
        (Choice.ATTACH_RESULT, "", "", 0, ["urls"]),
        (Choice.ATTACH_RESULT, "", "", 1, []),
        (Choice.ACCEPT_AS_DONE, "", "", 0, []),
        (Choice.RESUBMIT, "proved_absent", "0123456789", 0, []),
    ],
)
def test_a_decision_says_what_it_must(
    choice: Choice, reason_code: str, note: str, pictures: int, fields: list[str]
) -> None:
    assert [field for field, _ in faults_of(choice, reason_code, note, pictures=pictures)] == fields


@pytest.mark.parametrize(
    "row",
    [
        "'resubmit', '', 'long enough to say', 'admin:x'",
        "'resubmit', 'risk_accepted', 'too short', 'admin:x'",
        "'resubmit', 'operator_decision', 'long enough to say', 'admin:x'",
        "'fail_and_release', '', '', 'admin:x'",
        "'check_again', 'no_result', '', 'admin:x'",
        "'check_again', '', '', ''",
        "'paint_it_red', '', '', 'admin:x'",
    ],
)
async def test_the_database_keeps_no_decision_without_its_reason(world: World, row: str) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    with pytest.raises(Exception, match="decision"):
        await world.rows(
            "INSERT INTO decisions (task_id, attempt, version, review_reason, decision, reason_code, note, decided_by)"
            f" VALUES ($1, 1, 1, 'deadline', {row})",
            desk.task_id,
        )


def test_every_resubmit_reason_is_known_to_the_database_by_the_same_word() -> None:
    assert set(ResubmitReason) == {"proved_absent", "provider_confirmed", "risk_accepted"}


async def test_an_earlier_attempt_is_never_left_open_behind_a_resubmit(world: World) -> None:
    desk = await in_review(world, ReviewReason.SUBMIT_UNCERTAIN)
    await desk.decide(Choice.RESUBMIT)
    desk.provider.submit_does = always_says(accepted(f"{desk.task_id.hex}-2"))
    await world.dispatch(NAME)
    await desk.call_back("running", pictures=0, attempt=2)
    unproved = await world.rows(
        "SELECT task_id FROM attempts AS earlier WHERE outcome = 'abandoned' AND NOT EXISTS ("
        " SELECT FROM decisions WHERE decisions.task_id = earlier.task_id AND decisions.attempt = earlier.number)"
    )
    assert unproved == []


def test_every_choice_has_its_words() -> None:
    assert WORDS.keys() == set(Choice)
    assert OPERATOR.name == "admin:test"
