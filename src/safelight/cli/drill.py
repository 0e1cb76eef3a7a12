"""`safelight drill`: rehearse what can go wrong, on a scratch database."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from safelight.cli.options import AsJson
from safelight.cli.output import print_json
from safelight.cli.running import FAILED, USAGE, fail, run_server

commands = typer.Typer()


@commands.command(
    short_help="Rehearse kills, lost callbacks and broken storage.",
    epilog="""\
Examples:

\b
  safelight drill
  safelight drill --minutes 30 --rate 2
  safelight drill --faults kills,callbacks --seed 7 --json
  safelight drill --faults none --tasks 100

Exit codes: 0 passed; 1 failed; 2 wrong usage, or a database that is not empty.
""",
)
def drill(
    minutes: Annotated[
        float,
        typer.Option(
            min=0.05, max=1_440, metavar="MINUTES", help="How long customers submit; the drill lasts longer."
        ),
    ] = 2.0,
    tasks: Annotated[
        int | None, typer.Option(min=1, metavar="COUNT", help="Stop submitting after so many tasks.")
    ] = None,
    rate: Annotated[float, typer.Option(min=0.01, max=1_000, metavar="RATE", help="Submits a second.")] = 4.0,
    faults: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="all, none, or some of: kills, pauses, database, queue, storage, callbacks, gateway, limits, answers, "
            "endings, results.",
        ),
    ] = "all",
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="The same faults in the same order.")] = 1,
    database_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="An empty PostgreSQL database, instead of an embedded one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rehearse on a scratch installation: load it, let things go wrong, heal, wait, and compare the books.

    It takes longer than --minutes: after them everything still has to come to its end, and is audited then.
    It has a temporary directory, a database and a lab of its own; your installation and its settings are not touched.
    In the end three books must agree: the customers' log of what was accepted, the service's, and the lab's ledger.
    """
    from safelight.cli.rehearsal.plan import Fault, Plan
    from safelight.cli.rehearsal.run import rehearse

    words = {"all": ",".join(Fault), "none": ""}.get(faults, faults)
    try:
        chosen = tuple(Fault(word.strip()) for word in words.split(",") if word.strip())
    except ValueError as error:
        fail(f"--faults: {error}; there are {', '.join(Fault)}", code=USAGE)
    plan = Plan(minutes=minutes, tasks=tasks, rate=rate, faults=chosen, seed=seed, database_url=database_url)
    # The connections of our own look break with the database that is killed: that is meant, and no news.
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)
    report = run_server(rehearse(plan, _say))
    if as_json:
        from safelight.cli.rehearsal.page import page_json

        print_json(page_json(report))
    else:
        from safelight.cli.rehearsal.page import print_page

        print_page(report)
    if not report.is_passed:
        raise typer.Exit(FAILED)


def _say(what: str) -> None:
    typer.echo(f"drill: {what}", err=True)
