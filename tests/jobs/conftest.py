"""A world for each test of the worker; when the test is over, its books must be in order."""

from collections.abc import AsyncIterator

import pytest

from tests.lifecycle.invariants import assert_books
from tests.receiver import Mailroom, running_mailroom
from tests.world import Server, World, running_world


@pytest.fixture
async def world(server: Server) -> AsyncIterator[World]:
    """Without callbacks, and with loops that turn quickly."""
    async with running_world(
        server, knobs={"callback_loss": 1}, poll_interval_s=0.05, sweep_interval_s=0.2
    ) as made:
        yield made
        await assert_books(made)


@pytest.fixture
async def mail(server: Server) -> AsyncIterator[Mailroom]:
    """A world whose customers may be told."""
    async with running_mailroom(server) as made:
        yield made
        await assert_books(made.world)
