"""What the provider tests share: one session and one scripted upstream a test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.providers.upstream import Upstream, running_upstream


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """A session as the composition root opens it: no cookies, no proxies."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as opened:
        yield opened


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    """A scripted upstream."""
    async with running_upstream() as running:
        yield running
