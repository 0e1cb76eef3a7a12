"""Hostile addresses on every way by which a stranger can make us fetch: nothing is connected, ever."""

from __future__ import annotations

import asyncio
import socket
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from random import Random
from typing import Any

from structlog.testing import capture_logs

from safelight.assets.fetch import Fetcher
from safelight.domain.provider import Capabilities, Origin, Output, Submission
from safelight.domain.task import State
from safelight.errors import AssetError
from safelight.lifecycle.alert import Alerts
from safelight.lifecycle.attach import Attach, RulingRefused
from safelight.lifecycle.endpoints import AddressRefused
from safelight.lifecycle.inputs import InputsRefused, Sources
from safelight.settings import Settings
from tests.assets.conftest import Stranger, reply
from tests.assets.test_hostile_urls import HOSTS, TRICKS
from tests.lifecycle.test_alert import SECRET
from tests.lifecycle.upstreams import Scripted, done, install, run_task
from tests.proof.report import LayerReport, Size
from tests.world import World, running_server, running_world

SHARES = {Size.CI: 60, Size.PROVE: None, Size.RELEASE: None}
"""How many of the corpus each way is tried with; CI has the whole corpus against the fetcher itself already."""
PICTURES_OF_A_TASK = 100


@dataclass
class Guard:
    """Every address that anything tried to connect to, but for those that are meant."""

    meant: set[int]
    tried: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Place:
    """What a way needs: the world, a server of the operator's own choice, and one that nobody may reach."""

    world: World
    trusted: Stranger
    canary: Stranger


Way = Callable[[Place, Sequence[str]], Awaitable[list[str]]]
"""Has these addresses fetched; the ones that were not refused."""
Fitting = Callable[[Sequence[str]], Sequence[str]]
"""Those that can come by this way at all."""


async def run(size: Size, seed: int) -> LayerReport:
    """Each way with its share of the corpus, while every connect is watched."""
    report = LayerReport("addresses", seed)
    async with (
        running_server() as server,
        _stranger() as trusted,
        _stranger() as canary,
        running_world(server, granted=1_000_000, allowed_origins=(trusted.origin,)) as world,
    ):
        place = Place(world, trusted, canary)
        corpus = targets(canary.port)
        Random(seed).shuffle(corpus)
        chosen, lab_port = corpus[: SHARES[size]], int(world.lab_url.rpartition(":")[2])
        for name, (way, fitting) in WAYS.items():
            urls = fitting(chosen)
            with capture_logs(), guarded({trusted.port, lab_port}) as guard:
                taken = await way(place, urls)
            report.tried += len(urls)
            report.failures += [f"{name}: {url!r} is not refused" for url in taken]
            report.failures += [f"{name}: connected to {address}" for address in guard.tried]
        if canary.connections:
            report.failures.append(f"the canary was reached {canary.connections} times")
    report.figures |= {"targets": len(chosen), "ways": len(WAYS), "connections": canary.connections}
    return report


def targets(canary_port: int) -> list[str]:
    """Every spelling of every denied host, and every trick around one."""
    found = [f"https://{host}/x?secret=1" for host in HOSTS]
    found += [f"http://{host}:{canary_port}/x" for host in HOSTS]
    for host in ("127.0.0.1", f"127.0.0.1:{canary_port}", "localhost", "LOCALHOST."):
        found += [trick.format(to=host) for trick in TRICKS]
    return list(dict.fromkeys(found))


# ---------------------------------------------------------------------------- the ways


async def of_results(place: Place, urls: Sequence[str]) -> list[str]:
    """A provider says that its pictures lie there."""
    size = PICTURES_OF_A_TASK
    waiting = [urls[begin : begin + size] for begin in range(0, len(urls), size)]

    async def submit(submission: Submission) -> Any:
        outputs = [Output(url=url) for url in waiting.pop()]
        return done(*outputs, origin=Origin.ANSWER, provider_ref=submission.reference)

    install(place.world, Scripted("lab-poll", Capabilities(), submit))
    taken: list[str] = []
    while waiting:
        share = waiting[-1]
        task_id = await run_task(place.world, "lab-poll", n=len(share))
        await place.world.graph.archive.archive(task_id)
        if await place.world.state(task_id) is not State.FAILED:
            taken += share
    return taken


async def of_inputs(place: Place, urls: Sequence[str]) -> list[str]:
    """A customer names it as an input picture."""
    taken = []
    for url in urls:
        try:
            sources = Sources(images=(url,))
            await place.world.graph.inputs.take(place.world.account_id, sources, providers=["lab-sync"])
            taken.append(url)
        except InputsRefused:
            continue
    return taken


async def of_attached(place: Place, urls: Sequence[str]) -> list[str]:
    """A person gives it as the picture of a task in review."""
    context = place.world.graph.context
    attach = Attach(context.store, context.pictures, context.fetcher, max_bytes=1_000_000)
    task_id = await run_task(place.world)
    task, attempt = await place.world.task(task_id), await place.world.attempt(task_id)
    taken = []
    for url in urls:
        try:
            await attach.given(task, attempt, [url], [])
            taken.append(url)
        except RulingRefused:
            continue
    return taken


async def of_redirects(place: Place, urls: Sequence[str]) -> list[str]:
    """A host that is trusted sends us on."""
    taken = []
    for number, url in enumerate(urls):
        path = f"/{number}"
        place.trusted.answers[path] = reply(status="302 Found", Location=url)
        try:
            await place.world.graph.context.fetcher.fetch(f"{place.trusted.origin}{path}")
            taken.append(url)
        except AssetError:
            continue
    return taken


async def of_alerts(place: Place, urls: Sequence[str]) -> list[str]:
    """The operator's own receiver sends an alert on: it is told nothing more, and nobody else hears it."""
    settings = Settings(
        data_dir=place.world.graph.settings.data_dir,
        alert_url=f"{place.trusted.origin}/pager",
        alert_secret=SECRET,
    )
    alerts = Alerts(place.world.database, settings)
    taken = []
    try:
        for url in urls:
            place.trusted.answers["/pager"] = reply(status="307 Temporary", Location=url)
            await place.world.rows("INSERT INTO alerts (kind, reason, provider) VALUES ('finding', 'x', 'x')")
            await place.world.pass_time(seconds=61)
            await alerts.tell()
            if not await place.world.value("SELECT count(*) FROM alerts"):
                taken.append(url)
            await place.world.rows("DELETE FROM alerts")
    finally:
        await alerts.aclose()
    return taken


async def of_webhooks(place: Place, urls: Sequence[str]) -> list[str]:
    """A customer wants to be told there."""
    taken = []
    for url in urls:
        try:
            await place.world.graph.endpoints.register(place.world.account_id, url=url)
            taken.append(url)
        except AddressRefused:
            continue
    return taken


async def of_resolved_names(place: Place, hosts: Sequence[str]) -> list[str]:
    """A name whose server answers with the address: alone, or beside a public one."""
    taken = []
    for host in hosts:
        for answer in ([host], [host, "93.184.215.14"], ["93.184.215.14", host]):

            async def lookup(name: str, port: int, answer: Sequence[str] = answer) -> Sequence[str]:
                return answer

            async with Fetcher(lookup=lookup) as fetcher:
                try:
                    await fetcher.fetch("https://pictures.example/x")
                    taken.append(host)
                except AssetError:
                    continue
    return taken


def _all(urls: Sequence[str]) -> Sequence[str]:
    return urls


def _in_headers(urls: Sequence[str]) -> Sequence[str]:
    return [url for url in urls if url.isascii() and url.isprintable()]


def _addresses(urls: Sequence[str]) -> Sequence[str]:
    return sorted({host.strip("[]") for host in HOSTS if _is_address(host.strip("[]"))})[: len(urls)]


WAYS: Mapping[str, tuple[Way, Fitting]] = {
    "results": (of_results, _all),
    "inputs": (of_inputs, _all),
    "attached": (of_attached, _all),
    "redirects": (of_redirects, _in_headers),
    "alerts": (of_alerts, _in_headers),
    "webhooks": (of_webhooks, _all),
    "names": (of_resolved_names, _addresses),
}


# ---------------------------------------------------------------------------- what is watched


@contextmanager
def guarded(meant: set[int]) -> Iterator[Guard]:
    """Note every connect that is not meant and let none of them out; let every name resolve to loopback."""
    guard = Guard(meant)
    connect, look_up = BaseSelectorEventLoop.sock_connect, socket.getaddrinfo

    async def watched(loop: BaseSelectorEventLoop, sock: socket.socket, address: Any) -> None:
        is_file = isinstance(address, str)  # a socket of this machine: the database
        if not is_file and address[1] not in guard.meant:
            guard.tried.append(address)
            raise ConnectionRefusedError(111, "refused by the guard")
        await connect(loop, sock, address)

    def resolved(host: Any, *rest: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        return look_up(host if host is None or _is_address(name) else "127.0.0.1", *rest, **options)

    setattr(BaseSelectorEventLoop, "sock_connect", watched)  # noqa: B010 - mypy knows no other way
    socket.getaddrinfo = resolved
    try:
        yield guard
    finally:
        setattr(BaseSelectorEventLoop, "sock_connect", connect)  # noqa: B010 - as above
        socket.getaddrinfo = look_up


@asynccontextmanager
async def _stranger() -> AsyncIterator[Stranger]:
    one = Stranger()
    listening = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.port = listening.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        listening.close()
        await listening.wait_closed()


def _is_address(text: str) -> bool:
    try:
        ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True
