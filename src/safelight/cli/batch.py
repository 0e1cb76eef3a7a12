"""`safelight batch`: a file of items to a folder of pictures; it can be closed and gone on with at any time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from safelight.cli.batchfolder import Folder, Note, digest_of
from safelight.cli.batchitems import Pattern, read_items
from safelight.cli.options import AsJson, DataDir, Url
from safelight.cli.output import clean, count_words, print_json, print_line, print_table, time_words
from safelight.cli.remote import ask
from safelight.cli.running import FAILED, INTERRUPTED, USAGE, fail
from safelight.cli.submit import read_options

if TYPE_CHECKING:
    from safelight.client import AsyncClient, Batch, ClientError

commands = typer.Typer(no_args_is_help=True, help="Work off a file of items, so many at once.")

BatchId = Annotated[str, typer.Argument(metavar="ID", help="The id that `batch run` printed.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where the pictures go.")]


@dataclass(slots=True)
class Trip:
    """A batch on its way home, in case it is broken off."""

    folder: Folder
    note: Note | None
    batch_id: str = ""

    async def follow(self, client: AsyncClient) -> Batch:
        """Watch it to its end, and save pictures meanwhile; those that are there stay."""
        name = self.note.name if self.note else None
        saved = 0
        with Bar() as bar:
            async for batch in client.watch_batch(self.batch_id):
                bar.show(batch)
                # Not at every look: each time the whole list is read.
                if batch.is_finished or batch.ready - saved >= max(20, batch.items // 20):
                    await self.folder.bring_home(client, batch, name=name)
                    saved = batch.ready
                if batch.is_finished:
                    return batch
        raise AssertionError("a watch ends with a finished batch")

    def advise(self, _: ClientError | None = None) -> str:
        """How to go on after an interruption."""
        if self.batch_id:
            where = f" --out {self.folder.path}"
            return f"the batch goes on. To follow it again: safelight batch resume {self.batch_id}{where}"
        return "perhaps it was accepted: the same command goes on with it"


@commands.command(
    epilog="""\
Examples:

\b
  safelight batch run products.csv --prompt "a {{colour}} {{product}} on white" --out shoes
  safelight batch run products.csv --prompt "a {{product}}" --name "{{sku}}" --size 64x64
  safelight batch run tasks.jsonl --at-once 20 --partly
"""
)
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with a row an item, or JSON lines.")],
    prompt: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="One prompt for all; {{column}} is the value of the row."),
    ] = None,
    at_once: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="How many are at work.")] = 5,
    out: Out = None,
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="How files are named, such as {{sku}}; else by place.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which model; else the default one.")
    ] = None,
    n: Annotated[int | None, typer.Option("-n", metavar="N", help="How many pictures an item.")] = None,
    size: Annotated[str | None, typer.Option(metavar="WxH", help="Such as 1024x1024.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=JSON", help="What only this model knows.")
    ] = None,
    partly: Annotated[
        bool, typer.Option("--partly", help="Take what can be had; else one bad item refuses the whole.")
    ] = False,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Submit every item of a file, so many at work at once, and save the pictures.

    The folder remembers the batch: the same command again goes on with it, and buys nothing twice.
    """
    fields = {"model": model, "n": n, "size": size, "options": read_options(option or [], None) or None}
    given = {key: value for key, value in fields.items() if value is not None}
    items = read_items(file, Pattern(prompt, given))
    accept = "partly" if partly else "all"
    trip = _prepare(Folder(out or Path(f"batch-{file.stem}")), digest_of(items, at_once, accept), name)

    async def work(client: AsyncClient) -> Batch:
        if trip.note is not None and not trip.batch_id:
            receipt = await client.create_batch(
                items,
                at_once=at_once,
                accept="partly" if partly else "all",
                name=file.name[:200],
                idempotency_key=trip.note.key,
            )
            trip.batch_id = trip.note.id = receipt.id
            trip.folder.write(trip.note)
            typer.echo(f"safelight: batch {receipt.id}: {count_words(receipt.items, 'item')}", err=True)
        return await trip.follow(client)

    _take(trip, work, as_json=as_json, url=url, data_dir=data_dir)


@commands.command()
def resume(
    batch_id: BatchId, out: Out = None, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
) -> None:
    """Follow a batch again, and save what is missing; on another machine as well."""
    folder = Folder(out or Path(f"batch-{batch_id}"))
    note = folder.read()
    if note is not None and note.id not in ("", batch_id):
        fail(f"{folder.path} belongs to batch {note.id}", code=USAGE)
    trip = Trip(folder, note, batch_id)
    _take(trip, trip.follow, as_json=as_json, url=url, data_dir=data_dir)


@commands.command("list")
def list_batches(
    limit: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="How many at most.")] = 20,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List the account's batches, newest first."""
    page = ask(lambda client: client.list_batches(limit=limit), data_dir=data_dir, url=url)
    if as_json:
        print_json({"data": [batch.raw for batch in page.data], "next_cursor": page.next_cursor})
        return
    rows = [
        (
            batch.id,
            batch.status,
            f"{batch.ended}/{batch.items}",
            batch.failed + batch.refused,
            time_words(batch.created_at),
            batch.name,
        )
        for batch in page.data
    ]
    print_table(["id", "status", "ended", "failed", "created", "name"], rows)


@commands.command()
def show(batch_id: BatchId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Show how far a batch is."""
    _print(ask(lambda client: client.get_batch(batch_id), data_dir=data_dir, url=url), as_json=as_json)


@commands.command()
def cancel(batch_id: BatchId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Take back what has not begun; what is ready stays."""
    _print(ask(lambda client: client.cancel_batch(batch_id), data_dir=data_dir, url=url), as_json=as_json)


@commands.command()
def results(
    batch_id: BatchId,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A zip file.")],
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Save the pictures that are ready, and a manifest, as one zip file."""
    if not output.parent.is_dir():
        fail(f"-o: there is no folder {output.parent}", code=USAGE)
    ask(lambda client: client.save_batch(batch_id, output), data_dir=data_dir, url=url)
    print_line(str(output))


class Bar:
    """A bar on standard error; nothing where that is no terminal."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._bar: Any = None
        self._row: Any = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                BarColumn(bar_width=32),
                MofNCompleteColumn(),
                TextColumn("{task.description}", markup=False),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._row = self._bar.add_task("", total=None)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, batch: Batch) -> None:
        """Move the bar to where the batch stands."""
        if self._bar is not None:
            failed = batch.failed + batch.refused
            words = f"{batch.at_work} at work" + (f", {failed} failed" if failed else "")
            self._bar.update(self._row, total=batch.items, completed=batch.ended, description=words)


def _prepare(folder: Folder, digest: str, name: str | None) -> Trip:
    """The folder's own batch, or a new one whose key is written down before anything is sent."""
    from safelight.client.checks import new_key

    note = folder.read()
    if note is None:
        note = Note(new_key(), digest, name=name)
        folder.write(note)
    elif note.digest != digest:
        fail(f"{folder.path} belongs to another batch; choose another folder with --out", code=USAGE)
    return Trip(folder, note, note.id)


def _take(trip: Trip, work: Any, *, as_json: bool, url: str | None, data_dir: Path | None) -> None:
    try:
        batch: Batch = ask(work, data_dir=data_dir, url=url, advise=trip.advise)
    except KeyboardInterrupt:
        fail(f"interrupted; {trip.advise()}", code=INTERRUPTED)
    _print(batch, as_json=as_json, folder=trip.folder.path)
    if batch.failed or batch.refused:
        raise typer.Exit(FAILED)


def _print(batch: Batch, *, as_json: bool, folder: Path | None = None) -> None:
    if as_json:
        print_json({**batch.raw, **({"folder": str(folder)} if folder else {})})
        return
    counts = f"{batch.ready} ready, {batch.failed} failed, {batch.refused} refused"
    open_ones = "" if batch.is_finished else f", {batch.at_work} at work, {batch.waiting} waiting"
    paid = count_words(batch.credits.captured, "credit")
    print_line(f"{batch.id}  {batch.status}  {counts}{open_ones}, {paid}{f'  {folder}' if folder else ''}")
    if batch.name:
        print_line(f"  {clean(batch.name)}")
