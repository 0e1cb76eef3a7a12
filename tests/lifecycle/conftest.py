"""A world for each test of a verb."""

from collections.abc import AsyncIterator

import pytest

from tests.world import Server, World, running_world


@pytest.fixture
async def world(server: Server) -> AsyncIterator[World]:
    async with running_world(server) as made:
        yield made
