"""A thousand endpoints that are dead, and one that lives: how long does the live one wait to be told?

    .venv/bin/python bench/dead_endpoints.py
    .venv/bin/python bench/dead_endpoints.py --hanging 0 --refused 1000

On a scratch installation with an API and a worker as processes of their own. The dead either accept the connection and
never answer, or refuse it. The worker is held while every dead one gets its events, and let go with all of them due;
from then on the live one, of an account of its own, gets one event a second. Exits with 1 if its first took longer than
the aim.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime

from aiohttp import web

from safelight.cli.output import print_table
from safelight.cli.rehearsal.plan import Plan
from safelight.cli.rehearsal.scratch import Scratch, scratch
from safelight.client import AsyncClient
from safelight.db import accounts, ledger
from safelight.db.installation import load_pepper
from safelight.domain.webhook import MAX_ENDPOINTS

AIM_S = 2.0
GIVE_UP_S = 60.0


class Receiver:
    """Of the live endpoint: how many seconds after its event each call came, in the order of the events."""

    def __init__(self) -> None:
        self.delays_s: dict[str, float] = {}
        self.origin = ""
        self._news = asyncio.Event()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Receiver]:
        """Answer calls inside the block."""
        app = web.Application()
        app.router.add_post("/live", self._take)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()

    async def wait_for(self, task_ids: Sequence[str]) -> None:
        """Until the ends of all these tasks were told, or a minute is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GIVE_UP_S):
                while not self.delays_s.keys() >= set(task_ids):
                    self._news.clear()
                    await self._news.wait()

    async def _take(self, request: web.Request) -> web.Response:
        came_at = time.time()
        event = json.loads(await request.read())
        delay_s = came_at - datetime.fromisoformat(event["timestamp"]).timestamp()
        self.delays_s.setdefault(event["data"]["task_id"], delay_s)
        self._news.set()
        return web.Response()


@contextlib.asynccontextmanager
async def hanging() -> AsyncIterator[str]:
    """An origin that accepts every connection and never says a word."""

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while await reader.read(65_536):
                pass
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0, backlog=2_048)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


@contextlib.contextmanager
def refusing() -> Iterator[str]:
    """An origin that refuses: its port is taken and nobody listens there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


async def new_customers(place: Scratch, count: int) -> list[AsyncClient]:
    """Clients of accounts of their own, with credits."""
    pepper = await load_pepper(place.settings, place.books)
    keys = []
    async with place.books.transaction() as connection:
        for number in range(count):
            account_id = await accounts.create_account(connection, f"owner {number}")
            await ledger.grant(connection, account_id, 10_000, note="bench")
            keys.append(await accounts.create_key(connection, account_id, "bench", pepper))
    return [AsyncClient(place.url, key) for key in keys]


async def bury(owners: Sequence[AsyncClient], urls: Sequence[str], events: int) -> None:
    """Every owner's endpoints, and for each endpoint so many events."""
    for number, owner in enumerate(owners):
        own = urls[number * MAX_ENDPOINTS : (number + 1) * MAX_ENDPOINTS]
        await asyncio.gather(*(owner.webhooks.add(url) for url in own))
        for _ in range(events):
            await end_task(owner)


async def end_task(owner: AsyncClient) -> str:
    """A task that has ended at once, and so is told."""
    receipt = await owner.create("a lamp", size="64x64")
    await owner.cancel(receipt.id)
    return receipt.id


async def measure(
    place: Scratch, asked: argparse.Namespace, receiver: Receiver, urls: Sequence[str]
) -> list[float]:
    """Delays of the live endpoint's events, from the first on."""
    owners = await new_customers(place, -(-len(urls) // MAX_ENDPOINTS) + 1)
    live = owners.pop()
    workers = [one for one in place.kept if one.name.startswith("worker")]
    await live.webhooks.add(f"{receiver.origin}/live")
    for one in workers:
        one.send(signal.SIGSTOP)
    await bury(owners, urls, asked.events)
    for one in workers:
        one.send(signal.SIGCONT)
    told = []
    for _ in range(asked.seconds):
        began = time.monotonic()
        told.append(await end_task(live))
        await asyncio.sleep(max(1.0 - (time.monotonic() - began), 0.0))
    await receiver.wait_for(told)
    for client in (*owners, live):
        await client.close()
    return [receiver.delays_s.get(task_id, float("inf")) for task_id in told]


async def main() -> int:
    """Measure and say how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hanging", type=int, default=500)
    parser.add_argument("--refused", type=int, default=500)
    parser.add_argument("--events", type=int, default=3, help="due to each dead endpoint")
    parser.add_argument(
        "--seconds", type=int, default=30, help="for which the live one is told of an event a second"
    )
    asked = parser.parse_args()
    async with Receiver().listening() as receiver, hanging() as silent:
        with refusing() as closed:
            urls = [f"{silent}/{number}" for number in range(asked.hanging)]
            urls += [f"{closed}/{number}" for number in range(asked.refused)]
            settings = {
                "allowed_origins": ",".join((receiver.origin, silent, closed)),
                "max_requests_per_s": "100000",
                "log_level": "error",
            }
            async with scratch(Plan(workers=1, settings=settings)) as place:
                delays_s = await measure(place, asked, receiver, urls)
    worst = sorted(delays_s)
    rows = [
        ("the first event", f"{delays_s[0]:.2f}", f"{AIM_S:.0f}"),
        ("half of them", f"{worst[len(worst) // 2]:.2f}", ""),
        ("the slowest", f"{worst[-1]:.2f}", ""),
    ]
    print_table((f"seconds from event to call, {len(delays_s)} events", "measured", "at most"), rows)
    return 0 if delays_s[0] <= AIM_S else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
