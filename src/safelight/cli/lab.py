"""`safelight lab`: the simulated upstreams, alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from safelight.cli.options import DATA_DIR_VARIABLE
from safelight.cli.output import print_line
from safelight.cli.running import FAILED, USAGE, fail, run_server

commands = typer.Typer()


@commands.command(
    short_help="Run the lab alone: a server that plays providers.",
    epilog="""\
Examples:

\b
  safelight lab
  safelight lab --port 0 --knobs '{"latency_s": [0, 0], "callback_loss": 0.3}'
""",
)
def lab(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, metavar="PORT", help="0 takes a free one.")] = 8001,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            resolve_path=True,
            help="Where its ledger lies. By default `lab` in safelight's data directory.",
        ),
    ] = None,
    knobs: Annotated[str, typer.Option(metavar="JSON", help="How it misbehaves, as a JSON object.")] = "{}",
    die_with_stdin: Annotated[bool, typer.Option("--die-with-stdin", hidden=True)] = False,
) -> None:
    """Run the lab: a real HTTP server that plays providers, and misbehaves on request."""
    from safelight.lab.knobs import Knobs
    from safelight.lab.server import serve_lab

    try:
        parsed = Knobs.parse(knobs)
    except ValueError as error:
        fail(f"--knobs: {error}", code=USAGE)
    try:
        run_server(
            serve_lab(
                host=host,
                port=port,
                data_dir=data_dir or _usual_folder(),
                knobs=parsed,
                die_with_stdin=die_with_stdin,
                on_ready=lambda real_port: print_line(f"lab: http://{host}:{real_port}"),
            )
        )
    except OSError as error:
        fail(f"the lab cannot start: {error}", code=FAILED)


def _usual_folder() -> Path:
    from safelight.settings import default_data_dir

    named = os.environ.get(DATA_DIR_VARIABLE)
    return (Path(named) if named else default_data_dir()) / "lab"
