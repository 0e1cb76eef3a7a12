"""Serves the door: a listening socket, uvicorn on it, and the address that others reach it at."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn
from fastapi import FastAPI

from safelight.api.wire import BoundedProtocol
from safelight.errors import ConfigurationError
from safelight.settings import Settings

EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - recognised, not chosen
START_PAUSE_S = 0.01
SILENT_MS = 60_000
"""How long the system waits for a peer that takes nothing and acknowledges nothing, before it gives it up."""


@contextlib.asynccontextmanager
async def listening(settings: Settings) -> AsyncIterator[socket.socket]:
    """The bound socket, before anything else starts: a taken port is known at once.

    Raises:
        ConfigurationError: the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Inherited by every connection: a peer that vanished, or never reads, holds nothing for a quarter of an hour.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_MS)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}"
        ) from None
    try:
        yield listener
    finally:
        listener.close()


def url_of(settings: Settings, listener: socket.socket) -> str:
    """The base URL under which this machine reaches the socket."""
    host = "127.0.0.1" if settings.host in EVERYWHERE else settings.host
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


@contextlib.asynccontextmanager
async def running_api(app: FastAPI, settings: Settings, listener: socket.socket) -> AsyncIterator[None]:
    """The app answers inside the context; at the end running requests get 5 s, and held ones are answered at once."""
    server = _Server(
        uvicorn.Config(
            app,
            http=BoundedProtocol,
            log_level="error",  # what it warns of, an unreadable request, is in our own log
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=5,
            timeout_keep_alive=30,
            backlog=2048,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="api")
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(START_PAUSE_S)
        yield
    finally:
        app.state.waiting.let_go()
        app.state.live.let_go()
        server.should_exit = True
        await serving


class _Server(uvicorn.Server):
    """uvicorn without signal handlers of its own: stopping is decided by the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
