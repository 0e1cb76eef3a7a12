"""`make setup` says what takes long while it takes long, and nothing when there is nothing to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OF_MAKE = ("MAKELEVEL", "MAKEFLAGS", "MFLAGS", "MAKE_TERMOUT", "MAKE_TERMERR")
UV = """\
#!/bin/sh
if [ "$1" = venv ]; then
    for folder in "$@"; do :; done
    mkdir -p "$folder/bin" && ln -sf {python} "$folder/bin/python"
fi
"""
PAGES = """\
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("build", {build!r})
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)
build.WEB = pathlib.Path("web").resolve()
build.FILES = build.WEB / "files"
build.STAMP = build.FILES / "stamp"
build.INSTALLED = build.WEB / "installed"
build.sources = lambda: []
build.npm_command = lambda: ["true"]
build.FILES.mkdir(exist_ok=True)
build.main(sys.argv[1:])
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A fresh clone as far as the Makefile can see; whatever would load from a network does nothing."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "web").mkdir()
    for name in ("requirements.lock", "pyproject.toml", "web/requirements.lock", "web/package-lock.json"):
        (tmp_path / name).touch()
    (tmp_path / "web" / "build.py").write_text(PAGES.format(build=str(ROOT / "web" / "build.py")))
    uv = tmp_path / "uv"
    uv.write_text(UV.format(python=sys.executable))
    uv.chmod(0o755)
    return tmp_path


def said(clone: Path) -> tuple[str, list[str]]:
    """What a set-up prints on standard output and on standard error."""
    # Not as a part of the `make test` that may have started us: it would print which directory it enters.
    environment = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    environment["PATH"] = f"{clone}:{os.environ['PATH']}"
    done = subprocess.run(
        ["make", "setup", f"PYTHON={sys.executable}"],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout, done.stderr.splitlines()


def test_setup_says_each_step_once_and_is_quiet_when_there_is_nothing_to_do(clone: Path) -> None:
    steps = [
        "Making the environment in .venv",
        "Installing safelight and its tools",
        "Installing what the web pages are built with",
        "Building the web pages",
    ]
    assert said(clone) == ("", steps)
    assert said(clone) == ("", [])
    os.utime(clone / ".venv" / ".installed", (0, 0))  # older than the lock
    (clone / "web" / "package-lock.json").write_text("{}")
    assert said(clone) == ("", steps[1:3])
