"""Figures, lists of tasks, entries and reconciliation runs through the operator's door."""

from __future__ import annotations

import pytest

from safelight.domain.task import ReviewReason
from tests.api.door import Door
from tests.api.operators import Operator
from tests.api.test_admin_accounts import every
from tests.lifecycle.days import finish_one, go
from tests.lifecycle.reviews import CALLS_BACK, NAME, in_review
from tests.lifecycle.upstreams import Scripted, install, run_task
from tests.world import World


@pytest.fixture
async def operator(gallery: Door) -> Operator:
    return await Operator.at(gallery)


async def test_the_figures_count_what_became_of_every_task(world: World, operator: Operator) -> None:
    provider = install(world, Scripted(NAME, CALLS_BACK))
    ready = await finish_one(world, provider)
    lost = await world.submit()
    await world.cancel.cancel(world.account_id, lost)
    waiting = await world.submit()
    found = (await operator.get("/admin/figures?hours=2")).json
    assert found["states"] == {"succeeded": 1, "canceled": 1, "queued": 1}
    assert found["open"] == {"queued": 1}
    endings = {(one["state"], one["failure_class"]): one["tasks"] for one in found["endings"]}
    assert endings == {("succeeded", None): 1, ("canceled", "canceled"): 1}
    (wait,) = found["waits"]
    assert wait["tasks"] == 1
    assert 0 <= wait["p50_s"] <= wait["p95_s"] <= wait["p99_s"]
    (run,) = found["runs"]
    assert (run["model"], run["runs"]) == (wait["model"], 1)
    assert run["looked_at_after_s"] >= 1.0
    mine = next(key for key in found["providers"] if key["name"] == run["provider"])
    assert (mine["is_closed"], mine["has_callback_alarm"]) == (False, False)
    assert mine["callbacks"]["forged"] == 0
    listed = await every(operator, "/admin/tasks?limit=1")
    assert [one["id"] for one in listed] == [str(waiting), str(lost), str(ready)]


@pytest.mark.parametrize("hours", ["0", "169", "-1", "x", "1.5", "９"])
async def test_figures_of_no_time_or_too_long_a_time_are_refused(operator: Operator, hours: str) -> None:
    answer = await operator.get(f"/admin/figures?hours={hours}")
    assert (answer.status, answer.json["errors"][0]["field"]) == (422, "hours")


async def test_tasks_are_found_by_state_account_provider_and_what_is_stuck(
    world: World, operator: Operator
) -> None:
    running = str(await run_task(world))
    desk = await in_review(world, ReviewReason.DEADLINE)
    listed = {
        words: [one["id"] for one in await every(operator, f"/admin/tasks?{words}")]
        for words in (
            "state=review",
            "which=open",
            "which=stuck",
            "provider=nobody",
            f"account={world.account_id}",
        )
    }
    assert listed == {
        "state=review": [str(desk.task_id)],
        "which=open": [str(desk.task_id), running],
        "which=stuck": [],
        "provider=nobody": [],
        f"account={world.account_id}": [str(desk.task_id), running],
    }
    async with world.database.transaction() as connection:
        await connection.execute("UPDATE tasks SET looks = 3 WHERE id = $1", running)
    assert [one["id"] for one in await every(operator, "/admin/tasks?which=stuck")] == [running]
    for words, field in (("state=gone", "state"), ("which=all", "which"), ("account=me", "account")):
        answer = await operator.get(f"/admin/tasks?{words}")
        assert (answer.status, answer.json["errors"][0]["field"]) == (422, field)


async def test_the_entries_of_an_account_are_its_own(world: World, operator: Operator) -> None:
    await world.submit()
    listed = await every(operator, f"/admin/accounts/{world.account_id}/entries?limit=1")
    assert [one["kind"] for one in listed] == ["hold", "grant"]
    assert await every(operator, f"/admin/accounts/{'0' * 8}-0000-7000-8000-{'0' * 12}/entries") == []


async def test_reconciliation_runs_are_listed_with_their_day(world: World, operator: Operator) -> None:
    provider = install(world, Scripted(NAME, CALLS_BACK))
    await finish_one(world, provider)
    await world.pass_time(hours=30)
    run = await go(world)
    (listed,) = (await operator.get(f"/admin/reconciliations?day={run.day}&provider={run.provider}")).json[
        "data"
    ]
    assert (listed["provider"], listed["day"], listed["mode"]) == (run.provider, str(run.day), run.mode)
    assert listed["counts"] == dict(run.counts)
    assert (await operator.get("/admin/reconciliations?day=2020-01-01")).json["data"] == []
    answer = await operator.get("/admin/reconciliations?day=yesterday")
    assert (answer.status, answer.json["errors"][0]["field"]) == (422, "day")
