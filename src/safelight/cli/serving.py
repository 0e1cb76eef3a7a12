"""`safelight serve`, `api`, `worker`, `migrate`: the service and its parts."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from safelight.cli.options import DataDir
from safelight.cli.output import count_words, print_line
from safelight.cli.running import USAGE, fail, run, run_server, settings_of

commands = typer.Typer()

Host = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address to listen on; else 127.0.0.1.")]
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65_535, metavar="PORT", help="Port of the API, else 8000; 0: a free one."),
]


@commands.command(
    epilog="""\
Examples:

\b
  safelight serve
  safelight serve --data-dir /srv/safelight --port 0 --lab-port 0
  safelight serve --lab-knobs '{"callback_loss": 0.3, "fail": 0.1}'
"""
)
def serve(
    data_dir: DataDir = None,
    host: Host = None,
    port: Port = None,
    lab_port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, metavar="PORT", help="Port of the lab, else 8001; 0: a free one."),
    ] = None,
    lab_knobs: Annotated[
        str | None, typer.Option(metavar="JSON", help="How the lab misbehaves, as a JSON object.")
    ] = None,
    with_lab: Annotated[
        bool, typer.Option("--lab", help="Start the lab although providers are configured.")
    ] = False,
) -> None:
    """Run everything on this machine: database, API and worker.

    On the first start it makes the account `default` with 1,000 credits, and writes its API key to `key` in
    the data directory, where the other commands find it. While no provider is configured it starts the lab,
    which plays one.
    """
    from safelight.lab.knobs import Knobs
    from safelight.service import run_serve

    settings = settings_of(
        data_dir, host=host, port=port, lab_port=lab_port, lab_knobs=lab_knobs, with_lab=with_lab or None
    )
    try:
        Knobs.parse(settings.lab_knobs)
    except ValueError as error:
        fail(f"--lab-knobs: {error}", code=USAGE)
    run_server(run_serve(settings, announce=print_line))


@commands.command(epilog="Example:\n\n\b\n  safelight api --host 0.0.0.0 --port 8000")
def api(data_dir: DataDir = None, host: Host = None, port: Port = None) -> None:
    """Run the API alone, on as many machines as you like."""
    from safelight.service import run_api

    run_server(run_api(settings_of(data_dir, host=host, port=port), announce=print_line))


@commands.command()
def worker(data_dir: DataDir = None) -> None:
    """Run a worker alone, on as many machines as you like."""
    from safelight.service import run_worker

    run_server(run_worker(settings_of(data_dir), announce=print_line))


@commands.command(epilog="Example, with safelight stopped:\n\n\b\n  safelight migrate --after-restore")
def migrate(
    after_restore: Annotated[
        bool,
        typer.Option(
            "--after-restore", help="The database was restored: look for what may be sent already, then send."
        ),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Bring the database up to date; several may be started at once.

    After a restore from a backup the database does not know what was sent since. With --after-restore the next attempts
    of every unfinished task are looked for upstream before they are sent, so that nothing is made twice.
    """
    from safelight.service import run_after_restore, run_migrate

    settings = settings_of(data_dir)
    # What was restored is there: a database made just now would only hide that the folder is the wrong one.
    revision = run(run_migrate(settings, must_exist=after_restore))
    print_line(f"the database is at {revision}")
    if after_restore:
        count = run(run_after_restore(settings, by=f"os:{getpass.getuser()}"))
        print_line(f"{count_words(count, 'unfinished task')} will be looked for before anything is sent")
