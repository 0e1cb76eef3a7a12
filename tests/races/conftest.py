"""A world for each race, and the doctor's word on it afterwards."""

from collections.abc import AsyncIterator

import pytest

from safelight.lifecycle.doctor import examine
from tests.world import Server, World, running_world


@pytest.fixture
async def world(server: Server) -> AsyncIterator[World]:
    """A database, a lab and every verb; whatever raced in it, its books are true at the end."""
    async with running_world(server) as made:
        yield made
        findings = [
            f"{finding.check}: {finding.subject} {finding.detail}"
            async for finding in examine(made.database, made.graph.context.store, with_bytes=False)
            if not finding.is_information
        ]
        assert findings == []
