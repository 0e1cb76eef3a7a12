"""`safelight tasks`: list, show, wait for, cancel and erase tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safelight.cli.options import AsJson, DataDir, Output, Url
from safelight.cli.output import clean, print_json, print_line, print_table, size_words, time_words
from safelight.cli.remote import ask
from safelight.cli.running import INTERRUPTED, fail
from safelight.cli.timeline import public_timeline, read_timeline
from safelight.cli.waiting import check_output, report, save_pictures, wait_for

if TYPE_CHECKING:
    from safelight.client import AsyncClient, Task

commands = typer.Typer(no_args_is_help=True, help="List, show, wait for, cancel and erase tasks.")

TaskId = Annotated[str, typer.Argument(metavar="ID", help="The id that `submit` printed.")]
_PAGE = 100


@commands.command(
    "list",
    epilog="""\
Examples:

\b
  safelight tasks list
  safelight tasks list --status failed --limit 200
  safelight tasks list --json | jq -r '.data[].id'
""",
)
def list_tasks(
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many at most.")] = 20,
    status: Annotated[
        str | None, typer.Option(metavar="WORD", help="Only processing, ready or failed ones.")
    ] = None,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Go on where a list ended (next_cursor).")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List the account's tasks, newest first."""

    async def collect(client: AsyncClient) -> tuple[list[Task], str | None]:
        found: list[Task] = []
        after = cursor
        while len(found) < limit:
            page = await client.list(status=status, cursor=after, limit=min(_PAGE, limit - len(found)))
            found.extend(page.data)
            after = page.next_cursor
            if after is None:
                break
        return found, after

    found, after = ask(collect, data_dir=data_dir, url=url)
    if as_json:
        print_json({"data": [task.raw for task in found], "next_cursor": after})
        return
    rows = [
        (task.id, task.status, _how_far(task), task.created_at, task.model, task.prompt) for task in found
    ]
    print_table(["id", "status", "", "created", "model", "prompt"], rows)


@commands.command()
def show(task_id: TaskId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Show a task with its timeline.

    On the machine of the service (and without --url) the timeline has every move and every attempt; elsewhere
    it has what customers see.
    """
    inner = None if url else read_timeline(data_dir, task_id)
    task = ask(
        lambda client: _look(client, task_id, is_optional=inner is not None), data_dir=data_dir, url=url
    )
    if as_json:
        print_json({**(task.raw if task else {"id": task_id}), **(inner.as_json() if inner else {})})
        return
    if task is not None:
        _print_task(task)
        print_line()
    timeline = inner or (public_timeline(task) if task else None)
    if timeline is not None:
        timeline.print()


@commands.command()
def wait(
    task_id: TaskId,
    output: Output = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Wait until a task has ended; with -o save its pictures."""
    check_output(output)

    async def finish(client: AsyncClient) -> tuple[Task, list[Path]]:
        task = await wait_for(client, task_id)
        return task, await save_pictures(client, task, output) if output else []

    try:
        task, saved = ask(finish, data_dir=data_dir, url=url)
    except KeyboardInterrupt:
        fail("interrupted; the task goes on. The same command waits for it again", code=INTERRUPTED)
    report(task, saved, as_json=as_json)


@commands.command()
def cancel(task_id: TaskId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Ask for a task to be stopped; one that is already being drawn may still become ready."""
    task = ask(lambda client: client.cancel(task_id), data_dir=data_dir, url=url)
    if as_json:
        print_json(task.raw)
        return
    print_line(f"{task.id}  {task.status}  {'canceled' if task.is_finished else 'cancel requested'}")


@commands.command()
def erase(task_id: TaskId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Erase what a finished task said and drew, for good; what it cost stays in the books."""
    task = ask(lambda client: client.erase(task_id), data_dir=data_dir, url=url)
    if as_json:
        print_json(task.raw)
        return
    print_line(f"{task.id}  {task.status}  erased")


async def _look(client: AsyncClient, task_id: str, *, is_optional: bool) -> Task | None:
    """The public view; it may be missing (service down, another account) where the inner one is at hand."""
    from safelight.client import ClientError

    try:
        return await client.get(task_id)
    except ClientError:
        if is_optional:
            return None
        raise


def _how_far(task: Task) -> str:
    if task.status == "ready":
        return f"{len(task.assets)}/{task.n}"
    if task.failure is not None:
        return task.failure.code
    percent = "" if task.progress.percent is None else f" {task.progress.percent} %"
    return task.progress.stage + percent


def _print_task(task: Task) -> None:
    paid = task.credits
    facts = [
        ("task", task.id),
        ("status", task.status),
        ("model", f"{task.model}, {task.operation}, n {task.n}"),
        ("prompt", task.prompt),
        ("credits", f"held {paid.held}, captured {paid.captured}, released {paid.released}"),
        ("created", time_words(task.created_at)),
        ("finished", time_words(task.finished_at) or "not yet"),
    ]
    if task.failure is not None:
        facts.append(
            ("failure", f"{task.failure.failure_class}, {task.failure.code}: {task.failure.message}")
        )
    for name, words in facts:
        print_line(f"{name:<9} {clean(words)}")
    for asset in task.assets:
        size = f"{asset.width}×{asset.height}  {size_words(asset.bytes)}"
        print_line(f"{'asset':<9} {asset.id}  {asset.content_type}  {size}  sha256 {asset.sha256[:16]}…")
