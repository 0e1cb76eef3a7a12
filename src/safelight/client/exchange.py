"""One call to the API: sent, repeated where that is safe, read, and refused as one kind of error."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from safelight.client.errors import ApiError, ClientError, ServiceUnreachable
from safelight.client.pace import gap_before_retry, seconds_of

TIMEOUT = aiohttp.ClientTimeout(total=60.0, sock_connect=10.0, sock_read=30.0)
STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=60.0)
"""Of a stream: the service says every 15 seconds that it lives."""
_KEY = re.compile(r"[\x21-\x7e]+")
LOST = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError)
"""What says that no answer came, or only a part of one."""


@dataclass(frozen=True, slots=True)
class Call:
    """What is sent; `repeat_on` are the statuses after which the very same call is sent again; one
    without any is sent once, whatever happens.

    `timeout_s` is for one try, where the usual time does not do.
    """

    method: str
    path: str
    repeat_on: frozenset[int]
    body: bytes | None = None
    headers: Mapping[str, str] | None = None
    params: Mapping[str, str] | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its JSON object."""

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class Exchange:
    """Calls to one service with one API key; the key is sent to no other address."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self.base_url = base_url.strip().rstrip("/")
        if not _is_address(self.base_url):
            raise ClientError(f"{base_url!r} is no address of a service, such as http://127.0.0.1:8000")
        if not _KEY.fullmatch(api_key.strip()):
            raise ClientError("this is no API key: one is a single word of printable ASCII")
        self._headers = {"Authorization": f"Bearer {api_key.strip()}", "Accept": "application/json"}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, call: Call) -> Answer:
        """Send a call until it is answered for good.

        Raises:
            ApiError: the service refused it.
            ServiceUnreachable: no answer after every try.
        """
        tries = 0
        while True:
            tries += 1
            error: ApiError | ServiceUnreachable
            try:
                return await self._ask_once(call)
            except ApiError as refusal:
                if refusal.status not in call.repeat_on:
                    raise
                error = refusal
            except LOST as loss:
                if not call.repeat_on:
                    raise ServiceUnreachable(f"{self.base_url} gave no answer: {_words(loss)}") from None
                error = ServiceUnreachable(f"{self.base_url} does not answer: {_words(loss)}")
            gap = gap_before_retry(tries, getattr(error, "retry_after_s", None))
            if gap is None:
                raise error
            await asyncio.sleep(gap)

    async def fetch(self, path: str, *, most_bytes: int) -> bytes:
        """Read a body of at most `most_bytes` bytes, and one more if there is more; LOST if it breaks."""
        async with self._open().get(self.base_url + path, allow_redirects=False) as response:
            if response.status != 200:
                raise _refusal(response, await response.read())
            data = bytearray()
            async for piece in response.content.iter_chunked(262_144):
                data += piece
                if len(data) > most_bytes:
                    break
            return bytes(data[: most_bytes + 1])

    @contextlib.asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        most_line: int = 65_536,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that is read while it comes, by lines of `most_line` bytes at most; LOST if it breaks.

        Raises:
            ApiError: the service refused it.
        """
        async with self._open().get(
            self.base_url + path,
            headers=headers,
            params=params,
            allow_redirects=False,
            timeout=STREAM_TIMEOUT,
            read_bufsize=most_line,
        ) as response:
            if not 200 <= response.status < 300:
                raise _refusal(response, await response.read())
            yield response

    async def _ask_once(self, call: Call) -> Answer:
        sent = self._open().request(
            call.method,
            self.base_url + call.path,
            data=call.body,
            headers=call.headers,
            params=call.params,
            allow_redirects=False,
            timeout=TIMEOUT if call.timeout_s is None else aiohttp.ClientTimeout(call.timeout_s),
        )
        async with sent as response:
            data = await response.read()
            if not 200 <= response.status < 300:
                raise _refusal(response, data)
            body = {} if response.status == 204 else _object(data)
            if body is None:
                raise unreadable(response.status)
            return Answer(response.status, response.headers, body)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=TIMEOUT)
        return self._session


def unreadable(status: int) -> ApiError:
    """The error for an answer in which the fields of the API are missing."""
    return ApiError(status, "unreadable-answer", "This answer is not one of safelight. Is the address right?")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _refusal(response: aiohttp.ClientResponse, data: bytes) -> ApiError:
    problem = _object(data) or {}
    if 300 <= response.status < 400:
        problem = {"code": "redirected", "detail": f"The service is at {response.headers.get('Location')}."}
    return ApiError(
        response.status,
        str(problem.get("code") or "unreadable-answer"),
        str(
            problem.get("detail") or problem.get("title") or response.reason or "The service gave no reason."
        ),
        request_id=problem.get("request_id") or response.headers.get("X-Request-Id"),
        retry_after_s=seconds_of(response.headers.get("Retry-After")),
    )


def _object(data: bytes) -> Mapping[str, Any] | None:
    try:
        body = json.loads(data)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _words(loss: Exception) -> str:
    return str(loss) or "the time is up"
