"""The disk below the local store: files and folders that survive a power cut."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from threading import Lock

from safelight.assets.store import is_key

_MOST_REMEMBERED = 10_000


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)


def sync_folder(path: Path) -> None:
    """Wait until the disk knows the names in this folder."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def walk(root: Path, prefix: str) -> Iterator[tuple[str, int, float]]:
    """Every (key, bytes, modified) below `root`, one open folder a level and nothing kept."""
    start = root / prefix.rpartition("/")[0]
    for entry in _files(start):
        key = os.path.relpath(entry.path, root)
        if not key.startswith(prefix) or not is_key(key):
            continue
        with suppress(FileNotFoundError):
            found = entry.stat(follow_symlinks=False)
            yield key, found.st_size, found.st_mtime


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield entry
            elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                yield from _files(Path(entry.path))


class Folders:
    """The folders below `root` that are certain to survive a crash."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._safe: set[Path] = set()
        self._lock = Lock()

    def make(self, path: Path) -> None:
        """Make a folder and its parents; each is known to the disk before the next is made.

        A folder that is already there may be so young that its name is not on the disk yet, by another
        thread or process: so every folder is synced at its first use here, whoever made it.
        """
        if path in self._safe:
            return
        with self._lock:
            if len(self._safe) > _MOST_REMEMBERED:
                self._safe.clear()
            for folder in (*reversed(path.parents), path):
                if folder.is_relative_to(self._root) and folder not in self._safe:
                    folder.mkdir(mode=0o700, exist_ok=True)
                    sync_folder(folder.parent)
                    self._safe.add(folder)

    def forget(self) -> None:
        """Start anew: something may have been removed behind our back."""
        with self._lock:
            self._safe.clear()


class FolderSync:
    """Syncs of one folder that wait for each other share one: who comes while it runs joins the next."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._folders: dict[Path, _Turns] = {}

    async def sync(self, folder: Path) -> None:
        """Return after a sync of `folder` that began after this call."""
        turns = self._folders.setdefault(folder, _Turns())
        turns.waiting += 1
        turns.asked += 1
        ticket = turns.asked
        try:
            async with turns.lock:
                if turns.done < ticket:
                    reached = turns.asked
                    await asyncio.get_running_loop().run_in_executor(self._threads, sync_folder, folder)
                    turns.done = reached
        finally:
            turns.waiting -= 1
            if not turns.waiting:
                self._folders.pop(folder, None)


class _Turns:
    """Who asked for a sync of one folder, and up to whom it is done."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = self.asked = self.done = 0
