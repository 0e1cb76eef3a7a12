"""`safelight review`: decide about tasks that wait for a person. Works on the database itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from safelight.cli.operator import reviewing, this_user
from safelight.cli.options import AsJson, DataDir
from safelight.cli.output import clean, print_json, print_line, print_table, time_words
from safelight.cli.running import USAGE, fail, run, settings_of
from safelight.domain.review import Choice, FailReason, ResubmitReason
from safelight.domain.task import ReviewReason

if TYPE_CHECKING:
    from safelight.settings import Settings

commands = typer.Typer(
    no_args_is_help=True,
    help="""\
Decide about tasks that wait for a person.

A decision is recorded with your OS user's name. Of two people who decide about the same task, the second is refused.
""",
    short_help="Decide about tasks that wait for a person.",
)

TaskId = Annotated[str, typer.Argument(metavar="ID", help="The task.")]
Version = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="The version that you looked at; without it, the task as it is now."
    ),
]
Note = Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays with the decision.")]


@commands.command("list")
def list_reviews(
    reason: Annotated[ReviewReason | None, typer.Option(help="Only those with this reason.")] = None,
    provider: Annotated[str | None, typer.Option(metavar="NAME", help="Only those of this provider.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="How many at most.")] = 50,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List tasks in review, oldest first."""
    settings = settings_of(data_dir)

    async def work() -> list[dict[str, Any]]:
        from safelight.db import adminviews
        from safelight.db.opening import open_database

        async with open_database(settings, must_exist=True) as database, database.connection() as connection:
            return await adminviews.reviews(connection, limit=limit, reason=reason, provider=provider)

    found = run(work())
    if as_json:
        print_json({"data": found, "next_cursor": None})
        return
    titles = ["id", "version", "reason", "since", "decide by", "provider", "account", "said"]
    print_table(titles, [_row(task) for task in found])


@commands.command()
def show(task_id: TaskId, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Show everything about a task: attempts, events, callbacks, ledger, decisions."""
    settings = settings_of(data_dir)
    found = run(_read(settings, _uuid_of(task_id)))
    if as_json:
        print_json(found)
        return
    for name in ("id", "state", "version", "review_reason", "decide_by", "provider", "model", "account_name"):
        value = found[name]
        print_line(clean(f"{name:14} {time_words(value) if name == 'decide_by' else value}"))
    for name, columns in _TABLES.items():
        if found[name]:
            print_line(f"\n{name}")
            print_table(columns, [[row[column] for column in columns] for row in found[name]])


@commands.command("check-again")
def check_again(
    task_id: TaskId,
    note: Note = "",
    version: Version = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Have the provider asked at once. A result is archived; a task that still runs has its time again."""
    _decide(data_dir, task_id, Choice.CHECK_AGAIN, {"note": note}, version=version, as_json=as_json)


@commands.command(
    epilog="""\
Example:

\b
  safelight review resubmit 0199… --reason proved_absent --note "not in the provider's list of today"
"""
)
def resubmit(
    task_id: TaskId,
    reason: Annotated[ResubmitReason, typer.Option(help="What makes it safe, or that you take the risk.")],
    note: Annotated[str, typer.Option(metavar="TEXT", help="What makes you sure; 10 characters at least.")],
    version: Version = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Give the attempt up and make another one. It may be paid for twice, unless the first never was accepted."""
    words = {"reason_code": reason.value, "note": note}
    _decide(data_dir, task_id, Choice.RESUBMIT, words, version=version, as_json=as_json)


@commands.command(
    epilog="""\
Examples:

\b
  safelight review attach 0199… shoe-1.png shoe-2.png
  safelight review attach 0199… https://results.example/shoe.png --note "from the provider's support"
"""
)
def attach(
    task_id: TaskId,
    pictures: Annotated[list[str], typer.Argument(metavar="PICTURE...", help="Files, or https addresses.")],
    note: Note = "",
    version: Version = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Deliver these pictures as the task's result; the customer pays for each of them."""
    addresses = [text for text in pictures if text.lower().startswith(("http://", "https://"))]
    if addresses and len(addresses) < len(pictures):
        fail("name files or addresses, not both", code=USAGE)
    words: dict[str, Any] = {"note": note, "urls": addresses}
    if not addresses:
        most = settings_of(data_dir).max_asset_bytes
        words["files"] = [_bytes_of(text, most) for text in pictures]
    _decide(data_dir, task_id, Choice.ATTACH_RESULT, words, version=version, as_json=as_json)


@commands.command("fail")
def fail_and_release(
    task_id: TaskId,
    reason: Annotated[FailReason, typer.Option(help="The code that the customer sees.")] = (
        FailReason.OPERATOR_DECISION
    ),
    note: Note = "",
    version: Version = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """End the task without a picture, and give the customer the credits back."""
    words = {"reason_code": reason.value, "note": note}
    _decide(data_dir, task_id, Choice.FAIL_AND_RELEASE, words, version=version, as_json=as_json)


@commands.command()
def accept(
    task_id: TaskId,
    note: Note = "",
    version: Version = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Take those of the provider's pictures that can be had, and let that be all."""
    _decide(data_dir, task_id, Choice.ACCEPT_AS_DONE, {"note": note}, version=version, as_json=as_json)


def _decide(
    data_dir: Path | None,
    task_id: str,
    choice: Choice,
    words: dict[str, Any],
    *,
    version: int | None,
    as_json: bool,
) -> None:
    settings, uuid = settings_of(data_dir), _uuid_of(task_id)

    async def work() -> bytes:
        from structlog.testing import capture_logs

        from safelight.db import tasks
        from safelight.lifecycle.review import Ruling

        # Standard output has the answer alone; what is worth a log line is in the audit log too.
        with capture_logs():
            async with reviewing(settings) as (database, review):
                seen = version
                if seen is None:
                    async with database.connection() as connection:
                        found = await tasks.read_task(connection, uuid)
                    seen = found[0].version if found else 1
                answer = await review.decide(Ruling(uuid, seen, choice, **words), this_user())
                return answer.body

    document = json.loads(run(work()))
    if as_json:
        print_json(document)
    else:
        print_line(f"{document['task_id']}  {document['decision']}: {document['state']}")


async def _read(settings: Settings, task_id: UUID) -> dict[str, Any]:
    from safelight.db import adminviews
    from safelight.db.opening import open_database

    async with open_database(settings, must_exist=True) as database, database.connection() as connection:
        found = await adminviews.whole_task(connection, task_id)
    if found is None:
        fail("there is no such task")
    return found


def _uuid_of(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        fail(f"{clean(text)!r} is no id of a task", code=USAGE)


def _bytes_of(name: str, most: int) -> bytes:
    from safelight.client import FileUnreadable
    from safelight.client.pictures import read_picture

    try:
        return read_picture(Path(name), most_bytes=most)
    except FileUnreadable as error:
        fail(clean(str(error)), code=USAGE)


def _row(task: dict[str, Any]) -> list[Any]:
    return [
        task["id"],
        task["version"],
        task["review_reason"],
        task["review_since"],
        task["decide_by"],
        task["provider"],
        task["account_name"],
        task["excerpt"] or task["upstream_status"],
    ]


_TABLES = {
    "attempts": [
        "number",
        "provider",
        "sends",
        "outcome",
        "noticed_by",
        "provider_ref",
        "sent_at",
        "excerpt",
    ],
    "events": ["version", "created_at", "target", "attempt", "cause", "detail"],
    "notices": ["id", "received_at", "attempt", "upstream_status", "verdict"],
    "decisions": ["version", "created_at", "decided_by", "decision", "reason_code", "note"],
    "findings": ["id", "kind", "created_at", "resolved_by", "resolution"],
    "losses": ["attempt", "provider", "cost", "reason"],
    "entries": ["id", "kind", "available_delta", "held_delta"],
}
