"""`safelight reconcile`: theirs against ours, and the reports of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safelight.cli.options import AsJson, DataDir
from safelight.cli.output import clean, count_words, print_json, print_line, print_table, time_words
from safelight.cli.running import FAILED, USAGE, fail, run, settings_of

if TYPE_CHECKING:
    from safelight.db.reconciliation import Run

commands = typer.Typer(
    invoke_without_command=True,
    help="Compare a day with what its provider has.",
    epilog="""\
Examples:

\b
  safelight reconcile --provider replicate --day 2026-11-28 --dry-run
  safelight reconcile --provider replicate --day 2026-11-28
  safelight reconcile reports
""",
)

_COUNTS = ("records", "strangers", "unclear", "attempts", "asked", "unreadable")
"""What is counted beside the kinds of findings."""


def _as_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("a day is written as 2026-11-28") from None


Day = Annotated[
    date | None, typer.Option(parser=_as_day, metavar="DAY", help="A UTC day, such as 2026-11-28.")
]
Provider = Annotated[str | None, typer.Option(metavar="NAME", help="A provider, or one of its keys: fal-2.")]


@commands.callback()
def reconcile(
    context: typer.Context,
    provider: Provider = None,
    day: Day = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look and tell, but change and keep nothing.")
    ] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Compare a day's attempts with the provider's own records, apply what was missed, and tell what differs.

    The worker does it every day by itself. A day that is not over is compared up to a minute ago. It exits
    with 1 if there is something for a person, or if the provider could not be asked to the end.
    """
    if context.invoked_subcommand is not None:
        return
    if provider is None or day is None:
        fail("say --provider and --day, or `safelight reconcile reports`", code=USAGE)
    settings = settings_of(data_dir)

    async def work() -> Run | None:
        from safelight.cli.operator import with_lab
        from safelight.service import open_graph

        async with open_graph(with_lab(settings)) as graph:
            if dry_run:
                return await graph.reconcile.preview(provider, day)
            begun = await graph.reconcile.begin(provider, day)
            return None if begun is None else await graph.reconcile.carry_out(begun)

    found = run(work())
    if found is None:
        fail(f"{provider} {day} is being reconciled at this moment; see `safelight reconcile reports`")
    if as_json:
        print_json(_shown(found))
    else:
        _print(found)
    has_something = any(line["kind"] != "missed" for line in found.findings)
    if has_something or found.finished_at is None or not found.is_complete:
        raise typer.Exit(FAILED)


@commands.command()
def reports(
    provider: Provider = None,
    day: Day = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, metavar="N", help="How many at most.")] = 20,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show the reports, the latest first; of a named provider and day with every finding."""
    settings = settings_of(data_dir)

    async def work() -> list[Run]:
        from safelight.db import reconciliation
        from safelight.db.opening import open_database

        async with open_database(settings, must_exist=True) as database, database.connection() as connection:
            return await reconciliation.reports(connection, provider=provider, day=day, room=limit)

    found = run(work())
    if as_json:
        print_json({"data": [_shown(report) for report in found]})
    elif provider is not None and day is not None:
        for report in found:
            _print(report)
    else:
        titles = ["provider", "day", "mode", "finished", "records", "attempts", "findings", "state"]
        print_table(titles, [_row(report) for report in found])


def _row(found: Run) -> Sequence[Any]:
    kinds = {kind: number for kind, number in found.counts.items() if kind not in _COUNTS}
    words = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())) or "none"
    named = (found.provider, str(found.day), found.mode, found.finished_at)
    return [*named, found.counts["records"], found.counts["attempts"], words, _state(found)]


def _print(found: Run) -> None:
    print_line(f"{found.provider} {found.day}, by {found.mode}: {_state(found)}")
    for name in _COUNTS:
        if found.counts[name]:
            print_line(f"  {name}: {found.counts[name]}")
    for line in found.findings:
        print_line(clean(f"  {_line(line)}"))
    left = sum(number for kind, number in found.counts.items() if kind not in _COUNTS) - len(found.findings)
    if left > 0:
        print_line(f"  and {left} more")
    if not found.findings:
        print_line("  no findings")


def _state(found: Run) -> str:
    if found.finished_at is None:
        wait = f"goes on at {time_words(found.wake_at)}" if found.tries else "under way"
        return clean(f"{wait}: {found.note}" if found.note else wait)
    seconds = _seconds(found.started_at, found.finished_at)
    whole = "complete" if found.is_complete else f"incomplete ({found.note or 'too much to ask'})"
    is_partial = found.until_at.date() == found.day
    until = f", up to {time_words(found.until_at)}" if is_partial else ""
    return clean(f"{whole}{until}, in {count_words(seconds, 'second')}")


def _line(line: Mapping[str, Any]) -> str:
    about = (
        f"task {line['task_id']} attempt {line['attempt']}" if line.get("task_id") else "no attempt of ours"
    )
    parts = [f"{line['kind']}: {about}", f"theirs {line['theirs']}"]
    if "ours" in line:
        parts.append(f"ours {line['ours']}")
    if line.get("provider_ref"):
        parts.append(f"provider_ref {line['provider_ref']}")
    if line.get("their_cost") is not None:
        parts.append(f"cost {line['their_cost']:g}")
    if line.get("our_cost") is not None:
        parts.append(f"by our books {line['our_cost']:g}")
    return ", ".join(parts)


def _shown(found: Run) -> dict[str, Any]:
    return {
        "provider": found.provider,
        "day": str(found.day),
        "until": found.until_at,
        "mode": found.mode,
        "is_dry_run": found.id is None,
        "is_complete": found.is_complete,
        "started_at": found.started_at,
        "finished_at": found.finished_at,
        "goes_on_at": found.wake_at,
        "seconds": _seconds(found.started_at, found.finished_at),
        "counts": dict(found.counts),
        "findings": list(found.findings),
        "note": found.note,
    }


def _seconds(started_at: datetime | None, finished_at: datetime | None) -> int:
    return round((finished_at - started_at).total_seconds()) if started_at and finished_at else 0
