"""The ledger file: append-only JSON lines, each synced before anyone is told about it."""

import asyncio
import fcntl
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

GROUP_S = 0.002
LOCK_WAIT_S = 5.0


class Ledger:
    """Lines go in through `write`, which returns when they are on the disk.

    A line that a kill tore in the middle was never answered for: it is cut off when the file is opened.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._lines: list[str] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._encode = json.JSONEncoder(separators=(",", ":")).encode
        self._flusher: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lab-ledger")
        try:
            _lock(self._file, path)
            _cut_torn_line(self._file)
        except BaseException:
            os.close(self._file)
            raise
        _sync_folder(path.parent)

    def read(self) -> Iterator[dict[str, Any]]:
        """All lines, oldest first; ValueError if one in the middle is damaged."""
        with self._path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield json.loads(line)
                except ValueError:
                    raise ValueError(f"{self._path}:{number} is damaged") from None

    async def write(self, line: dict[str, Any]) -> None:
        """Append a line and return when it is synced; lines keep the order of the calls."""
        synced = asyncio.get_running_loop().create_future()
        self._waiting.append(synced)
        self.note(line)
        await synced

    def note(self, line: dict[str, Any]) -> None:
        """Append a line that nobody waits for."""
        self._lines.append(self._encode(line))
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush())

    async def close(self) -> None:
        """Sync what is still waiting and let go of the file."""
        while self._flusher is not None:
            await asyncio.shield(self._flusher)
        self._thread.shutdown()
        os.close(self._file)

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._lines:
                await asyncio.sleep(GROUP_S)
                data = ("\n".join(self._lines) + "\n").encode()
                waiting = self._waiting
                self._lines, self._waiting = [], []
                try:
                    await loop.run_in_executor(self._thread, self._sync, data)
                except OSError as error:
                    _resolve(waiting, error)
                else:
                    _resolve(waiting, None)
        finally:
            self._flusher = None

    def _sync(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        os.fdatasync(self._file)


def _resolve(waiting: list[asyncio.Future[None]], error: OSError | None) -> None:
    for synced in waiting:
        if synced.done():
            continue
        if error is None:
            synced.set_result(None)
        else:
            synced.set_exception(error)


def _lock(file: int, path: Path) -> None:
    give_up_at = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # The lab before us may still be closing its books.
            if time.monotonic() > give_up_at:
                raise ValueError(f"{path} is in use by another lab") from None
            time.sleep(0.05)


def _cut_torn_line(file: int) -> None:
    end = size = os.fstat(file).st_size
    step = 1 << 16
    while end > 0:
        start = max(0, end - step)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end != size:
        os.ftruncate(file, end)
        os.fsync(file)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
