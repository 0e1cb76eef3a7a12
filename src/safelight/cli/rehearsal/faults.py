"""Brings faults about while the customers submit, and counts each of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from random import Random
from typing import Any

import aiohttp
import asyncpg
import structlog

from safelight.cli.rehearsal.plan import MOODS, Fault, Plan
from safelight.cli.rehearsal.scratch import Kept, Scratch
from safelight.db.embedded import server_pid

log = structlog.get_logger()

PAUSE_S = (1.0, 15.0)
STORAGE_S = (0.5, 4.0)
UP_S = 8.0


class Faults:
    """One blow after the other, and beside them the moods of the lab."""

    def __init__(self, place: Scratch, plan: Plan) -> None:
        self._place = place
        self._plan = plan
        self._random = Random(plan.seed * 7 + 1)
        self._usual: dict[str, Any] = {}
        self._pauses: set[asyncio.Task[None]] = set()
        self.counts: Counter[str] = Counter()
        self._blows: dict[Fault, Callable[[], Coroutine[Any, Any, None]]] = {
            Fault.KILLS: self._kill,
            Fault.PAUSES: self._pause,
            Fault.DATABASE: self._kill_database,
            Fault.QUEUE: self._wipe_queue,
            Fault.STORAGE: self._take_storage_away,
        }

    async def go_wrong(self) -> None:
        """Until it is canceled."""
        self._usual = await self._knobs()
        works = [self._strike() if self._plan.blows else None, self._sulk() if self._plan.moods else None]
        await asyncio.gather(*(work for work in works if work is not None))

    async def heal(self) -> None:
        """Everything works again from now on: the lab, the store, every process."""
        for pause in self._pauses:
            pause.cancel()
        await asyncio.gather(*self._pauses, return_exceptions=True)
        self._give_storage_back()
        for one in self._place.kept:
            one.send(signal.SIGCONT)
        if self._usual:
            await self._turn({**self._usual, "latency_s": list(self._plan.latency_s)})
        await self._place.wait_ready()

    async def _strike(self) -> None:
        while True:
            await asyncio.sleep(self._random.uniform(*self._plan.gap_s))
            await self._blows[self._random.choice(self._plan.blows)]()

    async def _sulk(self) -> None:
        while True:
            fault = self._random.choice(self._plan.moods)
            await self._turn({**self._usual, **self._random.choice(MOODS[fault])})
            self.counts[fault] += 1
            await asyncio.sleep(self._random.uniform(*self._plan.mood_s))

    async def _kill(self) -> None:
        one = self._any()
        if one is not None and one.send(signal.SIGKILL):
            self.counts[Fault.KILLS] += 1

    async def _pause(self) -> None:
        one = self._any()
        if one is not None and one.send(signal.SIGSTOP):
            self.counts[Fault.PAUSES] += 1
            pause = asyncio.create_task(_continue(one, self._random.uniform(*PAUSE_S)))
            self._pauses.add(pause)
            pause.add_done_callback(self._pauses.discard)

    async def _kill_database(self) -> None:
        pid = await asyncio.to_thread(server_pid, self._place.data_dir)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.counts[Fault.DATABASE] += 1

    async def _wipe_queue(self) -> None:
        try:
            async with self._place.books.connection() as connection:
                await connection.execute("DELETE FROM pgqueuer.pgqueuer")
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return  # the database has just been killed
        self.counts[Fault.QUEUE] += 1

    async def _take_storage_away(self) -> None:
        """A file stands where the folder was: whatever is written or read fails."""
        assets = self._place.data_dir / "assets"
        if not assets.is_dir():
            return
        assets.rename(assets.with_name("assets.away"))
        assets.touch()
        self.counts[Fault.STORAGE] += 1
        try:
            await asyncio.sleep(self._random.uniform(*STORAGE_S))
        finally:
            self._give_storage_back()

    def _give_storage_back(self) -> None:
        assets = self._place.data_dir / "assets"
        away = assets.with_name("assets.away")
        if away.is_dir():
            assets.unlink(missing_ok=True)
            away.rename(assets)

    def _any(self) -> Kept | None:
        """One that has come to work: killed while they start, none would ever be there to be hurt."""
        up = [one for one in self._place.kept if one.up_s > UP_S]
        return self._random.choice(up) if up else None

    async def _knobs(self) -> dict[str, Any]:
        async with aiohttp.ClientSession() as session, session.get(self._knobs_url) as answer:
            knobs: dict[str, Any] = await answer.json()
            return knobs

    async def _turn(self, knobs: Mapping[str, Any]) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(self._knobs_url, json=dict(knobs)) as answer,
        ):
            if answer.status != 200:
                log.error("knobs_refused", answer=(await answer.text())[:300])

    @property
    def _knobs_url(self) -> str:
        return f"{self._place.lab.url}/lab/knobs"


async def _continue(one: Kept, after_s: float) -> None:
    pid = one.pid
    try:
        await asyncio.sleep(after_s)
    finally:
        if one.pid == pid:
            one.send(signal.SIGCONT)
