"""A world for each test of a verb; when the test is over, its books must be in order."""

from collections.abc import AsyncIterator

import pytest

from tests.lifecycle.invariants import assert_books
from tests.receiver import Mailroom, running_mailroom
from tests.world import Server, World, running_world

NOBODY_LISTENS = "http://127.0.0.1:9"


@pytest.fixture
async def world(server: Server) -> AsyncIterator[World]:
    """Callback addresses are sent, but the lab keeps quiet: a test signs the callbacks that it wants."""
    async with running_world(server, knobs={"callback_loss": 1}, public_url=NOBODY_LISTENS) as made:
        yield made
        await assert_books(made)


@pytest.fixture
async def mail(server: Server) -> AsyncIterator[Mailroom]:
    """A world whose customers may be told."""
    async with running_mailroom(server) as made:
        yield made
        await assert_books(made.world)
