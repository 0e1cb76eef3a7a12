"""The lab as a server: the object graph, the routes, start and stop."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from safelight.lab.answers import polite, until_it_leaves
from safelight.lab.books import Books
from safelight.lab.callbacks import Callbacks
from safelight.lab.controls import Controls
from safelight.lab.dialects import Dialects
from safelight.lab.guard import Guard
from safelight.lab.jobs_shape import JobsShape
from safelight.lab.knobs import Knobs
from safelight.lab.ledger import Ledger
from safelight.lab.moods import Moods
from safelight.lab.painter import Painter
from safelight.lab.records import Records
from safelight.lab.refusal import not_found
from safelight.lab.results import Results
from safelight.lab.speech.desk import Desk
from safelight.lab.speech.dialect import Workshop
from safelight.lab.speech.inputs import Inputs
from safelight.lab.studio import Studio
from safelight.lab.sync_shape import SyncShape
from safelight.lab.voice import OwnVoice, Voice

BODY_MOST = 64 << 20
STOP_S = 1.0
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 (read, not bound)


@dataclass(slots=True, frozen=True)
class Lab:
    """The running parts of a lab."""

    ledger: Ledger
    books: Books
    painter: Painter
    results: Results
    records: Records
    callbacks: Callbacks
    studio: Studio
    inputs: Inputs
    dialects: Dialects

    async def close(self) -> None:
        """Stop the jobs, then close what they use."""
        await self.studio.close()
        self.callbacks.close()
        await self.inputs.close()
        self.painter.close()
        await self.ledger.close()


async def serve_lab(
    *,
    host: str,
    port: int,
    data_dir: Path,
    knobs: Knobs,
    api_key: str = "lab-key",
    callback_secret: str = "lab-secret",  # noqa: S107 (a simulated upstream has no secrets)
    die_with_stdin: bool = False,
    on_ready: Callable[[int], None] | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT, cancellation or, if asked for, the end of standard input.

    Port 0 takes a free one; `on_ready` gets the real one once the lab answers.
    """
    stop = asyncio.Event()
    with _stopping_on_signals(stop):
        if die_with_stdin:
            _watch_stdin(stop)
        lab = running_lab(
            host=host,
            port=port,
            data_dir=data_dir,
            knobs=knobs,
            api_key=api_key,
            callback_secret=callback_secret,
        )
        async with lab as real_port:
            if on_ready is not None:
                on_ready(real_port)
            await stop.wait()


@asynccontextmanager
async def running_lab(
    *, host: str, port: int, data_dir: Path, knobs: Knobs, api_key: str, callback_secret: str
) -> AsyncIterator[int]:
    """A lab that answers inside the context; gives its real port."""
    lab = _build(data_dir, knobs, callback_secret)
    runner = web.AppRunner(_routes(lab, api_key), access_log=None, shutdown_timeout=STOP_S)
    try:
        await runner.setup()
        await web.TCPSite(runner, host, port, backlog=1024).start()
        real_port: int = runner.addresses[0][1]
        lab.results.base = _base(host, real_port)
        lab.studio.resume()
        yield real_port
    finally:
        lab.studio.stopping.set()
        await runner.cleanup()
        await lab.close()


def _build(data_dir: Path, knobs: Knobs, callback_secret: str) -> Lab:
    ledger = Ledger(data_dir / "ledger.jsonl")
    books, painter, moods, inputs = Books(), Painter(), Moods(knobs), Inputs()
    books.replay(ledger.read())
    results = Results(books=books, painter=painter, random=moods.random, secret=callback_secret)
    records = Records(results)
    own = OwnVoice(records=records, secret=callback_secret)

    def voices(name: str) -> Voice:
        return dialects[name] if name else own

    callbacks = Callbacks(voices)
    studio = Studio(moods=moods, ledger=ledger, books=books, voices=voices, callbacks=callbacks)
    dialects = Dialects(Workshop(studio, books, results, painter, inputs))
    return Lab(ledger, books, painter, results, records, callbacks, studio, inputs, dialects)


def _routes(lab: Lab, api_key: str) -> web.Application:
    app = web.Application(client_max_size=BODY_MOST, middlewares=[until_it_leaves])
    _add_own_shapes(app, lab, Guard(api_key=api_key, studio=lab.studio))
    desk = Desk(lab.dialects, lab.studio, lab.books.keys)
    for name in lab.dialects:
        app.router.add_route("*", f"/{{dialect:{name}}}/{{path:.*}}", desk.serve)
    add = app.router.add_route
    add("GET", "/results/{id}", polite(lab.results.serve))
    controls = Controls(moods=lab.studio.moods, books=lab.books, dialects=lab.dialects)
    add("GET", "/lab/healthz", controls.health)
    for path in ("/lab/knobs", "/lab/knobs/{name}"):
        add("GET", path, polite(controls.read_knobs))
        add("POST", path, polite(controls.turn_knobs))
    add("GET", "/lab/dialects", controls.list_dialects)
    add("GET", "/lab/dialects/{name}", polite(controls.read_dialect))
    add("*", "/lab/elsewhere", controls.elsewhere)
    add("GET", "/lab/ledger", polite(controls.read_ledger))
    add("*", "/{rest:.*}", polite(_nothing_here))
    return app


def _add_own_shapes(app: web.Application, lab: Lab, guard: Guard) -> None:
    add = app.router.add_route
    for shape in ("poll", "callback"):
        jobs = JobsShape(shape, studio=lab.studio, books=lab.books, records=lab.records)
        add("POST", f"/{shape}/v1/jobs", guard.before(jobs.submit, "submit"))
        add("GET", f"/{shape}/v1/jobs", guard.before(jobs.list, "list"))
        add("GET", f"/{shape}/v1/jobs/{{id}}", guard.before(jobs.read, "poll"))
        add("POST", f"/{shape}/v1/jobs/{{id}}/cancel", guard.before(jobs.cancel, "cancel"))
    sync = SyncShape(studio=lab.studio, books=lab.books, painter=lab.painter)
    add("POST", "/sync/v1/images", guard.before(sync.submit, "submit"))


async def _nothing_here(request: web.Request) -> web.StreamResponse:
    raise not_found()


def _base(host: str, port: int) -> str:
    host = _EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.contextmanager
def _stopping_on_signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGINT) if is_main else ()
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _watch_stdin(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        with contextlib.suppress(RuntimeError):  # the loop has ended before us
            loop.call_soon_threadsafe(stop.set)

    # A plain thread, because a pipe, a terminal and /dev/null all have an end but not all can be polled.
    threading.Thread(target=watch, name="lab-stdin", daemon=True).start()
