"""The lab as a child process that never outlives its parent, however the parent ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path

START_S = 60.0
STOP_S = 5.0


class LabChild:
    """A running lab process and the address that it answers at."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, relay: asyncio.Task[None]) -> None:
        self._process = process
        self._relay = relay  # held, so that it is not collected while the child lives
        self.url = url

    async def stop(self) -> None:
        """End the process: closing its standard input is the signal; after 5 s it is killed."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def start_lab(*, host: str, port: int, data_dir: Path, knobs: str) -> LabChild:
    """Start a lab and wait until it answers.

    Raises:
        OSError: it did not start (for example because the port is taken); the text is its own last words.
    """
    order = json.dumps({"host": host, "port": port, "data_dir": str(data_dir), "knobs": knobs})
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "safelight.lab.child",
        order,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches the parent, which ends the child in order
    )
    assert process.stdout is not None  # noqa: S101 - asked for above
    assert process.stderr is not None  # noqa: S101 - asked for above
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START_S)
    except TimeoutError:
        line = b""
    if not line:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        words = (await process.stderr.read()).decode(errors="replace").strip().splitlines()
        raise OSError(words[-1] if words else "it said nothing")
    return LabChild(process, f"http://{host}:{int(line)}", asyncio.create_task(_relay(process.stderr)))


async def _relay(stream: asyncio.StreamReader) -> None:
    """What the child says on its standard error is said on ours."""
    while line := await stream.readline():
        sys.stderr.write(line.decode(errors="replace"))


def _tell_port(port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def main() -> None:
    """The child's own entry: one JSON argument, the port as the first line of standard output."""
    # Only the child needs the lab itself.
    from safelight.lab.knobs import Knobs
    from safelight.lab.server import serve_lab

    order = json.loads(sys.argv[1])
    asyncio.run(
        serve_lab(
            host=order["host"],
            port=order["port"],
            data_dir=Path(order["data_dir"]),
            knobs=Knobs.parse(order["knobs"]),
            die_with_stdin=True,
            on_ready=_tell_port,
        )
    )


if __name__ == "__main__":
    main()
