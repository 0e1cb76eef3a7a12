"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATA_DIR_VARIABLE = "SAFELIGHT_DATA_DIR"

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        envvar=DATA_DIR_VARIABLE,
        file_okay=False,
        resolve_path=True,
        help="Where everything local lives. By default ./safelight-data; for root /var/lib/safelight.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="SAFELIGHT_URL",
        help="Address of the service. By default the one that `serve` wrote to the data directory.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Wait, and save the picture there; several become name-1.png, name-2.png, …",
    ),
]
