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

from safelight.api.app import create_app
from safelight.api.parts import ApiParts
from safelight.api.server import listening, running_api, url_of
from safelight.assets.fetch import Fetcher
from safelight.assets.inputlinks import InputLinks
from safelight.assets.opening import open_store_of
from safelight.assets.pictures import PictureLimits, PicturePool
from safelight.assets.reading import FetchLimits
from safelight.assets.signing import UrlSigner
from safelight.assets.urls import Origin, parse_target
from safelight.db import accounts, ledger
from safelight.db.database import Database
from safelight.db.installation import admin_pepper_of, check_secret, is_current, pepper_of
from safelight.db.migrate import migrate, revisions
from safelight.db.opening import direct_url, open_database
from safelight.db.sessions import Holder
from safelight.domain.audit import Actor
from safelight.domain.keys import parse_key
from safelight.domain.provider import Provider
from safelight.domain.sealing import Sealer
from safelight.domain.tokens import CallbackTokens
from safelight.errors import ConfigurationError
from safelight.jobs.worker import Worker
from safelight.lab.child import LabChild, start_lab
from safelight.lifecycle.accept import Accept, Cancel
from safelight.lifecycle.administration import Administration
from safelight.lifecycle.advance import Advance
from safelight.lifecycle.alert import Alerts
from safelight.lifecycle.archive import Archive
from safelight.lifecycle.attach import Attach
from safelight.lifecycle.batches import Batches
from safelight.lifecycle.check import Check
from safelight.lifecycle.context import Context
from safelight.lifecycle.dispatch import Dispatch
from safelight.lifecycle.endpoints import Endpoints
from safelight.lifecycle.gone import Gone
from safelight.lifecycle.inputs import Inputs, limits_of_inputs
from safelight.lifecycle.looks import Looks
from safelight.lifecycle.notices import Watch
from safelight.lifecycle.notify import Notify
from safelight.lifecycle.pace import Paces
from safelight.lifecycle.receive import Receive
from safelight.lifecycle.reconcile import Reconcile
from safelight.lifecycle.restore import mark_restored
from safelight.lifecycle.retention import Erase, Retention
from safelight.lifecycle.review import Review
from safelight.lifecycle.routing import Routing
from safelight.lifecycle.sessions import Sessions, studio_link
from safelight.lifecycle.settle import Settle
from safelight.lifecycle.sweep import Sweep
from safelight.lifecycle.uploads import Uploads
from safelight.providers.building import build_provider
from safelight.settings import Settings, derive_key, load_secret, write_private
from safelight.telemetry import configure_logging
from safelight.upstreams import ProviderKey, Upstreams, read_keys, read_upstreams

log = structlog.get_logger()

FIRST_CREDITS = 1_000
RECONCILE_ROUND_S = 60.0
WATCH_ROUND_S = 60.0
ALERT_ROUND_S = 5.0
"""How often it is asked whether there is something to tell; the calls themselves are a minute apart."""
ENOUGH_FILES = 16_384
LAB_PATIENCE_S = 6.0
LAB_PAUSE_S = 0.5

Announce = Callable[[str], None]


def make_context(
    settings: Settings,
    database: Database,
    secret: bytes,
    session: aiohttp.ClientSession,
    upstreams: Upstreams,
) -> Context:
    """What every verb needs, made of what is enabled."""
    catalog = upstreams.catalog
    providers = {key.name: make_provider(key, session) for key in upstreams.keys}
    routing = Routing(catalog, upstreams.names)
    return Context(
        settings=settings,
        database=database,
        providers=providers,
        catalog=catalog,
        store=open_store_of(settings),
        fetcher=Fetcher(
            (*settings.allowed_origins, *upstreams.origins),
            limits=FetchLimits(max_bytes=settings.max_asset_bytes),
        ),
        pictures=PicturePool(limits=PictureLimits(max_bytes=settings.max_asset_bytes)),
        tokens=CallbackTokens(secret),
        links=InputLinks(derive_key(secret, "input links")),
        paces=Paces(
            catalog,
            providers,
            routing,
            has_public_url=settings.public_url is not None,
            observed=[name for name, table in settings.providers.items() if table.mode == "observe"],
        ),
        routing=routing,
    )


class Graph:
    """Every object of one process, wired; nothing runs yet.

    `upstreams` are those that the settings enable, unless others are given.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        secret: bytes,
        session: aiohttp.ClientSession,
        *,
        upstreams: Upstreams | None = None,
    ) -> None:
        self.settings = settings
        self.database = database
        self.secret = secret
        upstreams = upstreams or read_upstreams(settings)
        self.context = make_context(settings, database, secret, session, upstreams)
        routing, providers = self.context.routing, self.context.providers
        self.advance = Advance(self.context)
        self.settle = Settle(database)
        self.dispatch = Dispatch(self.context, self.advance)
        self.check = Check(self.context, self.advance, self.dispatch, self.settle)
        self.archive = Archive(self.context, self.settle)
        self.reconcile = Reconcile(self.context, self.advance, self.dispatch)
        self.receive = Receive(self.context, self.advance, self.dispatch)
        self.gone = Gone(
            self.context, self.advance, self.settle, Looks(self.context, self.advance, self.dispatch)
        )
        store, pictures, fetcher = self.context.store, self.context.pictures, self.context.fetcher
        attach = Attach(store, pictures, fetcher, max_bytes=settings.max_asset_bytes)
        self.review = Review(database, attach, routing, start_by_s=settings.start_by_s)
        self.administration = Administration(database, pepper_of(secret), admin_pepper_of(secret))
        self.sessions = Sessions(database, pepper_of(secret))
        self.alerts = Alerts(database, settings)
        self.watch = Watch(self.context)
        sealer = Sealer(derive_key(secret, "webhook secrets"))
        own = own_origins(settings)
        # Customers may not reach the origins of results: only what the operator allows by name.
        allowed = settings.allowed_origins
        self.notify = Notify(database, sealer, allowed_origins=allowed, own_origins=own)
        self.endpoints = Endpoints(database, sealer, allowed_origins=allowed, own_origins=own)
        self.sweep = Sweep(self.context, self.check)
        self.uploads = Uploads(database, self.context.store, self.context.pictures, settings)
        self.retention = Retention(database, self.context.store, settings)
        # A fetcher of their own: customers may not reach the origins of results, such as the lab.
        self._input_fetcher = Fetcher(settings.allowed_origins, limits=limits_of_inputs(settings))
        self.batches = Batches(database, settings, routing)
        self.inputs = Inputs(self.uploads, self._input_fetcher, settings, providers)

    def worker(self) -> Worker:
        """The worker of this process."""
        return Worker(
            self.context,
            self.dispatch,
            self.check,
            self.archive,
            self.sweep,
            retention=self.retention,
            notify=self.notify,
            rounds=[
                ("expire", self.settings.sweep_interval_s, self.uploads.expire),
                ("gone", self.settings.sweep_interval_s, self.gone.tend),
                ("batches", self.settings.sweep_interval_s, self.batches.step),
                ("alert", ALERT_ROUND_S, self.alerts.tell),
                ("reconcile", RECONCILE_ROUND_S, self.reconcile.step),
                ("watch", WATCH_ROUND_S, self.watch.step),
            ],
        )

    def api_parts(self, revision: str) -> ApiParts:
        """What the HTTP door is made of."""
        context = self.context
        return ApiParts(
            settings=self.settings,
            database=self.database,
            catalog=context.catalog,
            accept=Accept(self.database, self.settings, context.routing),
            batches=self.batches,
            cancel=Cancel(self.database),
            erase=Erase(self.database, context.store),
            receive=self.receive,
            uploads=self.uploads,
            inputs=self.inputs,
            links=context.links,
            store=context.store,
            pictures=context.pictures,
            signer=UrlSigner(derive_key(self.secret, "asset links"), key_id="1"),
            review=self.review,
            administration=self.administration,
            paces=context.paces,
            routing=context.routing,
            endpoints=self.endpoints,
            sessions=self.sessions,
            providers=tuple(context.providers),
            pepper=pepper_of(self.secret),
            is_ready=lambda: is_current(self.database, revision),
        )

    async def aclose(self) -> None:
        """Let go of everything the graph opened."""
        await self.receive.aclose()
        await self.alerts.aclose()
        await self.notify.aclose()
        await self.endpoints.aclose()
        await self.context.fetcher.aclose()
        await self._input_fetcher.aclose()
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
            await _make_first_admin_key(graph)
            app = create_app(graph.api_parts(revision))
            url = url_of(placed, listener)
            # Before the door opens: once it is open, a database that dies must not end the service.
            studio = await _studio_line(graph, placed.public_url or url)
            with _told_address(settings.data_dir / "url", url):
                async with _running_worker(graph), running_api(app, placed, listener):
                    announce(f"safelight is ready at {url}")
                    announce(studio)
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


async def run_migrate(settings: Settings, *, must_exist: bool = False) -> str:
    """Bring the database to this version, with `must_exist` none is made; returns its revision."""
    return await migrate(await direct_url(settings, must_exist=must_exist))


async def run_after_restore(settings: Settings, *, by: str) -> int:
    """Let what may have been sent since the backup be looked for before it is sent; how many tasks these are."""
    async with open_database(settings, must_exist=True) as database:
        return await mark_restored(database, Actor(by))


def own_origins(settings: Settings) -> frozenset[Origin]:
    """Where we answer ourselves: a webhook to there would go round in circles."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    urls = [f"http://{name}:{settings.port}" for name in (host, "127.0.0.1", "localhost") if settings.port]
    return frozenset(parse_target(url).origin for url in [*urls, *filter(None, [settings.public_url])])


def make_provider(key: ProviderKey, session: aiohttp.ClientSession) -> Provider:
    """The provider of one key: all keys of one upstream share its declaration, and differ by name."""
    return build_provider(
        key.declaration,
        credentials=key.credentials,
        session=session,
        base_url=key.base_url,
        region=key.region,
        jwks_url=key.jwks_url,
        name=key.name,
    )


@contextlib.asynccontextmanager
async def open_graph(settings: Settings) -> AsyncIterator[Graph]:
    """Everything of one process, for a command that works on an installation itself; nothing runs by itself."""
    quiet = settings.model_copy(update={"log_level": "warning"})
    async with _graph(quiet, must_exist=True) as (graph, _):
        yield graph


@contextlib.asynccontextmanager
async def _graph(settings: Settings, *, must_exist: bool = False) -> AsyncIterator[tuple[Graph, str]]:
    configure_logging(settings.log_level, settings.log_format)
    revision = revisions()[-1]
    async with open_database(settings, must_exist=must_exist) as database:
        secret = load_secret(settings)  # made on first use: not in a folder where there is no database
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
    """The lab as a child, unless one runs elsewhere or providers are configured; its address goes into the settings."""
    is_needed = settings.with_lab or not read_keys(settings)
    if settings.lab_url is not None or not is_needed:
        yield settings
        return
    child = await _start_lab(settings, announce)
    try:
        announce(f"the lab answers at {child.url}")
        with _told_address(settings.data_dir / "lab-url", child.url):
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
def _told_address(path: Path, url: str) -> Iterator[None]:
    """The commands find what answers there by this file while it runs."""
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
    _allow_many_sockets()
    worker = graph.worker()
    await worker.start()
    try:
        yield
    finally:
        await worker.stop()


def _allow_many_sockets() -> None:
    """Receivers of webhooks that do not answer hold a socket each: the usual 1,024 files of a process are too few."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(ENOUGH_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


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
    """The lab runs on this machine, so that it reaches us at our own address if no other is set.

    Real providers do not: to them such an address would be a callback into the void.
    """
    if settings.public_url is not None or read_keys(settings):
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


async def _studio_line(graph: Graph, base: str) -> str:
    """The one-time link into the Studio, for the account whose key lies in the data directory."""
    text = await asyncio.to_thread((graph.settings.data_dir / "key").read_text, encoding="utf-8")
    key = parse_key(text.strip())
    if key is None:
        return f"the Studio is at {base}/"
    ticket = await graph.sessions.issue(Holder(key.id, is_operator=False))
    return f"open the Studio, once and within half an hour: {studio_link(base, ticket.token)}"


async def _make_first_admin_key(graph: Graph) -> None:
    """The operator's key, if there never was one: in a file that only its owner can read."""
    key = await graph.administration.create_admin_key("first key", Actor("safelight"), is_first=True)
    if key is not None:
        write_private(graph.settings.data_dir / "admin_key", key)
