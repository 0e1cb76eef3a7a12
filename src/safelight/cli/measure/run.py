"""The whole measurement, part by part, on instances of our own or on one that runs."""

from __future__ import annotations

import os
import platform
from collections.abc import AsyncIterator, Callable, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from safelight import __version__
from safelight.cli.measure.crowds import Wave, measure_crowd, measure_delays
from safelight.cli.measure.figures import Figures, Machine
from safelight.cli.measure.instance import Instance, own_instance
from safelight.cli.measure.submits import measure_submits
from safelight.cli.measure.witness import Witness

PARTS = ("submits", "tasks", "delays")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured; `levels` are open tasks and the waves of each."""

    connections: int = 64
    finishes_per_s: float = 100.0
    rounds: int = 7
    round_s: float = 2.0
    tasks: Wave = field(default=Wave(500, waves=3))
    large: Wave = field(default=Wave(60, size="1024x1024"))
    levels: tuple[tuple[int, int], ...] = ((100, 5), (500, 1), (2_000, 1))
    is_quick: bool = False


def quick_plan(connections: int, finishes_per_s: float) -> Plan:
    """A first impression in under a minute: few samples, and the polling has not learnt the pace yet."""
    return Plan(
        connections,
        finishes_per_s,
        rounds=3,
        round_s=1.0,
        tasks=Wave(300),
        large=Wave(20, size="1024x1024"),
        levels=((100, 1),),
        is_quick=True,
    )


async def measure(plan: Plan, parts: Set[str], running: Instance | None, say: Say) -> Figures:
    """Measure the parts; on a running instance the lab's knobs are put back afterwards."""
    figures = Figures(machine_here(), plan.is_quick, plan.finishes_per_s, [], [], [])
    if running is not None:
        async with _knobs_put_back(running):
            await _measure_on(running, plan, parts, figures, say)
        return figures
    if "submits" in parts:
        async with own_instance(has_worker=False) as instance:
            await _measure_on(instance, plan, {"submits"}, figures, say)
    if plan.is_quick:
        async with own_instance() as instance:
            await _measure_on(instance, plan, parts, figures, say)
        return figures
    if parts & {"submits", "tasks"}:
        async with own_instance() as instance:
            await _measure_on(instance, plan, parts - {"delays"}, figures, say)
    for level in plan.levels if "delays" in parts else ():
        # Fresh for each level: the paces learnt at one level would plan the polls of the next.
        async with own_instance() as instance:
            await _measure_level(instance, plan, level, figures, say)
    return figures


async def _measure_on(instance: Instance, plan: Plan, parts: Set[str], figures: Figures, say: Say) -> None:
    """All parts on one instance; the submits last, because they leave a backlog.

    The delays come before the tasks without latency, which would teach the service a P95 of nothing.
    """
    for level in plan.levels if "delays" in parts else ():
        await _measure_level(instance, plan, level, figures, say)
    if "tasks" in parts:
        say("whole tasks")
        await measure_crowd(instance, Wave(50))  # opens connections, prepares statements
        for wave in (plan.tasks, plan.large):
            figures.whole_tasks.append(await measure_crowd(instance, wave))
    if "submits" in parts:
        say(f"durable submits, {instance.server}")
        found = await measure_submits(
            instance, connections=plan.connections, rounds=plan.rounds, round_s=plan.round_s
        )
        figures.submits.append(found)


async def _measure_level(
    instance: Instance, plan: Plan, level: tuple[int, int], figures: Figures, say: Say
) -> None:
    open_tasks, waves = level
    say(f"from done to ready, {open_tasks:,} open tasks")
    found = await measure_delays(
        instance,
        open_tasks,
        waves=waves,
        finishes_per_s=plan.finishes_per_s,
        is_settled=not plan.is_quick,
    )
    figures.delays.extend(found)


@asynccontextmanager
async def _knobs_put_back(instance: Instance) -> AsyncIterator[None]:
    async with Witness(instance) as witness:
        knobs = await witness.knobs()
        try:
            yield
        finally:
            await witness.turn_knobs(latency_s=knobs["latency_s"], callback_loss=knobs["callback_loss"])


def machine_here() -> Machine:
    """This machine, as far as figures depend on it."""
    return Machine(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        load_1m=round(os.getloadavg()[0], 2),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        version=__version__,
    )
