"""The composition root: settings in, running object graph out; start and stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import structlog
from pydantic import SecretStr

from safelight.api.app import create_app
from safelight.api.parts import ApiParts
from safelight.api.server import listening, running_api, url_of
from safelight.assets.fetch import Fetcher
from safelight.assets.opening import open_store_of
from safelight.assets.pictures import PictureLimits, PicturePool
from safelight.assets.reading import FetchLimits
from safelight.assets.signing import UrlSigner
from safelight.db import accounts, ledger
from safelight.db.database import Database
from safelight.db.installation import check_secret, is_current, pepper_of
from safelight.db.migrate import migrate, revisions
from safelight.db.opening import direct_url, open_database
from safelight.domain.catalog import Catalog, Model
from safelight.domain.provider import Provider
from safelight.domain.tokens import CallbackTokens
from safelight.errors import ConfigurationError
from safelight.jobs.worker import Worker
from safelight.lab.child import LabChild, start_lab
from safelight.lifecycle.accept import Accept, Cancel
from safelight.lifecycle.advance import Advance
from safelight.lifecycle.archive import Archive
from safelight.lifecycle.check import Check
from safelight.lifecycle.context import Context
from safelight.lifecycle.dispatch import Dispatch
from safelight.lifecycle.pace import Paces
from safelight.lifecycle.receive import Receive
from safelight.lifecycle.settle import Settle
from safelight.lifecycle.sweep import Sweep
from safelight.providers.declared import DeclaredProvider
from safelight.providers.loading import models_of, packaged_declaration
from safelight.settings import Settings, derive_key, load_secret, write_private
from safelight.telemetry import configure_logging

log = structlog.get_logger()

LAB_SHAPES = ("lab-callback", "lab-poll", "lab-sync")
LAB_CREDENTIALS = {"api_key": SecretStr("lab-key"), "callback_secret": SecretStr("lab-secret")}
FIRST_CREDITS = 1_000
LAB_PATIENCE_S = 6.0
LAB_PAUSE_S = 0.5

Announce = Callable[[str], None]


class Graph:
    """Every object of one process, wired; nothing runs yet."""

    def __init__(
        self, settings: Settings, database: Database, secret: bytes, session: aiohttp.ClientSession
    ) -> None:
        self.settings = settings
        self.database = database
        self.secret = secret
        providers, models = _providers(settings, session)
        self.context = Context(
            settings=settings,
            database=database,
            providers=providers,
            catalog=Catalog(models),
            store=open_store_of(settings),
            fetcher=Fetcher(_origins(settings), limits=FetchLimits(max_bytes=settings.max_asset_bytes)),
            pictures=PicturePool(limits=PictureLimits(max_bytes=settings.max_asset_bytes)),
            tokens=CallbackTokens(secret),
            paces=Paces(Catalog(models), providers, has_public_url=settings.public_url is not None),
        )
        self.advance = Advance(self.context)
        self.settle = Settle(database)
        self.dispatch = Dispatch(self.context, self.advance)
        self.check = Check(self.context, self.advance, self.dispatch, self.settle)
        self.archive = Archive(self.context, self.settle)
        self.receive = Receive(self.context, self.advance, self.dispatch)
        self.sweep = Sweep(self.context, self.check)

    def worker(self) -> Worker:
        """The worker of this process."""
        return Worker(self.context, self.dispatch, self.check, self.archive, self.sweep)

    def api_parts(self, revision: str) -> ApiParts:
        """What the HTTP door is made of."""
        context = self.context
        return ApiParts(
            settings=self.settings,
            database=self.database,
            catalog=context.catalog,
            accept=Accept(self.database, self.settings),
            cancel=Cancel(self.database),
            receive=self.receive,
            store=context.store,
            pictures=context.pictures,
            signer=UrlSigner(derive_key(self.secret, "asset links"), key_id="1"),
            pepper=pepper_of(self.secret),
            is_ready=lambda: is_current(self.database, revision),
        )

    async def aclose(self) -> None:
        """Let go of everything the graph opened."""
        await self.context.fetcher.aclose()
        await self.context.pictures.aclose()
        await self.context.store.aclose()


async def run_serve(settings: Settings, *, announce: Announce) -> None:
    """Embedded database, lab (when no provider is configured), API and worker, until SIGTERM or SIGINT."""
    async with (
        _until_stopped() as stop,
        _lab(settings, announce) as with_lab,
        listening(with_lab) as listener,
    ):
        placed = _with_own_address(with_lab, listener)
        async with _graph(placed) as (graph, revision):
            await _make_first_account(graph)
            app = create_app(graph.api_parts(revision))
            async with _running_worker(graph), running_api(app, placed, listener):
                url = url_of(placed, listener)
                with _told_address(settings, url):
                    announce(f"safelight is ready at {url}")
                    await stop.wait()


async def run_api(settings: Settings, *, announce: Announce) -> None:
    """The HTTP door alone."""
    async with (
        _until_stopped() as stop,
        listening(settings) as listener,
        _graph(settings) as (graph, revision),
        running_api(create_app(graph.api_parts(revision)), settings, listener),
    ):
        announce(f"the API is ready at {url_of(settings, listener)}")
        await stop.wait()


async def run_worker(settings: Settings, *, announce: Announce) -> None:
    """A worker alone."""
    async with _until_stopped() as stop, _graph(settings) as (graph, _), _running_worker(graph):
        announce("the worker is ready")
        await stop.wait()


async def run_migrate(settings: Settings) -> str:
    """Bring the database to this version; returns its revision."""
    return await migrate(await direct_url(settings))


def _providers(settings: Settings, session: aiohttp.ClientSession) -> tuple[dict[str, Provider], list[Model]]:
    if settings.lab_url is None:
        raise ConfigurationError(
            "no provider is configured: start `safelight serve`, or set SAFELIGHT_LAB_URL"
        )
    providers: dict[str, Provider] = {}
    models: list[Model] = []
    for name in LAB_SHAPES:
        declaration = packaged_declaration(name, values={"lab_url": settings.lab_url})
        providers[name] = DeclaredProvider(
            declaration, credentials=LAB_CREDENTIALS, session=session, base_url=settings.lab_url
        )
        models.extend(models_of(declaration))
    return providers, models


def _origins(settings: Settings) -> tuple[str, ...]:
    return (*settings.allowed_origins, *([settings.lab_url] if settings.lab_url else []))


@contextlib.asynccontextmanager
async def _graph(settings: Settings) -> AsyncIterator[tuple[Graph, str]]:
    configure_logging(settings.log_level, settings.log_format)
    secret = load_secret(settings)
    revision = revisions()[-1]
    async with open_database(settings) as database:
        await check_secret(database, secret)
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=60)
        async with aiohttp.ClientSession(
            connector=connector, trust_env=False, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            graph = Graph(settings, database, secret, session)
            watch = _watch_database(settings)
            try:
                yield graph, revision
            finally:
                watch.cancel()
                await graph.aclose()


@contextlib.asynccontextmanager
async def _lab(settings: Settings, announce: Announce) -> AsyncIterator[Settings]:
    """The lab as a child, unless one runs elsewhere; its address goes into the settings."""
    if settings.lab_url is not None:
        yield settings
        return
    child = await _start_lab(settings, announce)
    try:
        announce(f"the lab answers at {child.url}")
        yield settings.model_copy(update={"lab_url": child.url})
    finally:
        await child.stop()


async def _start_lab(settings: Settings, announce: Announce) -> LabChild:
    """Start it; the lab of a killed predecessor needs a moment to give its port and its ledger back."""
    patient_until = time.monotonic() + LAB_PATIENCE_S
    is_told = False
    while True:
        try:
            return await start_lab(
                host="127.0.0.1",
                port=settings.lab_port,
                data_dir=settings.data_dir / "lab",
                knobs=settings.lab_knobs,
            )
        except OSError as error:
            if "in use" not in str(error) or time.monotonic() > patient_until:
                raise ConfigurationError(_why_no_lab(settings, str(error))) from None
            if not is_told:
                announce("waiting for another lab to end")
                is_told = True
            await asyncio.sleep(LAB_PAUSE_S)


def _why_no_lab(settings: Settings, words: str) -> str:
    if "ledger" in words:
        return f"another `safelight serve` runs on {settings.data_dir}"
    return f"the lab does not start on port {settings.lab_port}: {words}"


@contextlib.contextmanager
def _told_address(settings: Settings, url: str) -> Iterator[None]:
    """The commands find the service by this file while it runs."""
    path = settings.data_dir / "url"
    write_private(path, url)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.read_text(encoding="utf-8").strip() == url:
                path.unlink()


def _watch_database(settings: Settings) -> asyncio.Task[None]:
    """The embedded server is restarted when it dies; a configured one is somebody else's."""
    if settings.database_url is not None:
        return asyncio.create_task(asyncio.sleep(0))
    from safelight.db.embedded import watch_embedded

    return asyncio.create_task(watch_embedded(settings.data_dir), name="watch-database")


@contextlib.asynccontextmanager
async def _running_worker(graph: Graph) -> AsyncIterator[None]:
    worker = graph.worker()
    await worker.start()
    try:
        yield
    finally:
        await worker.stop()


@contextlib.asynccontextmanager
async def _until_stopped() -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _with_own_address(settings: Settings, listener: socket.socket) -> Settings:
    """The lab runs on this machine, so that it reaches us at our own address if no other is set."""
    if settings.public_url is not None:
        return settings
    return settings.model_copy(update={"public_url": url_of(settings, listener)})


async def _make_first_account(graph: Graph) -> None:
    """Account `default` with its credits, and a key for the commands; a lost key file is made anew."""
    key_file: Path = graph.settings.data_dir / "key"
    has_key_file = await asyncio.to_thread(key_file.exists)
    async with graph.database.transaction() as connection:
        account_id = await accounts.find_account(connection, accounts.FIRST_ACCOUNT)
        if account_id is None:
            account_id = await accounts.create_account(connection, accounts.FIRST_ACCOUNT)
            await ledger.grant(connection, account_id, FIRST_CREDITS, note="first start")
        if has_key_file:
            return
        key = await accounts.create_key(connection, account_id, "first key", pepper_of(graph.secret))
    write_private(key_file, key)
