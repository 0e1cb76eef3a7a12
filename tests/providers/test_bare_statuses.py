"""Answers that say everything by their status, and pages that are named by an address."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from safelight.domain.provider import AttemptRef, UpdateStatus
from safelight.errors import ProviderError
from safelight.providers import DeclaredProvider, load_declaration
from tests.providers.upstream import Upstream

TEXT = """
name = "upstream"

[submit]
path = "/v1/jobs"
after_uncertain = "none"
body = { prompt = "{prompt}" }

[answer]
provider_ref = "id"
status = "status"
statuses = { running = "running", done = "succeeded" }
created_at = "at"

[poll]
path = "/v1/jobs/{provider_ref}"
accepted = [200, 202]

[poll.answer]
statuses_by_http = [{ status = 202, means = "running" }]

[cancel]
method = "DELETE"
path = "/v1/jobs/{provider_ref}"
accepted = [200, 204]

[cancel.answer]
statuses_by_http = [{ status = 204, means = "canceled" }]

[list]
path = "/v1/jobs"
query = { after = "{cursor}" }
records = "jobs"
next_cursor = "next"
next_parameter = "after"

[[models]]
name = "m"
price = 1
"""
ATTEMPT = AttemptRef("t1-1", "j1", "m", "generate")
SINCE = datetime.fromtimestamp(1_795_000_000, UTC)


@pytest.fixture
def provider(upstream: Upstream, session: aiohttp.ClientSession) -> DeclaredProvider:
    """An upstream that wastes no words."""
    return DeclaredProvider(
        load_declaration(TEXT),
        credentials={"api_key": SecretStr("key-1")},
        session=session,
        base_url=upstream.base_url,
    )


async def test_an_empty_answer_is_news_where_its_status_stands_for_a_state(
    upstream: Upstream, provider: DeclaredProvider
) -> None:
    upstream.answers(202, b"")
    upstream.answers(204, b"")
    assert (await provider.poll(ATTEMPT)).status is UpdateStatus.RUNNING
    assert await provider.cancel(ATTEMPT)


@pytest.mark.parametrize(("status", "body"), [(200, b""), (202, b"<html>"), (205, b"")])
async def test_any_other_empty_or_strange_answer_says_nothing(
    upstream: Upstream, provider: DeclaredProvider, status: int, body: bytes
) -> None:
    upstream.answers(status, body)
    with pytest.raises(ProviderError):
        await provider.poll(ATTEMPT)


async def test_a_cancel_that_is_answered_with_a_record_is_read_as_ever(
    upstream: Upstream, provider: DeclaredProvider
) -> None:
    upstream.answers(200, {"id": "j1", "status": "done"})
    assert not await provider.cancel(ATTEMPT)


@pytest.mark.parametrize(
    ("following", "cursor"),
    [("https://up.example/v1/jobs?x=1&after=a%2Bb", "a+b"), ("?after=7", "7"), (None, None), ("", None)],
)
async def test_a_cursor_is_a_parameter_of_the_next_pages_address(
    upstream: Upstream, provider: DeclaredProvider, following: Any, cursor: str | None
) -> None:
    upstream.answers(200, {"jobs": [], "next": following})
    page = await provider.list_records(SINCE, SINCE + timedelta(hours=1), None)
    assert page.next_cursor == cursor


@pytest.mark.parametrize("following", ["https://up.example/v1/jobs", "?after=", 7, ["?after=7"]])
async def test_an_address_without_the_parameter_spoils_the_page(
    upstream: Upstream, provider: DeclaredProvider, following: Any
) -> None:
    upstream.answers(200, {"jobs": [], "next": following})
    with pytest.raises(ProviderError, match="bad_cursor"):
        await provider.list_records(SINCE, SINCE + timedelta(hours=1), None)
