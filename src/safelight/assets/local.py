"""Assets in a folder: written aside, synced, renamed, synced again."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from time import time
from typing import TypeVar

from safelight.assets.folders import Folders, FolderSync, walk, write_synced
from safelight.assets.store import check_key, check_prefix
from safelight.errors import AssetError

T = TypeVar("T")

_CHUNK = 262_144
_BATCH = 1_000
_LEFTOVER_S = 86_400


class LocalStore:
    """An AssetStore in one folder, which must be on one file system and belong to us alone.

    store = LocalStore(Path("safelight-data/assets"))
    await store.put(new_key(account_id, suffix="png"), data)
    """

    def __init__(self, root: Path, *, threads: int = 16) -> None:
        self._root = Path(os.path.realpath(root))
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folders = Folders(self._root)
        self._incoming = self._root / ".incoming"
        self._folders.make(self._incoming)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="safelight-assets")
        self._sync = FolderSync(self._threads)
        self._sweep_leftovers()

    async def put(self, key: str, data: bytes) -> None:
        """Write beside, sync the file, rename, sync the folder: a crash leaves all of it or nothing."""
        path = self._path(key)
        with _errors(is_reading=False):
            await self._run(lambda: self._write(path, data))
            await self._sync.sync(path.parent)

    async def get(self, key: str) -> bytes:
        """All bytes; `missing` if there are none."""
        path = self._path(key)
        with _errors():
            return await self._run(lambda: _read(path))

    async def open(self, key: str, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """Stream in pieces of 256 kB."""
        path = self._path(key)
        with _errors():
            file = await self._run(lambda: _open(path))
            try:
                end = offset + length if length is not None else os.fstat(file).st_size
                while offset < end:
                    span = (min(_CHUNK, end - offset), offset)
                    piece = await self._run(partial(os.pread, file, *span))
                    if not piece:
                        return
                    offset += len(piece)
                    yield piece
            finally:
                os.close(file)

    async def exists(self, key: str) -> bool:
        """Whether a regular file lies there."""
        path = self._path(key)
        with _errors():
            return await self._run(lambda: _is_file(path))

    async def delete(self, key: str) -> None:
        """Remove; after a crash the file may be back, and the listing of strays finds it again."""
        path = self._path(key)
        with _errors():
            await self._run(lambda: path.unlink(missing_ok=True))

    async def keys(self, prefix: str = "") -> AsyncIterator[tuple[str, int, float]]:
        """Walk the folder in batches; files that vanish meanwhile are left out."""
        found = walk(self._root, check_prefix(prefix))
        while True:
            with _errors():
                batch = await self._run(lambda: list(islice(found, _BATCH)))
            for entry in batch:
                yield entry
            if len(batch) < _BATCH:
                return

    async def aclose(self) -> None:
        """End the threads; what is being written is finished first."""
        await asyncio.to_thread(self._threads.shutdown)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _path(self, key: str) -> Path:
        path = self._root / check_key(key)
        if os.path.realpath(path.parent) != str(path.parent):
            raise AssetError("bad_key", "the folder is a link", is_retryable=False)
        return path

    def _write(self, path: Path, data: bytes) -> None:
        temporary = self._incoming / secrets.token_hex(16)
        try:
            write_synced(temporary, data)
            self._folders.make(path.parent)
            temporary.replace(path)
        except OSError:
            self._folders.forget()
            raise
        finally:
            # After the rename there is nothing left to remove.
            temporary.unlink(missing_ok=True)

    def _sweep_leftovers(self) -> None:
        """Remove what a killed process left half-written; nothing is being written for a day."""
        for leftover in self._incoming.iterdir():
            with suppress(FileNotFoundError):
                if leftover.stat().st_mtime < time() - _LEFTOVER_S:
                    leftover.unlink()


def _open(path: Path) -> int:
    # O_NONBLOCK: opening a pipe that somebody put there must not wait for its other end.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise AssetError("bad_key", "this is no regular file", is_retryable=False)
    return file


def _read(path: Path) -> bytes:
    with os.fdopen(_open(path), "rb") as file:
        return file.read()


def _is_file(path: Path) -> bool:
    try:
        return S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


@contextmanager
def _errors(*, is_reading: bool = True) -> Iterator[None]:
    """Trouble with the disk can be retried; a file that is not there is an answer, if one was asked for."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOENT and is_reading:
            raise AssetError("missing", "there is no such asset", is_retryable=False) from error
        if error.errno == errno.ELOOP:
            raise AssetError("bad_key", "the asset is a link", is_retryable=False) from error
        name = errno.errorcode.get(error.errno or 0, "unknown")
        raise AssetError("storage", f"the asset folder failed: {name}", is_retryable=True) from error
