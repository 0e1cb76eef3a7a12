"""(b), (c), (d) Whole tasks: how many a second, how soon after the upstream was done, at how many polls."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from safelight.cli.measure.figures import Crowd, quantiles
from safelight.cli.measure.instance import Instance
from safelight.cli.measure.load import Load
from safelight.cli.measure.messages import submit_messages
from safelight.cli.measure.witness import Ended, Witness
from safelight.errors import ConfigurationError
from safelight.lifecycle.pace import KEEP_S

CONNECTIONS = 32
END_WITHIN_S = 240.0
LOSSES = (0.0, 0.3, 1.0)
NO_LATENCY = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Wave:
    """How many tasks are sent at once, how often, and how the lab treats them."""

    open_tasks: int
    waves: int = 1
    size: str = "64x64"
    latency_s: tuple[float, float] = NO_LATENCY
    loss: float = 0.0


def latency_for(open_tasks: int, finishes_per_s: float) -> tuple[float, float]:
    """A spread of latencies that keeps them all open at first and then ends them at this rate."""
    mean_s = open_tasks / finishes_per_s
    return round(mean_s / 2.0, 2), round(mean_s * 1.5, 2)


async def measure_crowd(instance: Instance, wave: Wave) -> Crowd:
    """Send the waves one after the other; each begins when the one before has ended."""
    async with Witness(instance) as witness:
        await witness.check_credits(wave.open_tasks * wave.waves)
        await witness.turn_knobs(latency_s=wave.latency_s, callback_loss=wave.loss)
        polls_before = (await witness.books()).polls
        ids: list[UUID] = []
        ended: dict[UUID, Ended] = {}
        elapsed_s = 0.0
        for _ in range(wave.waves):
            sent = await _send(instance, wave, witness)
            found = await witness.ended(sent)
            elapsed_s += _span_s(found)
            ended |= found
            ids += sent
        books = await witness.books()
    polls = books.polls - polls_before
    return _crowd(wave, ids, ended, books.done_at, elapsed_s=elapsed_s, polls=polls)


async def measure_delays(
    instance: Instance, open_tasks: int, *, waves: int, finishes_per_s: float, is_settled: bool
) -> list[Crowd]:
    """(c) and (d) at one number of open tasks: callbacks on, 30 % lost, all lost.

    With `is_settled` the first waves are not counted and their pace is left time to be forgotten: the service plans
    its polls by the P95 that it has measured, and the first ones of a fresh instance go by a default.
    """
    latency_s = latency_for(open_tasks, finishes_per_s)
    if is_settled:
        samples = max(min(open_tasks, 500), 100)
        await measure_crowd(instance, Wave(samples, waves, latency_s=latency_s))
        await asyncio.sleep(KEEP_S + 1.0)
    return [
        await measure_crowd(instance, Wave(open_tasks, waves, latency_s=latency_s, loss=loss))
        for loss in LOSSES
    ]


async def _send(instance: Instance, wave: Wave, witness: Witness) -> list[UUID]:
    """One wave, from its first submit until its last task has ended."""
    held_before = await witness.held()
    async with Load(instance.url, min(CONNECTIONS, wave.open_tasks)) as load:
        messages = itertools.islice(submit_messages(instance, wave.size), wave.open_tasks)
        burst = await load.send(messages, keep_bodies=True)
    if burst.refused:
        raise ConfigurationError(f"submits were refused: {dict(burst.refused)}")
    await witness.wait_until_held(held_before, END_WITHIN_S)
    return [UUID(json.loads(body)["id"]) for body in burst.bodies]


def _span_s(ended: Mapping[UUID, Ended]) -> float:
    """From the first acceptance to the last end."""
    if not ended:
        return 0.0
    return max(task.finished_at for task in ended.values()) - min(task.created_at for task in ended.values())


def _crowd(
    wave: Wave,
    ids: list[UUID],
    ended: Mapping[UUID, Ended],
    done_at: Mapping[UUID, float],
    *,
    elapsed_s: float,
    polls: int,
) -> Crowd:
    ready = {task_id: task for task_id, task in ended.items() if task.is_ready}
    delays_ms = [
        (task.finished_at - done_at[task_id]) * 1_000.0
        for task_id, task in ready.items()
        if task_id in done_at
    ]
    return Crowd(
        size=wave.size,
        open_tasks=wave.open_tasks,
        latency_s=wave.latency_s,
        loss=wave.loss,
        tasks=len(ids),
        ready=len(ready),
        elapsed_s=round(elapsed_s, 2),
        tasks_per_s=round(len(ready) / elapsed_s, 1) if elapsed_s else 0.0,
        delay_ms=quantiles(delays_ms),
        polls_per_task=round(polls / len(ids), 3) if ids else 0.0,
    )
