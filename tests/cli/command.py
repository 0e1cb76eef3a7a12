"""The command under test: inside this process, or as one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from typer.testing import CliRunner

from safelight.cli.app import app
from tests.cli.books import Books


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@dataclass(slots=True)
class Command:
    """`safelight` with a data directory."""

    data_dir: Path
    books: Books | None = None

    def __call__(self, *words: str) -> Said:
        """Run it in this process."""
        logging = structlog.get_config()["logger_factory"]
        ended = CliRunner().invoke(app, list(words), env={"SAFELIGHT_DATA_DIR": str(self.data_dir)})
        # Whatever logs later in this process would write to a file that is closed by now.
        assert structlog.get_config()["logger_factory"] is logging, "it sets up logging: run it apart"
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Said(ended.exit_code, ended.stdout, ended.stderr)

    def apart(self, *words: str) -> Said:
        """Run it as a process of its own, to its end: commands that open an installation set up logging."""
        process = self.start(*words)
        out, err = process.communicate(timeout=300)
        return Said(process.returncode, out, err)

    def start(self, *words: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start it as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "safelight", *words],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "SAFELIGHT_DATA_DIR": str(self.data_dir), "TERM": "xterm", "COLUMNS": "120"},
        )
