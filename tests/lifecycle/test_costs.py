"""What an attempt cost: the operator's losses are counted from it, and reconciliation compares it."""

from __future__ import annotations

import asyncio

from safelight.lifecycle.advance import News
from tests.lifecycle.upstreams import call_back, done, finished, signed, still_running, token_of, verdicts
from tests.world import World


async def test_late_callbacks_do_not_change_what_an_attempt_cost(world: World) -> None:
    task_id, record = await finished(world)
    token, paid = token_of(world, task_id), record["cost"]
    assert paid > 0
    await call_back(world, token, signed(record))
    await call_back(
        world, token, signed(still_running(record, cost=0, error={"code": "x", "message": "late"}))
    )
    await call_back(world, token, signed({**record, "status": "failed", "images": [], "cost": 0}))
    assert await world.value("SELECT cost FROM attempts") == paid
    assert await world.value("SELECT excerpt FROM attempts") == ""
    await world.archive_all()
    await call_back(world, token, signed(still_running(record, cost=0, status="queued")))
    assert await world.value("SELECT cost FROM attempts") == paid


async def test_news_that_share_a_commit_leave_the_cost_of_the_ending(world: World) -> None:
    task_id, record = await finished(world)
    token, late = token_of(world, task_id), still_running(record, cost=0)
    await asyncio.gather(*(call_back(world, token, signed(body)) for body in (record, late)))
    assert await world.value("SELECT cost FROM attempts") == record["cost"]


async def test_a_cost_that_only_a_repeat_of_the_ending_tells_is_kept(world: World) -> None:
    task_id, record = await finished(world)
    await world.graph.advance.advance(News(task_id, 1, done()))  # a look that says nothing of it
    assert await world.value("SELECT cost FROM attempts") is None
    await call_back(world, token_of(world, task_id), signed(still_running(record, cost=0)))
    assert await world.value("SELECT cost FROM attempts") is None
    await call_back(world, token_of(world, task_id), signed(record))
    assert await world.value("SELECT cost FROM attempts") == record["cost"]
    assert await verdicts(world) == ["out_of_order", "duplicate"]
