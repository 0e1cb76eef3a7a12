"""The folder that a batch comes home to: which batch it is, and the pictures that are there already."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safelight.cli.batchitems import file_name
from safelight.cli.running import USAGE, fail

if TYPE_CHECKING:
    from safelight.client import Asset, AsyncClient, Batch, BatchItem

NOTE = "batch.json"
MANIFEST = "manifest.jsonl"
AT_ONCE = 4
"""Downloads at the same time."""
SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/avif": "avif"}


@dataclass(slots=True)
class Note:
    """What the folder remembers, written before the first send: the key makes a second run go on with the first."""

    key: str
    digest: str
    id: str = ""
    name: str | None = None


@dataclass(slots=True)
class Folder:
    """A folder with its note; one that is not there is made."""

    path: Path

    def read(self) -> Note | None:
        """The note, if there is one."""
        try:
            return Note(**json.loads((self.path / NOTE).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            fail(f"{self.path / NOTE} cannot be read: {error}", code=USAGE)

    def write(self, note: Note) -> None:
        """Remember."""
        self._replace(NOTE, json.dumps(asdict(note), indent=2).encode() + b"\n")

    async def bring_home(self, client: AsyncClient, batch: Batch, *, name: str | None) -> None:
        """Save every picture that is ready and not there yet, and say in the manifest what became of each item."""
        places = asyncio.Semaphore(AT_ONCE)
        lines: list[dict[str, Any]] = []
        saves: list[asyncio.Task[None]] = []
        async with asyncio.TaskGroup() as group:
            async for item in client.batch_results(batch.id):
                files = self._files_of(item, name)
                lines.append(_line(item, [path.name for path, _ in files]))
                for path, asset in files:
                    await places.acquire()
                    save = group.create_task(self._save(client, asset, path))
                    save.add_done_callback(lambda _: places.release())
                    saves.append(save)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        await asyncio.to_thread(self._replace, MANIFEST, text.encode())

    def _files_of(self, item: BatchItem, name: str | None) -> list[tuple[Path, Asset]]:
        if item.task is None:
            return []
        row = item.task.raw.get("metadata", {}).get("row", {})
        stem = file_name(name, row if isinstance(row, dict) else {}, item.position)
        if name is not None:
            stem = f"{stem}-{item.position + 1:05}"  # two rows may have one name
        many = item.task.n > 1
        return [
            (
                self.path / f"{stem}{f'-{number}' if many else ''}.{SUFFIXES.get(asset.content_type, 'bin')}",
                asset,
            )
            for number, asset in enumerate(item.task.assets, start=1)
        ]

    async def _save(self, client: AsyncClient, asset: Asset, path: Path) -> None:
        if not await asyncio.to_thread(_is_there, path, asset):
            await client.save(asset, path)

    def _replace(self, name: str, data: bytes) -> None:
        from safelight.client.files import replace_file

        try:
            self.path.mkdir(parents=True, exist_ok=True)
            replace_file(self.path / name, data)
        except OSError as error:
            fail(f"{self.path / name} cannot be written: {error.strerror or error}")


def digest_of(items: list[dict[str, Any]], at_once: int, accept: str) -> str:
    """What tells one batch from another."""
    return hashlib.sha256(json.dumps([items, at_once, accept], sort_keys=True).encode()).hexdigest()


def _is_there(path: Path, asset: Asset) -> bool:
    try:
        return path.stat().st_size == asset.bytes and (
            hashlib.sha256(path.read_bytes()).hexdigest() == asset.sha256
        )
    except OSError:
        return False


def _line(item: BatchItem, files: list[str]) -> dict[str, Any]:
    task = item.task
    return {
        "position": item.position,
        "task": task.id if task else None,
        "status": task.status if task else "refused",
        "reason": item.refusal or (task.failure.code if task and task.failure else None),
        "prompt": task.prompt if task else None,
        "files": files,
    }
