"""A rehearsal from its start to its verdict."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from safelight.cli.measure.figures import Quantiles, quantiles
from safelight.cli.rehearsal.customers import Customers, Receipts
from safelight.cli.rehearsal.faults import Faults
from safelight.cli.rehearsal.judge import Found, judge, wait_for_ends
from safelight.cli.rehearsal.plan import FLAT_AFTER_S, Plan
from safelight.cli.rehearsal.scratch import scratch
from safelight.cli.rehearsal.watch import Look, Watch, not_flat

GIVE_UP_S = 900.0

Say = Callable[[str], None]


@dataclass(slots=True)
class Report:
    """What came of a rehearsal; it is passed if no reason speaks against it."""

    plan: Plan
    seconds: float
    load_s: float
    receipts: Receipts
    faults: dict[str, int]
    starts: dict[str, int]
    found: Found
    accept_ms: Quantiles | None
    delay_ms: Quantiles | None
    looks: list[Look] = field(default_factory=list)

    @property
    def reasons(self) -> list[str]:
        """What speaks against it."""
        return self.found.reasons

    @property
    def is_passed(self) -> bool:
        """The verdict."""
        return not self.reasons


async def rehearse(plan: Plan, say: Say) -> Report:
    """Start a scratch installation, load it, let things go wrong, heal, wait, and compare the books.

    Raises:
        ConfigurationError: it cannot be started, or its database is not an empty one.
    """
    began = time.monotonic()
    say("starting a scratch installation")
    async with _ending_in_order(), scratch(plan) as place:
        watch, faults = Watch(place), Faults(place, plan)
        watching = asyncio.create_task(watch.run())
        try:
            async with Customers(place.url, place.key, plan) as customers:
                say(f"customers submit; what goes wrong: {', '.join(plan.faults) or 'nothing'}")
                load_s = await _load(customers, faults)
                say("healed; waiting for every task's end")
                left, moved_at = await wait_for_ends(place, give_up_s=GIVE_UP_S)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        say("comparing the books")
        found = await judge(place, customers.receipts, moved_at=moved_at, left=left)
        if load_s >= FLAT_AFTER_S:
            found.reasons.extend(not_flat(_under_load(watch, load_s)))
        return Report(
            plan=plan,
            seconds=round(time.monotonic() - began, 1),
            load_s=round(load_s, 1),
            receipts=customers.receipts,
            faults=dict(sorted(faults.counts.items())),
            starts={one.name: one.starts for one in place.kept},
            found=found,
            accept_ms=quantiles(customers.receipts.latencies_ms),
            delay_ms=quantiles(found.delays_ms),
            looks=watch.looks,
        )


@contextlib.asynccontextmanager
async def _ending_in_order() -> AsyncIterator[None]:
    """SIGTERM ends us as Ctrl-C does: nothing that we started is left behind."""
    loop, work = asyncio.get_running_loop(), asyncio.current_task()
    is_main = threading.current_thread() is threading.main_thread()
    if work is not None and is_main:
        loop.add_signal_handler(signal.SIGTERM, work.cancel)
    try:
        yield
    finally:
        if is_main:
            loop.remove_signal_handler(signal.SIGTERM)


async def _load(customers: Customers, faults: Faults) -> float:
    """Faults strike while customers submit; how long that took. Then all is healed, and every submit is answered."""
    began = time.monotonic()
    going_wrong = asyncio.create_task(faults.go_wrong())
    try:
        await customers.submit_all()
        if going_wrong.done():
            await going_wrong  # it never ends by itself: say why
    finally:
        going_wrong.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await going_wrong
        load_s = time.monotonic() - began
        await faults.heal()
    await customers.hear_all()
    return load_s


def _under_load(watch: Watch, load_s: float) -> list[Look]:
    return [look for look in watch.looks if look.at_s <= load_s]
