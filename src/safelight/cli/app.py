"""The `safelight` command: all groups together."""

from __future__ import annotations

from typing import Annotated

import typer

from safelight import __version__
from safelight.cli import (
    adminkeys,
    auditlog,
    batch,
    bench,
    doctor,
    drill,
    keys,
    lab,
    notices,
    providers,
    reconcile,
    review,
    serving,
    studio,
    submit,
    tasks,
    webhooks,
)
from safelight.cli import credits as ledger

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    # Plain text: half a second faster than boxes, and one line stays one line on standard error.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog="""\
Start everything on this machine, then bring a picture back:

\b
  safelight serve
  safelight submit "a red shoe on white" --wait -o shoe.png

Exit codes: 0 done; 1 a task failed, something was refused or found; 2 wrong usage.
""",
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"safelight {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Takes AI image tasks, answers at once, and never loses a picture or a credit."""


app.add_typer(serving.commands)
app.add_typer(studio.commands)
app.add_typer(lab.commands)
app.add_typer(submit.commands)
app.add_typer(tasks.commands, name="tasks")
app.add_typer(batch.commands, name="batch")
app.add_typer(webhooks.commands, name="webhooks")
app.add_typer(ledger.commands, name="credits")
app.add_typer(keys.commands, name="keys")
app.add_typer(providers.commands, name="providers")
app.add_typer(reconcile.commands, name="reconcile")
app.add_typer(notices.commands, name="notices")
app.add_typer(review.commands, name="review")
app.add_typer(auditlog.commands, name="audit")
app.add_typer(adminkeys.commands, name="admin-keys")
app.add_typer(doctor.commands)
app.add_typer(drill.commands)
app.add_typer(bench.commands)
