"""Wiring of the client's tests: a service that says what it is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.fake_api import FakeApi, running_api


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A fake API over real HTTP."""
    with running_api() as api:
        yield api
