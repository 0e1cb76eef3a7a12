"""The studio: accepts jobs, lets them take their time, ends, bills and announces them."""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from safelight.lab.books import Books
from safelight.lab.callbacks import Callbacks, Sent
from safelight.lab.fate import decide_fate
from safelight.lab.job import Job
from safelight.lab.knobs import Knobs
from safelight.lab.ledger import Ledger
from safelight.lab.moods import Moods
from safelight.lab.refusal import invalid
from safelight.lab.situations import UnknownWay
from safelight.lab.submits import Submit
from safelight.lab.voice import Voices
from safelight.lab.wire import TRY_TIMEOUT_S

T = TypeVar("T")


class Studio:
    """The life of every job; nothing is visible before its ledger line is synced."""

    def __init__(
        self,
        *,
        moods: Moods,
        ledger: Ledger,
        books: Books,
        voices: Voices,
        callbacks: Callbacks,
    ) -> None:
        self.moods = moods
        self.stopping = asyncio.Event()
        self._ledger = ledger
        self._books = books
        self._voices = voices
        self._callbacks = callbacks
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting: dict[str, dict[str, Job]] = {}
        self._last_at = 0.0

    async def accept(self, submit: Submit) -> Job:
        """Accept a submit durably and start its job, or raise its upstream's refusal by chance."""
        knobs, random = self._knobs_for(submit)
        voice = self._voices(submit.dialect)
        ways = voice.ways_of_ending()
        if situation := _declined(knobs, random, ways):
            raise voice.declined(situation, None, random.randrange(1 << 16))
        _check_ways(knobs, submit, ways)
        self._last_at = now = max(self._last_at, time.time())
        fate = decide_fate(knobs, n=submit.n, random=random, ways=ways)
        is_billed = voice.is_billed(fate.outcome, fate.ending_way)
        job = Job.from_submit(submit, fate, now=now, is_billed_anyway=is_billed)
        await self._enter(job)
        self._begin(job)
        if job.fate.is_early:
            await self._announced(job)
        return job

    def resume(self) -> None:
        """Go on with what the ledger left open, and announce ends that nobody was told of."""
        for job in self._books.jobs.values():
            self._last_at = max(self._last_at, job.created_at)
            if job.finished_at is None:
                self._begin(job)
            elif job.callback_url is not None and not job.is_told:
                self._spawn(self._announce_end(job))

    async def cancel(self, job: Job) -> bool:
        """Cancel an open job; False if it has come to another end first."""
        if not await self._end(job, "canceled"):
            return False
        self._spawn(self._announce_end(job))
        return True

    def position(self, job: Job) -> int | None:
        """The place in the line, 1 at the front; None once drawing has begun."""
        waiting = self._waiting.get(job.line_up, {})
        if job.id not in waiting:
            return None
        return max(1, job.place - next(iter(waiting.values())).place + 1)

    async def close(self) -> None:
        """Stop all jobs where they are; the ledger goes on with them at the next start."""
        self.stopping.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _knobs_for(self, submit: Submit) -> tuple[Knobs, Random]:
        knobs = self.moods.of(submit.dialect)
        if submit.lab is None:
            return knobs, self.moods.random
        try:
            knobs = knobs.merged(submit.lab)
        except ValueError as error:
            raise invalid(f"lab: {error}") from None
        has_seed = submit.lab.get("seed") is not None
        return knobs, Random(knobs.seed) if has_seed else self.moods.random

    async def _enter(self, job: Job) -> None:
        if job.key is not None:
            # Reserved before the sync: a second submit with this key meanwhile must find it.
            self._books.keys[job.key] = job
        try:
            await self._ledger.write(job.accepted_line())
        except OSError:
            self._books.keys.pop(job.key or "", None)
            job.end("failed", time.time())
            raise
        self._books.enter(job)

    def _begin(self, job: Job) -> None:
        if job.fate.latency_s:
            self._waiting.setdefault(job.line_up, {})[job.id] = job
        job.life = self._spawn(self._live(job))

    async def _live(self, job: Job) -> None:
        await _sleep_until(job.starts_at)
        self._leave_line(job)
        job.status = "running"
        for share in self._voices(job.dialect).notice_shares:
            await _sleep_until(job.starts_at + share * job.fate.latency_s)
            self._announce_running(job)
        await _sleep_until(job.ends_at)
        if await self._end(job, job.fate.outcome):
            await self._announce_end(job)

    def _announce_running(self, job: Job) -> None:
        if job.callback_url is None or job.fate.is_running_notice_lost:
            return
        before, job.running_tried = job.running_tried, asyncio.Event()
        if not job.fate.is_reordered:
            self._spawn(self._say_running(job, before, job.running_tried))

    async def _say_running(self, job: Job, before: asyncio.Event | None, tried: asyncio.Event) -> None:
        if before is not None:
            await before.wait()
        await self._callbacks.send(job, "running", tried)

    def _leave_line(self, job: Job) -> None:
        self._waiting.get(job.line_up, {}).pop(job.id, None)

    async def _end(self, job: Job, status: str) -> bool:
        if job.is_ending:
            await job.ended.wait()
            return False
        job.is_ending = True
        if status == "canceled" and job.life is not None:
            job.life.cancel()
            self._leave_line(job)
        at = time.time()
        await self._ledger.write({"event": "ended", "id": job.id, "status": status, "at": at})
        self._books.end(job, status, at)
        return True

    async def _announce_end(self, job: Job) -> None:
        if job.callback_url is None:
            return
        fate, tried = job.fate, asyncio.Event()
        is_late = fate.is_reordered and job.running_tried is not None
        if job.running_tried is not None and not is_late:
            await job.running_tried.wait()
        if not fate.is_end_notice_lost:
            if not fate.is_early:
                await asyncio.sleep(fate.callback_delay_s)
            if fate.forgery:
                await self._callbacks.forge(job)
            sending = self._callbacks.send(job, "end", tried)
            sent = await self._send_late(job, sending, tried) if is_late else await sending
            if sent is not None and fate.callback_replay_s is not None:
                self._spawn(self._replay(job, sent, fate.callback_replay_s))
        job.is_told = True
        self._ledger.note({"event": "told", "id": job.id})

    async def _replay(self, job: Job, sent: Sent, after_s: float) -> None:
        await asyncio.sleep(after_s)
        await self._callbacks.replay(job, sent)

    async def _announced(self, job: Job) -> None:
        """Wait until the end of the job was announced, or its receiver proved deaf."""
        if job.life is not None:
            await asyncio.wait([job.life], timeout=TRY_TIMEOUT_S)

    async def _send_late(
        self, job: Job, sending: Coroutine[Any, Any, Sent | None], tried: asyncio.Event
    ) -> Sent | None:
        end = self._spawn(sending)
        await tried.wait()
        await self._callbacks.send(job, "running", asyncio.Event())
        return await end

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _sleep_until(at: float) -> None:
    delay_s = at - time.time()
    if delay_s > 0:
        await asyncio.sleep(delay_s)


def _declined(knobs: Knobs, random: Random, ways: Mapping[str, Sequence[str]]) -> str | None:
    """What an upstream never tells by an ending, it tells instead of accepting."""
    if random.random() < knobs.rate_limit:
        return "rate_limited"
    if not ways.get("blocked") and random.random() < knobs.moderate:
        return "content_blocked"
    return "upstream_fault" if not ways.get("failed") and random.random() < knobs.fail else None


def _check_ways(knobs: Knobs, submit: Submit, ways: Mapping[str, Sequence[str]]) -> None:
    if knobs.ending is None:
        return
    known = ways.get(knobs.ending, ())
    if not known or knobs.ending_way not in {None, *known}:
        wanted = f"{knobs.ending} {knobs.ending_way or ''}".strip()
        raise UnknownWay(f"{submit.dialect or submit.shape} has no ending {wanted}")
