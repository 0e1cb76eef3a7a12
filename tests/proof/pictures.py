"""Pictures that are bombs, lies or two things at once, and names that lead out of the store."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Coroutine
from itertools import islice
from pathlib import Path
from typing import Any

from safelight.assets.local import LocalStore
from safelight.assets.store import check_prefix
from safelight.errors import AssetError
from tests.architecture.source import ROOT
from tests.proof.pictures_corpus import names
from tests.proof.report import LayerReport, Size

PICTURES = {Size.CI: 300, Size.PROVE: 3_000, Size.RELEASE: 60_000}
NAMES = {Size.CI: 400, Size.PROVE: 20_000, Size.RELEASE: 100_000}
MOST_PEAK_KB = 700_000
"""The largest picture that may be, in its widest form, with what is made of it; a bomb would take far more."""
TIMEOUT_S = 3_600.0


async def run(size: Size, seed: int) -> LayerReport:
    """The pictures in a child process, the names here."""
    report = LayerReport("pictures", seed)
    await _pictures(report, PICTURES[size])
    await _names(report, NAMES[size])
    return report


async def _pictures(report: LayerReport, count: int) -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.proof.pictures_child", str(count), str(report.seed)),
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output, errors = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
    if child.returncode != 0:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        report.failures.append(f"the child ended with {child.returncode}: {last}, seed {report.seed}")
        return
    told = json.loads(output)
    report.tried += sum(told["verdicts"].values())
    report.failures += told["failures"]
    report.figures |= {
        "verdicts": " ".join(f"{name}:{count}" for name, count in sorted(told["verdicts"].items())),
        "peak MB": told["peak_kb"] // 1_000,
    }
    if told["peak_kb"] > MOST_PEAK_KB:
        report.failures.append(f"{told['worst'][0]} took {told['worst'][1]} kB, seed {report.seed}")


async def _names(report: LayerReport, count: int) -> None:
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="safelight-names-"))
    store = LocalStore(folder / "assets")
    try:
        before = await asyncio.to_thread(_everything_below, folder)
        refused = 0
        for name in islice(names(report.seed), count):
            reasons = {await _refusal(act(store, name)) for act in _ACTS}
            refused += 1
            if reasons != {"bad_key"} or not _is_no_prefix(name):
                report.failures.append(f"the name {name!r} is {sorted(reasons)}")
        if await asyncio.to_thread(_everything_below, folder) != before:
            report.failures.append(f"a name left something behind, seed {report.seed}")
    finally:
        await store.aclose()
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    report.tried += refused
    report.figures["names"] = refused


_ACTS: tuple[Callable[[LocalStore, str], Coroutine[Any, Any, object]], ...] = (
    lambda store, name: store.put(name, b"x"),
    lambda store, name: store.get(name),
    lambda store, name: store.exists(name),
    lambda store, name: store.delete(name),
)


async def _refusal(act: Coroutine[Any, Any, object]) -> str:
    try:
        await act
    except AssetError as error:
        return error.reason
    return "taken"


def _is_no_prefix(name: str) -> bool:
    """A name that leads elsewhere is no beginning of a key either; others may be."""
    if ".." not in name.split("/") and not name.startswith("/"):
        return True
    try:
        check_prefix(name)
    except AssetError:
        return True
    return False


def _everything_below(folder: Path) -> set[str]:
    return {str(found.relative_to(folder)) for found in folder.rglob("*")}
