"""The client alone: a wheel of its own, that works where nothing else of safelight's is installed."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.architecture.source import ROOT

LOOK = """
import importlib, json, pkgutil, sys
import safelight, safelight.client
from safelight import AsyncClient, Client
names = [module.name for module in pkgutil.walk_packages(safelight.__path__, "safelight.")]
for name in names:
    importlib.import_module(name)
with Client("http://127.0.0.1:9", "sl_live_test") as client:
    top = sorted({name.split(".")[0] for name in sys.modules})
    print(json.dumps({"names": names, "top": top, "from": safelight.__file__}))
"""


def needed_by(distribution: str) -> set[str]:
    """A distribution and what it needs on this machine, all the way down."""
    found: set[str] = set()
    open_names = [distribution]
    while open_names:
        name = open_names.pop()
        if name in found:
            continue
        found.add(name)
        for line in metadata.requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                open_names.append(requirement.name)
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as anybody builds it."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    built = subprocess.run(command, cwd=ROOT / "client", capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture
def alone(wheel: Path, tmp_path: Path) -> Path:
    """A Python that has the client, what the wheel says it needs, and nothing else."""
    venv.create(tmp_path / "venv", symlinks=True)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        (told,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(told).decode().splitlines()
    wanted = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]
    assert [Requirement(line).name for line in wanted] == ["aiohttp"]
    for name in set().union(*(needed_by(Requirement(line).name) for line in wanted)):
        files = metadata.distribution(name).files or []
        for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
            source = Path(str(metadata.distribution(name).locate_file(top)))
            if not (site / top).exists():
                (site / top).symlink_to(source)
    return tmp_path / "venv" / "bin" / "python"


def test_the_wheel_has_the_client_and_nothing_of_the_server(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        rooms = {"/".join(name.split("/")[:2]) for name in archive.namelist() if ".dist-info" not in name}
    assert rooms == {"safelight/__init__.py", "safelight/py.typed", "safelight/client"}


def test_the_client_works_alone(alone: Path) -> None:
    looked = subprocess.run([alone, "-I", "-c", LOOK], capture_output=True, text=True, check=False)
    assert looked.returncode == 0, looked.stderr
    seen = json.loads(looked.stdout)
    assert "safelight.client.tasks" in seen["names"]
    assert {name.split(".")[1] for name in seen["names"]} == {"client"}
    assert not {"fastapi", "pydantic", "asyncpg", "typer", "rich"} & set(seen["top"])
    assert str(alone.parents[1]) in seen["from"]
