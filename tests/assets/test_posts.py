"""Calls that we make with something to say: to vetted addresses, and never on to another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from safelight.assets.fetch import Fetcher
from safelight.assets.reading import FetchLimits
from safelight.errors import AssetError
from tests.assets.conftest import Stranger

Reply = Callable[..., bytes]


async def test_the_status_comes_back_and_nothing_of_the_body_is_read(
    stranger: Stranger, reply: Reply
) -> None:
    stranger.answers["/told"] = reply(b"x" * 1_000_000, status="202 Accepted")
    stranger.answers["/no"] = reply(b"", status="500 No")
    async with Fetcher([stranger.origin], limits=FetchLimits(max_bytes=10)) as fetcher:
        assert await fetcher.post(f"{stranger.origin}/told", b"{}", {"x-signature": "1"}) == 202
        assert await fetcher.post(f"{stranger.origin}/no", b"{}", {}) == 500


async def test_a_redirect_is_a_status_and_is_not_followed(stranger: Stranger, reply: Reply) -> None:
    stranger.answers["/go"] = reply(status="307 x", Location=f"{stranger.origin}/there")
    stranger.answers["/there"] = reply(b"bytes")
    async with Fetcher([stranger.origin]) as fetcher:
        assert await fetcher.post(f"{stranger.origin}/go", b"{}", {}) == 307
    assert stranger.targets == ["/go"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://10.0.0.1/x",
        "https://169.254.169.254/latest/meta-data",
        "https://[64:ff9b::7f00:1]/x",
        "https://2130706433/x",
        "https://user@pager.example/x",
        "ftp://pager.example/x",
        "https://pager.example:8443/x",
        "https://private.example/x",
    ],
)
async def test_no_address_is_called_that_is_not_public_and_not_allowed(stranger: Stranger, url: str) -> None:
    async def lookup(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    port = stranger.origin.rpartition(":")[2]
    async with Fetcher(lookup=lookup) as fetcher:
        with pytest.raises(AssetError) as caught:
            await fetcher.post(url.format(port=port), b"{}", {})
    assert caught.value.reason in ("address_refused", "bad_url")
    assert stranger.targets == []
