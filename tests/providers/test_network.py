"""What becomes of a submit when the network, and not the upstream, answers."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
from collections.abc import Callable

import aiohttp
import pytest

from safelight.errors import ConfigurationError, ProviderError, ProviderUnavailable, SubmissionUncertain
from safelight.providers import packaged_declaration
from tests.providers.upstream import ATTEMPT, Upstream, provider_of, raw_upstream, submission


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def sends(raw: bytes) -> Callable[[asyncio.StreamWriter], None]:
    def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return reply


async def test_a_refused_connection_was_certainly_not_sent(session: aiohttp.ClientSession) -> None:
    provider = provider_of("lab-poll", session, f"http://127.0.0.1:{closed_port()}")
    with pytest.raises(ProviderUnavailable) as raised:
        await provider.submit(submission())
    assert raised.value.reason == "not_sent"


async def test_a_name_that_does_not_resolve_was_certainly_not_sent(session: aiohttp.ClientSession) -> None:
    provider = provider_of("lab-poll", session, "http://nowhere.invalid")
    with pytest.raises(ProviderUnavailable) as raised:
        await provider.submit(submission())
    assert raised.value.reason == "not_sent"


async def test_failed_tls_was_certainly_not_sent(session: aiohttp.ClientSession, upstream: Upstream) -> None:
    provider = provider_of("lab-poll", session, upstream.base_url.replace("http:", "https:"))
    with pytest.raises(ProviderUnavailable) as raised:
        await provider.submit(submission())
    assert raised.value.reason == "not_sent"
    assert issubclass(aiohttp.ClientConnectorSSLError, ssl.SSLError)


async def test_no_connection_in_time_was_certainly_not_sent(upstream: Upstream) -> None:
    class NeverConnects(aiohttp.TCPConnector):
        async def _create_connection(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]  # stalls only
            await asyncio.sleep(60)
            raise AssertionError

    async with aiohttp.ClientSession(connector=NeverConnects()) as session:
        provider = provider_of("lab-poll", session, upstream.base_url, timeout_s=0.2)
        with pytest.raises(ProviderUnavailable) as raised:
            await provider.submit(submission())
    assert raised.value.reason == "not_sent"


@pytest.mark.parametrize(
    "reply",
    [
        None,
        abort,
        sends(b""),
        sends(b"HTTP/1.1 202 Accepted\r\nContent-Le"),
        sends(b"HTTP/1.1 202 Accepted\r\nContent-Length: 50\r\n\r\n" + b'{"id": "j1"}'),
        sends(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"),
        sends(b"not http at all\r\n\r\n"),
        sends(b"HTTP/1.1 202 Accepted\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"),
    ],
    ids=["silence", "reset", "closed", "head cut", "body cut", "chunk cut", "no http", "bad gzip"],
)
async def test_no_whole_answer_after_sending_is_uncertain(
    session: aiohttp.ClientSession, reply: Callable[[asyncio.StreamWriter], None] | None
) -> None:
    async with raw_upstream(reply) as base_url:
        with pytest.raises(SubmissionUncertain):
            await provider_of("lab-poll", session, base_url, timeout_s=0.5).submit(submission())


async def test_an_answer_beyond_its_cap_is_uncertain(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    upstream.answers(202, b'{"id": "j1"' + b" " * 5_000 + b"}")
    with pytest.raises(SubmissionUncertain, match="answer_too_large"):
        await provider_of("lab-poll", session, upstream.base_url, max_answer_bytes=4_096).submit(submission())


async def test_a_small_answer_cannot_unpack_without_end(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    bomb = gzip.compress(b'{"id": "j1"' + b" " * 20_000_000 + b"}")
    assert len(bomb) < 40_000
    upstream.answers(202, bomb, {"Content-Encoding": "gzip"})
    with pytest.raises(SubmissionUncertain, match="answer_too_large"):
        await provider_of("lab-poll", session, upstream.base_url, max_answer_bytes=1_000_000).submit(
            submission()
        )


async def test_a_reset_while_polling_says_nothing_about_the_attempt(session: aiohttp.ClientSession) -> None:
    async with raw_upstream(abort) as base_url:
        with pytest.raises(ProviderError) as raised:
            await provider_of("lab-poll", session, base_url).poll(ATTEMPT)
    assert type(raised.value) is ProviderError


async def test_cancelling_the_caller_passes_through(session: aiohttp.ClientSession) -> None:
    async with raw_upstream(None) as base_url:
        call = asyncio.create_task(provider_of("lab-poll", session, base_url).submit(submission()))
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_a_session_with_proxies_from_the_environment_is_refused() -> None:
    async with aiohttp.ClientSession(trust_env=True) as session:
        with pytest.raises(ConfigurationError, match="trust_env"):
            provider_of("lab-poll", session, "http://127.0.0.1:1")


@pytest.mark.parametrize(
    "address", ["", "lab", "ftp://lab", "http://", "http://u:p@lab", "http://lab?x=1", "http://["]
)
async def test_an_address_that_is_none_is_a_configuration_error(
    session: aiohttp.ClientSession, address: str
) -> None:
    assert packaged_declaration("lab-poll").base_url is None
    with pytest.raises(ConfigurationError, match="base_url"):
        provider_of("lab-poll", session, address)
