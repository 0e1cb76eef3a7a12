"""A process of the proof's own: run to its end, and never left behind."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping, Sequence

from tests.architecture.source import ROOT

GOODBYE_S = 60.0
"""A run that is interrupted stops the database server it has started."""


async def run_child(
    arguments: Sequence[str], environment: Mapping[str, str], *, timeout_s: float | None, stderr: int | None
) -> tuple[int, str]:
    """Run this Python with these arguments; its exit code and what it wrote.

    It is a process group of its own: an interrupt reaches it once, from here.

    Raises:
        TimeoutError: it did not end.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=ROOT,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        process_group=0,
    )
    try:
        async with asyncio.timeout(timeout_s):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(process.wait(), GOODBYE_S)
            except TimeoutError:
                process.kill()
    return process.returncode or 0, output.decode(errors="replace")
