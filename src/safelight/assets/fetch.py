"""The one fetcher for every URL that a stranger can influence."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from types import TracebackType
from typing import Self, TypeVar

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from safelight.assets.addresses import classify
from safelight.assets.reading import FetchLimits, Posted, read_body, read_posted
from safelight.assets.urls import Origin, Target, follow, parse_origins, parse_target
from safelight.errors import AssetError

T = TypeVar("T")

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_EMPTY = frozenset((HTTPStatus.NO_CONTENT, HTTPStatus.RESET_CONTENT))
_GONE = frozenset((HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE))
_PASSING = frozenset((HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS))
_HEADERS = {"Accept": "image/*,*/*;q=0.1", "Accept-Encoding": "identity", "User-Agent": "safelight"}


class Fetcher:
    """Fetches over https from public addresses, and from the operator's `allowed_origins` exactly.

    Every name is resolved once, every answer and every single connect is vetted, redirects are followed
    by hand under the same rules. All failures are AssetError; no path or query ever appears in one.

        async with Fetcher(["http://127.0.0.1:8001"]) as fetcher:
            data = await fetcher.fetch("http://127.0.0.1:8001/results/1.png")
    """

    def __init__(
        self,
        allowed_origins: Collection[str] = (),
        *,
        limits: FetchLimits | None = None,
        lookup: Lookup | None = None,
        ssl_context: ssl.SSLContext | None = None,
        names_at_once: int = 8,
    ) -> None:
        self._allowed = parse_origins(allowed_origins)
        self._limits = limits or FetchLimits()
        self._ssl: ssl.SSLContext | bool = ssl_context or True
        # Threads of its own: names that hang must not hold up anybody else's threads.
        self._threads = ThreadPoolExecutor(names_at_once, thread_name_prefix="safelight-names")
        self._lookup = lookup or self._look_up
        self._slots = asyncio.Semaphore(self._limits.connections)
        self._sessions: dict[Origin | None, aiohttp.ClientSession] = {}

    async def fetch(self, url: str) -> bytes:
        """The bytes behind `url`, complete and unpacked; AssetError otherwise."""
        target = parse_target(url, max_characters=self._limits.url_characters)
        return await self._guard(target, self._fetch_hops)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Send `body` to `url` and return the status; nothing of the answer is read, no redirect is followed."""
        target = parse_target(url, max_characters=self._limits.url_characters)

        async def send(target: Target) -> int:
            session = self._session(target.origin)
            async with session.post(target.url, data=body, headers=headers, allow_redirects=False) as answer:
                return answer.status

        return await self._guard(target, send)

    async def exchange(self, url: str, body: bytes, headers: Mapping[str, str]) -> Posted:
        """Send `body` to `url` and return the beginning of the answer; no redirect is followed.

        A body that drips, breaks off or never ends takes nothing away from a status that has come.
        """
        target = parse_target(url, max_characters=self._limits.url_characters)

        async def send(target: Target) -> Posted:
            session = self._session(target.origin)
            # From the name to the last header: what drips them must not outlast the limit of a single byte.
            async with asyncio.timeout(self._limits.first_byte_s):
                answer = await session.post(target.url, data=body, headers=headers, allow_redirects=False)
            async with answer:
                return await read_posted(answer, self._limits)

        return await self._guard(target, send)

    async def check(self, url: str) -> None:
        """Look at an address without calling it: its form, its port, and every address of its name."""
        target = parse_target(url, max_characters=self._limits.url_characters)

        async def look(target: Target) -> None:
            trusted = target.origin if target.origin in self._allowed else None
            if not target.is_literal:
                resolver = _VettingResolver(self._lookup, self._limits.resolve_s, trusted)
                await resolver.resolve(target.origin.host, target.origin.port)

        await self._guard(target, look)

    async def _guard(self, target: Target, work: Callable[[Target], Awaitable[T]]) -> T:
        self._vet(target)
        async with self._slots:
            try:
                async with asyncio.timeout(self._limits.total_s):
                    return await work(target)
            except AssetError:
                raise
            except TimeoutError:
                raise AssetError("timeout", f"{target.origin} took too long", is_retryable=True) from None
            except (aiohttp.ClientError, OSError) as error:
                # The cause is cut off: its text may hold the whole URL.
                raise _explain(target, error) from None

    async def aclose(self) -> None:
        """Close all connections; the fetcher cannot be used afterwards."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _fetch_hops(self, target: Target) -> bytes:
        for _ in range(self._limits.redirects + 1):
            response = await self._ask(target)
            async with response:
                if response.status not in _REDIRECTS:
                    _check_status(response.status, target)
                    return await read_body(response, self._limits)
                location = response.headers.get("Location", "")
                response.close()
            if not location:
                raise AssetError("upstream", f"{target.origin} redirects to nowhere", is_retryable=False)
            target = follow(target, location, max_characters=self._limits.url_characters)
            self._vet(target)
        raise AssetError("upstream", "too many redirects", is_retryable=False)

    async def _ask(self, target: Target) -> aiohttp.ClientResponse:
        limits = self._limits
        # The socket's own limit restarts with every byte, so headers that drip need one more around it.
        async with asyncio.timeout(limits.resolve_s + limits.connect_s + limits.first_byte_s):
            return await self._session(target.origin).get(target.url, allow_redirects=False)

    def _vet(self, target: Target) -> None:
        """Refuse what can be refused before any name is looked up."""
        origin = target.origin
        if origin in self._allowed:
            return
        if target.is_literal and (reason := classify(origin.host)):
            raise _refused(reason)
        if origin.scheme != "https" or origin.port != 443:
            raise AssetError("bad_url", "only https on port 443 is allowed", is_retryable=False)

    def _session(self, origin: Origin) -> aiohttp.ClientSession:
        """Allowed origins have connections of their own, so that their trust cannot leak to other hosts."""
        trusted = origin if origin in self._allowed else None
        session = self._sessions.get(trusted)
        if session is None:
            session = self._sessions[trusted] = self._open_session(trusted)
        return session

    def _open_session(self, trusted: Origin | None) -> aiohttp.ClientSession:
        limits = self._limits
        connector = aiohttp.TCPConnector(
            ssl=self._ssl,
            resolver=_VettingResolver(self._lookup, limits.resolve_s, trusted),
            use_dns_cache=False,
            limit=0,
            socket_factory=_vetting_factory(trusted),
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers=_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=limits.connect_s, sock_read=limits.first_byte_s
            ),
        )

    async def _look_up(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _getaddrinfo, host, port)


class _VettingResolver(AbstractResolver):
    """Resolves a name once and refuses it whole if a single answer is denied."""

    def __init__(self, lookup: Lookup, timeout_s: float, trusted: Origin | None) -> None:
        self._lookup = lookup
        self._timeout_s = timeout_s
        self._trusted = trusted

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        async with asyncio.timeout(self._timeout_s):
            addresses = await self._lookup(host, port)
        if not addresses:
            raise OSError("the name has no address")
        for address in addresses:
            if self._trusted is None and (reason := classify(address)):
                raise _refused(reason)
        return [_resolved(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Nothing to close: the threads belong to the fetcher."""


class _DeniedSocketError(OSError):
    """No socket for this address. An OSError, because aiohappyeyeballs 2.7 swallows all others."""


def _vetting_factory(trusted: Origin | None) -> Callable[[aiohttp.AddrInfoType], socket.socket]:
    """Make sockets only for vetted addresses: the last gate, whatever the resolver said."""
    port = trusted.port if trusted else 443

    def make_socket(addr_info: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, sockaddr = addr_info
        if sockaddr[1] != port or (trusted is None and classify(str(sockaddr[0]))):
            raise _DeniedSocketError("the last gate is closed")
        return socket.socket(family, kind, protocol)

    return make_socket


def _getaddrinfo(host: str, port: int) -> list[str]:
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in answers))


def _resolved(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)


def _check_status(status: int, target: Target) -> None:
    if status == HTTPStatus.OK:
        return
    detail = f"{target.origin} answered {status}"
    if status in _EMPTY:
        raise AssetError("empty", detail, is_retryable=True)
    if status in _GONE:
        raise AssetError("expired", detail, is_retryable=False)
    raise AssetError("upstream", detail, is_retryable=status in _PASSING or status >= 500)


def _refused(reason: str) -> AssetError:
    return AssetError("address_refused", f"the address is denied: {reason}", is_retryable=False)


def _explain(target: Target, error: Exception) -> AssetError:
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, _DeniedSocketError):
        return _refused("found out at connect time")
    if isinstance(error, aiohttp.ClientSSLError):
        detail = f"{target.origin} has no certificate that we trust ({type(error).__name__})"
        return AssetError("tls", detail, is_retryable=True)
    if isinstance(error, aiohttp.ClientResponseError):
        return AssetError("upstream", f"{target.origin} answers no valid HTTP", is_retryable=True)
    detail = f"{target.origin} cannot be reached ({type(error).__name__})"
    return AssetError("unreachable", detail, is_retryable=True)
