"""`safelight bench`: measure this machine against the aims."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from safelight.cli.options import AsJson
from safelight.cli.output import print_json
from safelight.cli.running import run_server

commands = typer.Typer()


class Part(StrEnum):
    """What can be measured alone."""

    SUBMITS = "submits"
    TASKS = "tasks"
    DELAYS = "delays"


@commands.command(
    short_help="Measure this machine against the aims.",
    epilog="""\
Examples:

\b
  safelight bench --quick
  safelight bench --only submits --connections 128
  safelight bench --data-dir /srv/safelight --json
""",
)
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A first impression in about a minute.")] = False,
    only: Annotated[
        list[Part] | None, typer.Option("--only", help="One part; may be given more than once.")
    ] = None,
    connections: Annotated[
        int, typer.Option(min=1, max=1_000, metavar="COUNT", help="Submits in flight at once.")
    ] = 64,
    finishes_per_s: Annotated[
        float, typer.Option(min=1, max=10_000, metavar="RATE", help="Tasks that end a second in `delays`.")
    ] = 100.0,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="A running instance, instead of one of its own.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, resolve_path=True, help="Where that instance lives."),
    ] = None,
    lab_url: Annotated[str, typer.Option(metavar="URL", help="The lab of that instance.")] = (
        "http://127.0.0.1:8001"
    ),
    as_json: AsJson = False,
) -> None:
    """Measure submits, whole tasks, and the delay from upstream-done to ready, beside what is aimed at.

    It starts instances of its own in a temporary directory and removes them; nothing else is touched. With
    --url or --data-dir it measures a running instance that has a lab and should be idle: its account pays a
    credit for every task.
    """
    from safelight.cli.measure.instance import running_instance
    from safelight.cli.measure.run import PARTS, Plan, measure, quick_plan
    from safelight.cli.running import plain_errors

    with plain_errors():
        running = running_instance(url, data_dir, lab_url) if url or data_dir else None
    plan = quick_plan(connections, finishes_per_s) if quick else Plan(connections, finishes_per_s)
    parts = {part.value for part in only} if only else set(PARTS)
    figures = run_server(measure(plan, parts, running, _say))
    if as_json:
        print_json(asdict(figures))
    else:
        from safelight.cli.measure.report import print_figures

        print_figures(figures)


def _say(what: str) -> None:
    typer.echo(f"measuring: {what}", err=True)
