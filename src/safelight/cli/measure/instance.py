"""The instance that is measured: one that runs already, or one of our own in a temporary directory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from safelight.errors import ConfigurationError
from safelight.lab.child import start_lab

CREDITS = 10_000_000
START_S = 60.0
STOP_S = 10.0
NO_LATENCY = '{"latency_s": [0, 0]}'
NO_LAB = "http://127.0.0.1:9"
"""Names the lab's models to a server that never calls them."""
_URL = re.compile(r"https?://[^\s\x1b]+")


@dataclass(frozen=True, slots=True)
class Instance:
    """Where to send tasks, with which key, and where its lab is; `server` says what runs there."""

    server: str
    url: str
    key: str = field(repr=False)
    lab_url: str | None
    data_dir: Path | None = None


def running_instance(url: str | None, data_dir: Path | None, lab_url: str) -> Instance:
    """An instance that runs already: its address and key from the flags, the environment or its data directory.

    Raises:
        ConfigurationError: it is not known where it listens, or with which key to call it.
    """
    key = os.environ.get("SAFELIGHT_API_KEY", "").strip()
    try:
        if url is None and data_dir is not None:
            url = (data_dir / "url").read_text(encoding="utf-8").strip()
        if not key and data_dir is not None:
            key = (data_dir / "key").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigurationError(f"no instance in {data_dir}: {error.strerror}") from None
    if not url or not key:
        raise ConfigurationError("the key is missing: give --data-dir, or set SAFELIGHT_API_KEY")
    return Instance("as it runs", url.rstrip("/"), key, lab_url.rstrip("/"), data_dir)


@contextlib.asynccontextmanager
async def own_instance(*, has_worker: bool = True) -> AsyncIterator[Instance]:
    """`safelight serve` and a lab, or (without a worker) `safelight api` alone; all gone when the block ends.

    Raises:
        ConfigurationError: it does not start.
    """
    data_dir = new_data_dir("safelight-bench-")
    try:
        async with _lab(data_dir / "lab" if has_worker else None) as lab_url:
            command = "serve" if has_worker else "api"
            async with _server(command, _environment(data_dir, lab_url or NO_LAB)) as url:
                await prepare_account(data_dir, CREDITS)
                key = (data_dir / "key").read_text(encoding="utf-8").strip()
                yield Instance(command, url, key, lab_url, data_dir)
    finally:
        await asyncio.to_thread(shutil.rmtree, data_dir, ignore_errors=True)


def new_data_dir(prefix: str) -> Path:
    """Never below a home directory: as root the embedded database opens every folder above its data for reading."""
    parent = next(place for place in (Path("/var/tmp"), Path("/tmp"), Path()) if place.is_dir())  # noqa: S108 - see above
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent.resolve()))


def _environment(data_dir: Path, lab_url: str) -> dict[str, str]:
    """Ours alone: whatever the caller has set for another instance must not reach this one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SAFELIGHT_")}
    return kept | {
        "SAFELIGHT_DATA_DIR": str(data_dir),
        "SAFELIGHT_PORT": "0",
        "SAFELIGHT_LAB_URL": lab_url,
        "SAFELIGHT_MAX_REQUESTS_PER_S": "1000000",
        "SAFELIGHT_MAX_OPEN_TASKS": "10000000",
        "SAFELIGHT_DRAIN_S": "0",
        "SAFELIGHT_LOG_LEVEL": "error",
    }


@contextlib.asynccontextmanager
async def _lab(data_dir: Path | None) -> AsyncIterator[str | None]:
    if data_dir is None:
        yield None
        return
    try:
        lab = await start_lab(host="127.0.0.1", port=0, data_dir=data_dir, knobs=NO_LATENCY)
    except OSError as error:
        raise ConfigurationError(f"the lab does not start: {error}") from None
    try:
        yield lab.url
    finally:
        await lab.stop()


@contextlib.asynccontextmanager
async def _server(command: str, environment: dict[str, str]) -> AsyncIterator[str]:
    """The command as a child process; gives the address that it announces."""
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *_command(command), env=environment, stdout=asyncio.subprocess.PIPE, stderr=errors
        )
        try:
            url = await _announced(process)
            if url is None:
                errors.seek(0)
                words = errors.read().decode(errors="replace").strip().splitlines()
                raise ConfigurationError(f"`safelight {command}` does not start: {' '.join(words[-3:])}")
            yield url
        finally:
            await _stop(process)


def _command(name: str) -> list[str]:
    return [sys.executable, "-m", "safelight", name]


async def _announced(process: asyncio.subprocess.Process) -> str | None:
    assert process.stdout is not None  # noqa: S101 - asked for by the caller
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_S):
            while line := (await process.stdout.readline()).decode(errors="replace"):
                found = _URL.search(line)
                if found and "ready" in line:
                    return found[0]
    return None


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        # Not `wait` alone: what the server still says must not fill the pipe that nobody reads.
        await asyncio.wait_for(process.communicate(), STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()


async def prepare_account(data_dir: Path, credits_: int, *, database_url: str | None = None) -> None:
    """In a process of its own, because whoever opens an embedded database keeps it running until it ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "safelight.cli.measure.account",
        str(data_dir),
        str(credits_),
        *([database_url] if database_url else []),
        env={name: value for name, value in os.environ.items() if not name.startswith("SAFELIGHT_")},
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode:
        words = said.decode(errors="replace").strip().splitlines()
        raise ConfigurationError(f"the account cannot be prepared: {' '.join(words[-1:])}")
