"""CPU time per submit, no-op and whole task, by process: steadier than rates on a machine that does other work.

    .venv/bin/python bench/cpu.py

Linux only: it reads /proc. An average over a burst; what the processes do when idle is in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections import defaultdict
from collections.abc import Awaitable, Iterator
from pathlib import Path

import uvloop

from safelight.cli.measure.crowds import Wave, measure_crowd
from safelight.cli.measure.instance import Instance, own_instance
from safelight.cli.measure.load import Load
from safelight.cli.measure.messages import noop_messages, submit_messages
from safelight.cli.output import print_table

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ROLES = ("server", "postgres", "lab")
ROUNDS = 3
CALLS = 1_000
TASKS = 300


def cpu_s(data_dir: Path) -> dict[str, float]:
    """Seconds of CPU that each part of the instance in this directory has used so far."""
    used: defaultdict[str, float] = defaultdict(float)
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                role = _role(process, str(data_dir))
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                used[role] += (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    return used


def _role(process: Path, data_dir: str) -> str:
    words = (process / "cmdline").read_bytes().decode(errors="replace")
    if "safelight.lab.child" in words:
        return "lab" if data_dir in words else "other"
    if str((process / "cwd").readlink()).startswith(data_dir):
        return "postgres"
    surroundings = (process / "environ").read_bytes().split(b"\0")
    return "server" if f"SAFELIGHT_DATA_DIR={data_dir}".encode() in surroundings else "other"


async def per_call(instance: Instance, work: Awaitable[object], calls: int) -> list[str]:
    """Milliseconds of CPU that one call costs each part."""
    data_dir = instance.data_dir or Path()
    before = cpu_s(data_dir)
    await work
    after = cpu_s(data_dir)
    return [f"{(after[role] - before[role]) / calls * 1_000:.2f}" for role in ROLES]


async def main() -> None:
    rows: list[tuple[str, ...]] = []
    async with own_instance(has_worker=False) as instance, Load(instance.url, 64) as load:
        submits, noops = submit_messages(instance, "64x64"), noop_messages(instance)

        def burst(messages: Iterator[bytes]) -> Awaitable[object]:
            return load.send(itertools.islice(messages, CALLS))

        for _ in range(ROUNDS):
            rows.append(("submit", *await per_call(instance, burst(submits), CALLS)))
            rows.append(("no-op", *await per_call(instance, burst(noops), CALLS)))
    async with own_instance() as instance:
        await measure_crowd(instance, Wave(50))
        whole = await per_call(instance, measure_crowd(instance, Wave(TASKS, waves=ROUNDS)), TASKS * ROUNDS)
        rows.append(("whole task", *whole))
        rows.append(("idle second", *await per_call(instance, asyncio.sleep(10), 10)))
    print_table(("CPU ms of one", *ROLES), sorted(rows))


if __name__ == "__main__":
    uvloop.run(main())
