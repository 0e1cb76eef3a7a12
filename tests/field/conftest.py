"""What the field cases share: a scene, the log, and a scripted upstream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import cast

import pytest
from structlog.testing import capture_logs

from safelight.telemetry import set_fault_hook
from tests.assets.conftest import _reply, canary, connects, stranger  # noqa: F401 - fixtures of these tests too
from tests.field.scene import Line, Scene, running_scene
from tests.providers.upstream import Upstream, running_upstream
from tests.world import Server


@pytest.fixture
async def scene(server: Server) -> AsyncIterator[Scene]:
    """One installation with its lab."""
    async with running_scene(server) as made:
        yield made


@pytest.fixture
def logs() -> Iterator[list[Line]]:
    """What is logged during the test."""
    with capture_logs() as lines:
        yield cast("list[Line]", lines)


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    """An upstream that answers what a test tells it."""
    async with running_upstream() as running:
        yield running


@pytest.fixture
def no_fault_left() -> Iterator[None]:
    """A fault that a test has planted ends with it."""
    yield
    set_fault_hook(None)
