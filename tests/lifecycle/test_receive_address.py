"""Callbacks by their address: whose token it is, and whom the provider's own id names."""

from __future__ import annotations

from uuid import UUID

import pytest

from safelight.domain.task import State
from safelight.errors import CallbackRejected
from tests.lifecycle.invariants import fingerprint
from tests.lifecycle.test_receive import CALLS_BACK, NAME, genuine
from tests.lifecycle.upstreams import (
    Scripted,
    call_back,
    finished,
    install,
    ref_of,
    run_task,
    signed,
    token_of,
    verdicts,
)
from tests.world import World


async def test_an_unknown_token_is_answered_like_any_other_and_leaves_nothing(world: World) -> None:
    task_id, record = await finished(world)
    before = await fingerprint(world)
    token = token_of(world, task_id)
    for strange in (
        "x",
        "A" * 44,
        token[:-1],
        token[:-1] + "é",
        token_of(world, UUID(int=7)),
        token_of(world, task_id, 9),
    ):
        await call_back(world, strange, signed(record))
    assert await fingerprint(world) == before


async def test_a_token_of_another_provider_s_task_changes_nothing(world: World) -> None:
    """Signed with the secret of one provider, naming a task that went to another."""
    task_id = await run_task(world, "lab-poll")
    before = await fingerprint(world)
    body = {"id": (await world.attempt(task_id)).provider_ref, "status": "failed"}
    await call_back(world, token_of(world, task_id), signed(body))
    assert await fingerprint(world) == before
    with pytest.raises(CallbackRejected):
        await call_back(world, token_of(world, task_id), signed(body), provider="lab-poll")
    assert await fingerprint(world) == before


async def test_a_genuine_callback_about_another_task_changes_nothing_at_this_one(world: World) -> None:
    """Else its pictures, which may be another account's, would be delivered here."""
    task_id, _ = await finished(world)
    other_id, record = await finished(world)
    before = await fingerprint(world)
    await call_back(world, token_of(world, task_id), signed(record))
    assert await fingerprint(world) == before
    await call_back(world, token_of(world, other_id), signed(record))
    assert [await world.state(one) for one in (task_id, other_id)] == [State.RUNNING, State.ARCHIVING]
    await world.archive_all()


async def test_pictures_inside_a_callback_about_another_task_are_not_put_down_for_this_one(
    world: World,
) -> None:
    """They would lie where this one's own pictures are put, and be taken for them."""
    install(world, Scripted(NAME, CALLS_BACK))
    task_id, other_id = await run_task(world), await run_task(world)
    about_other = genuine(id=ref_of(f"{other_id.hex}-1"), status="succeeded", pictures=1)
    await call_back(world, token_of(world, task_id), about_other)
    assert [key async for key, *_ in world.graph.context.store.keys("staging/")] == []
    await call_back(world, token_of(world, other_id), about_other)
    (key,) = [key async for key, *_ in world.graph.context.store.keys("staging/")]
    assert str(other_id) in key
    await world.archive_all()
    assert [await world.state(one) for one in (task_id, other_id)] == [State.RUNNING, State.SUCCEEDED]


async def test_without_a_token_the_provider_s_own_id_leads_to_the_task(world: World) -> None:
    task_id, record = await finished(world)
    await call_back(world, None, signed(record))
    assert await world.state(task_id) is State.ARCHIVING
    assert await verdicts(world) == ["applied"]
    await world.archive_all()
