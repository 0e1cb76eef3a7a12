"""`safelight notices`: what a provider's callbacks are worth."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safelight.cli.options import AsJson, DataDir
from safelight.cli.output import print_json, print_line
from safelight.cli.running import fail, run, settings_of

if TYPE_CHECKING:
    from safelight.db.notices import Finished
    from safelight.lifecycle.notices import Report

commands = typer.Typer(no_args_is_help=True, help="What a provider's callbacks are worth.")


@commands.callback()
def notices() -> None:
    """What a provider's callbacks are worth."""


@commands.command(
    epilog="""\
Examples:

\b
  safelight notices report --provider replicate
  safelight notices report --provider replicate --days 30 --json
"""
)
def report(
    provider: Annotated[str, typer.Option(metavar="NAME", help="The provider; all its keys count.")],
    days: Annotated[int, typer.Option(min=1, max=366, metavar="N", help="Over how many days.")] = 7,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Count a provider's callbacks by what became of them, and compare them with polling.

    For a provider in `observe` mode it says what applying its callbacks would have changed.
    """
    settings = settings_of(data_dir)

    async def work() -> Report:
        from safelight.cli.operator import with_lab
        from safelight.db.opening import open_database
        from safelight.lifecycle.notices import report as make
        from safelight.upstreams import read_upstreams

        names = read_upstreams(with_lab(settings)).names
        if provider not in names:
            fail(f"no provider {provider!r} is configured; there are {', '.join(sorted(names))}")
        table = settings.providers.get(provider)
        mode = table.mode if table else "apply"
        async with open_database(settings, must_exist=True) as database, database.connection() as connection:
            return await make(connection, names[provider], mode=mode, days=days)

    found = run(work())
    if as_json:
        shown: dict[str, Any] = asdict(found)
        print_json({**shown, "received": found.received, "forged": found.forged})
    else:
        _print(found)


_WORDS = {
    "applied": "applied",
    "would_apply": "would have been applied",
    "progress": "progress",
    "duplicate": "duplicate",
    "out_of_order": "out of order",
    "stale": "stale: of an earlier attempt",
    "hint": "hints",
    "unusable": "unusable",
}


def _print(found: Report) -> None:
    keys = ", ".join(found.providers)
    print_line(f"{keys}, mode {found.mode}, the last {found.days} days: {found.received:,} callbacks")
    for verdict, words in _WORDS.items():
        if verdict in found.verdicts:
            _print_count(found, words, found.verdicts[verdict])
    _print_count(found, "early: before the submit's answer", found.early)
    _print_count(found, "unknown: about nothing we know", found.unknown)
    _print_count(found, "forged or unreadable", found.forged)
    for reason, number in found.rejected.items():
        print_line(f"    {reason}: {number:,}")
    _print_finished(found.finished, is_observed=found.mode == "observe")


def _print_count(found: Report, words: str, number: int) -> None:
    print_line(f"  {words}: {number:,} ({_share(number, found.received)})")


def _print_finished(finished: Finished, *, is_observed: bool) -> None:
    never = f"{finished.never_came:,} ({_share(finished.never_came, finished.finished)})"
    print_line(f"attempts that ended upstream: {finished.finished:,}")
    print_line(f"  no callback ever came: {never}")
    print_line(f"  first noticed by a callback: {finished.by_callback:,}")
    if finished.by_reconciliation:
        print_line(f"  only noticed by reconciliation: {finished.by_reconciliation:,}")
    if finished.compared:
        print_line(
            f"  callback against the look that found the end ({finished.compared:,}):"
            f" median {_delay(finished.median_delay_s)}, p95 {_delay(finished.p95_delay_s)}"
        )
    if is_observed and finished.sooner:
        print_line(
            f"applied, they would have told of {finished.sooner:,} ends sooner:"
            f" by {finished.median_gain_s or 0:.1f} s (median), {finished.p95_gain_s or 0:.1f} s (p95)"
        )
    elif is_observed:
        print_line("applied, they would have changed nothing")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _delay(seconds: float | None) -> str:
    seconds = seconds or 0.0
    return f"{abs(seconds):.1f} s {'sooner' if seconds < 0 else 'later'}"
