"""Webhooks reach their receivers: signed, on schedule, at least once, and told truly."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.lifecycle.invariants import assert_books
from tests.receiver import Mailroom, running_receiver
from tests.world import Server, running_world


@pytest.fixture
async def mail(server: Server) -> AsyncIterator[Mailroom]:
    """A world whose customers may be told at one receiver of this machine."""
    async with (
        running_receiver() as receiver,
        running_world(server, allowed_origins=(receiver.origin,)) as world,
    ):
        yield Mailroom(world, receiver)
        await assert_books(world)


async def test_a_ready_task_is_told_once_in_its_settlement_s_words(mail: Mailroom) -> None:
    secret = await mail.register()
    task_id = await mail.finish_task()
    (outcome,) = await mail.deliver()
    assert outcome.status == 200
    (told,) = mail.receiver.told
    event = told.verified(secret.text)
    task = await mail.world.task(task_id)
    (asset,) = await mail.world.rows("SELECT id FROM assets")
    assert event == {
        "type": "task.ready",
        "timestamp": event["timestamp"],
        "data": {
            "task_id": str(task_id),
            "status": "ready",
            "version": task.version,
            "failure": None,
            "assets": [str(asset["id"])],
            "asset_count": 1,
            "credits": {"captured": 1, "released": 0},
        },
    }
    assert await mail.deliver() == []
    assert await mail.deliveries() == [("delivered", "", 1)]
