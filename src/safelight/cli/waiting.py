"""Wait for a task with a line that moves, then bring its pictures home."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import typer

from safelight.cli.output import clean, count_words, print_json, print_line, size_words
from safelight.cli.running import FAILED, USAGE, fail

if TYPE_CHECKING:
    from safelight.client import AsyncClient, Task

STAGES = {"waiting": "waiting for its turn", "drawing": "drawing", "saving": "saving", "done": "done"}


class ProgressLine:
    """One line on standard error: stage, percent, elapsed. Nothing at all where that is no terminal."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._bar: Any = None
        self._row: Any = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[percent]}", markup=False),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
            self._row = self._bar.add_task("sending", total=None, percent="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, task: Task) -> None:
        """Move the line to where the task stands."""
        if self._bar is None:
            return
        progress = task.progress
        words = STAGES.get(progress.stage, progress.stage)
        place = f", {progress.position} before it" if progress.position else ""
        self._bar.update(
            self._row,
            description=clean(words + place),
            total=None if progress.percent is None else 100,
            completed=progress.percent or 0,
            percent="" if progress.percent is None else f"{progress.percent} %",
        )


async def wait_for(client: AsyncClient, task_id: str) -> Task:
    """Wait until the task has ended, showing how far it is."""
    with ProgressLine() as line:
        return await client.wait(task_id, on_progress=line.show)


async def save_pictures(client: AsyncClient, task: Task, output: Path) -> list[Path]:
    """Save every picture of a task under the name that was asked for, each as a whole."""
    saved: list[Path] = []
    for number, asset in enumerate(task.assets, start=1):
        path = name_of(output, number, task.n)
        try:
            await client.save(asset, path)
        except OSError as error:
            fail(f"{path} cannot be written: {error.strerror or error}; it is kept as asset {asset.id}")
        saved.append(path)
    return saved


def name_of(output: Path, number: int, n: int) -> Path:
    """`shoe.png` for the only picture that was asked for, else `shoe-1.png`, `shoe-2.png`, …"""
    return output if n == 1 else output.with_name(f"{output.stem}-{number}{output.suffix}")


def check_output(output: Path | None) -> None:
    """End with exit code 2, before anything is paid for, if there can be no such file."""
    if output is None:
        return
    if output.is_dir():
        fail(f"-o names a file, and {output} is a folder", code=USAGE)
    if not output.parent.is_dir():
        fail(f"-o: there is no folder {output.parent}", code=USAGE)


def report(task: Task, saved: list[Path], *, as_json: bool) -> None:
    """Say how a task has ended; exit code 1 unless it is ready."""
    if as_json:
        print_json({**task.raw, "saved": [str(path) for path in saved]})
    elif task.status == "ready":
        _report_ready(task, saved)
    if task.status != "ready":
        if not as_json and task.failure is not None:
            failure = task.failure
            typer.echo(
                clean(f"safelight: task {task.id} failed: {failure.code}: {failure.message}"), err=True
            )
        raise typer.Exit(FAILED)


def _report_ready(task: Task, saved: list[Path]) -> None:
    seconds = (task.finished_at - task.created_at).total_seconds() if task.finished_at else 0.0
    pictures = count_words(len(task.assets), "picture")
    if len(task.assets) < task.n:
        pictures = f"{len(task.assets)} of {task.n} pictures"
    paid = count_words(task.credits.captured, "credit")
    print_line(f"{task.id}  ready  {pictures}, {paid}, {seconds:.1f} s")
    for number, asset in enumerate(task.assets):
        place = str(saved[number]) if saved else asset.url
        print_line(f"  {place}  {asset.width}×{asset.height}  {size_words(asset.bytes)}")
