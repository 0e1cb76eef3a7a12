"""The studio: accepts jobs, lets them take their time, ends, bills and announces them."""

import asyncio
import time
from collections.abc import Coroutine
from random import Random
from typing import Any

from safelight.lab.books import Books
from safelight.lab.callbacks import Callbacks
from safelight.lab.fate import decide_fate
from safelight.lab.job import Job
from safelight.lab.knobs import Knobs
from safelight.lab.ledger import Ledger
from safelight.lab.records import Records
from safelight.lab.refusal import Refusal, invalid
from safelight.lab.submits import Submit
from safelight.lab.wire import TRY_TIMEOUT_S


class Studio:
    """The life of every job; nothing is visible before its ledger line is synced."""

    def __init__(
        self,
        *,
        knobs: Knobs,
        random: Random,
        ledger: Ledger,
        books: Books,
        records: Records,
        callbacks: Callbacks,
    ) -> None:
        self.knobs = knobs
        self.stopping = asyncio.Event()
        self._random = random
        self._ledger = ledger
        self._books = books
        self._records = records
        self._callbacks = callbacks
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[str, dict[str, Job]] = {"sync": {}, "poll": {}, "callback": {}}
        self._last_at = 0.0

    def turn_knobs(self, changes: object) -> Knobs:
        """Replace some knobs from now on; a seed starts the draws anew."""
        self.knobs = self.knobs.merged(changes)
        if isinstance(changes, dict) and changes.get("seed") is not None:
            self._random.seed(self.knobs.seed)
        return self.knobs

    async def accept(self, submit: Submit, *, key: str | None = None) -> Job:
        """Accept a submit durably and start its job, or refuse it for the rate limit."""
        knobs, random = self._knobs_for(submit)
        if random.random() < knobs.rate_limit:
            raise Refusal(429, "rate_limited", "too many submits", {"Retry-After": "1"})
        self._last_at = now = max(self._last_at, time.time())
        job = Job.from_submit(submit, decide_fate(knobs, n=submit.n, random=random), key=key, now=now)
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
        waiting = self._waiting[job.shape]
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
        if submit.lab is None:
            return self.knobs, self._random
        try:
            knobs = self.knobs.merged(submit.lab)
        except ValueError as error:
            raise invalid(f"lab: {error}") from None
        has_seed = submit.lab.get("seed") is not None
        return knobs, Random(knobs.seed) if has_seed else self._random

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
            self._waiting[job.shape][job.id] = job
        job.life = self._spawn(self._live(job))

    async def _live(self, job: Job) -> None:
        await _sleep_until(job.starts_at)
        self._waiting[job.shape].pop(job.id, None)
        job.status = "running"
        if job.callback_url is not None and not job.fate.is_running_notice_lost:
            job.running_tried = asyncio.Event()
            if not job.fate.is_reordered:
                self._spawn(self._callbacks.send(job, self._records.running_notice, job.running_tried))
        await _sleep_until(job.ends_at)
        if await self._end(job, job.fate.outcome):
            await self._announce_end(job)

    async def _end(self, job: Job, status: str) -> bool:
        if job.is_ending:
            await job.ended.wait()
            return False
        job.is_ending = True
        if status == "canceled" and job.life is not None:
            job.life.cancel()
            self._waiting[job.shape].pop(job.id, None)
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
            sending = self._callbacks.send(job, self._records.record, tried)
            if is_late:
                await self._send_late(job, sending, tried)
            else:
                await sending
        self._ledger.note({"event": "told", "id": job.id})

    async def _announced(self, job: Job) -> None:
        """Wait until the end of the job was announced, or its receiver proved deaf."""
        if job.life is not None:
            await asyncio.wait([job.life], timeout=TRY_TIMEOUT_S)

    async def _send_late(self, job: Job, sending: Coroutine[Any, Any, None], tried: asyncio.Event) -> None:
        end = self._spawn(sending)
        await tried.wait()
        await self._callbacks.send(job, self._records.running_notice, asyncio.Event())
        await asyncio.wait([end])

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _sleep_until(at: float) -> None:
    delay_s = at - time.time()
    if delay_s > 0:
        await asyncio.sleep(delay_s)
