"""Python processes of their own, that say what they do line by line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Mapping, Sequence

PATIENCE_S = 60.0


class Talker:
    """A running process that prints lines and reads them."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def line(self) -> str:
        """Its next line; what it said on standard error if there is none."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            line = await self._process.stdout.readline()
            if not line:
                raise AssertionError((await self._process.stderr.read()).decode())
        return line.decode().strip()

    async def say(self, word: str) -> None:
        """Send it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())
        await self._process.stdin.drain()

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def end(self) -> None:
        """Let it come to its end by closing its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(PATIENCE_S):
            assert await self._process.wait() == 0


@contextlib.asynccontextmanager
async def talking(
    script: str, *arguments: str, environ: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
) -> AsyncIterator[Talker]:
    """Run a script in a process of its own; it is killed at the latest when the block ends."""
    process = await asyncio.create_subprocess_exec(
        *prefix,
        sys.executable,
        "-c",
        textwrap.dedent(script),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environ or {})},
    )
    talker = Talker(process)
    try:
        yield talker
    finally:
        await talker.kill()
