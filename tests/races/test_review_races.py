"""Two people at one task in review, or a person and the news: the first counts, and the second is told."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from safelight.domain.review import Choice
from safelight.errors import RequestError
from safelight.lifecycle.once import Once
from safelight.lifecycle.review import Ruling
from tests.lifecycle.upstreams import picture
from tests.races.rivals import REPETITIONS, race
from tests.races.rounds import FAIL, deciding, in_review
from tests.races.test_two_at_one_row import both_orders
from tests.world import World

RESUBMIT = {"reason_code": "risk_accepted", "note": "the shop waits for it"}
ATTACH = {"files": [picture()]}


@both_orders
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ((Choice.FAIL_AND_RELEASE, FAIL), (Choice.RESUBMIT, RESUBMIT)),
        ((Choice.FAIL_AND_RELEASE, FAIL), (Choice.ATTACH_RESULT, ATTACH)),
        ((Choice.RESUBMIT, RESUBMIT), (Choice.ATTACH_RESULT, ATTACH)),
        ((Choice.FAIL_AND_RELEASE, FAIL), (Choice.FAIL_AND_RELEASE, FAIL)),
    ],
    ids=["fail, resubmit", "fail, attach", "resubmit, attach", "fail, fail"],
)
async def test_of_two_people_who_decide_the_first_counts_and_the_second_is_told(
    world: World, one: tuple[Choice, Any], two: tuple[Choice, Any], is_swapped: bool
) -> None:
    pair = (two, one) if is_swapped else (one, two)
    for _ in range(REPETITIONS):
        task_id, version = await in_review(world)
        verbs = [
            deciding(world, Ruling(task_id, version, choice, **words), who)
            for (choice, words), who in zip(pair, ("admin:anna", "admin:bert"), strict=True)
        ]
        won, lost = await race(world, *verbs)
        assert won["decision"] == pair[0][0]
        assert isinstance(lost, RequestError)
        assert (lost.status, lost.problem_code) == (409, "already-decided")
        assert "admin:anna" in lost.detail
        rows = await world.rows("SELECT decided_by FROM decisions WHERE task_id = $1", task_id)
        assert [row["decided_by"] for row in rows] == ["admin:anna"]
        lines = await world.rows("SELECT actor FROM audit_lines WHERE object = $1", f"task:{task_id}")
        assert [row["actor"] for row in lines] == ["admin:anna"]
        staged = [key async for key, _, _ in world.graph.context.store.keys(f"staging/{task_id}")]
        assert len(staged) == (1 if pair[0][0] is Choice.ATTACH_RESULT else 0), "the loser's bytes are gone"
        with contextlib.suppress(RequestError):  # what was resubmitted is not to be sent
            await world.cancel.cancel(world.account_id, task_id)


async def test_of_two_requests_with_one_key_the_second_replays_the_first(world: World) -> None:
    for number in range(REPETITIONS):
        task_id, version = await in_review(world)
        ruling = Ruling(task_id, version, Choice.FAIL_AND_RELEASE, reason_code="no_result")
        once = Once("decisions", f"key-{number}", b"1" * 32)
        verb = deciding(world, ruling, "admin:anna", once=once)
        first, second = await race(world, verb, verb)
        assert (first["is_replayed"], second["is_replayed"]) == (False, True)
        assert {**first, "is_replayed": True} == second


async def test_lines_of_the_audit_log_that_are_written_at_once_make_one_chain(world: World) -> None:
    from safelight.db.auditlog import verify_chain

    for number in range(REPETITIONS):
        pair = [await in_review(world) for _ in range(2)]
        verbs = [
            deciding(world, Ruling(task_id, version, Choice.CHECK_AGAIN), f"admin:{number}")
            for task_id, version in pair
        ]
        first, second = await race(world, *verbs)
        assert first["decision"] == second["decision"] == "check_again"
    async with world.database.connection() as connection:
        chain = await verify_chain(connection)
    assert (chain.lines, chain.broken_id) == (2 * REPETITIONS, None)
