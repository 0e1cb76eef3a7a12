"""Wrong variants of our own code, each of which the narrow tests named beside it must catch."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from tests.architecture.source import PACKAGE
from tests.proof.child import run_child
from tests.proof.mutants_form import Edit, Mutant
from tests.proof.mutants_of_books import OF_BOOKS
from tests.proof.mutants_of_doors import OF_DOORS
from tests.proof.mutants_of_sends import OF_SENDS
from tests.proof.mutants_of_webhooks import OF_WEBHOOKS
from tests.proof.report import LayerReport, Size

MUTANTS: tuple[Mutant, ...] = (*OF_BOOKS, *OF_SENDS, *OF_DOORS, *OF_WEBHOOKS)

CI_SHARE = 8
TIMEOUT_S = 900.0

_BY_ASSERTION = re.compile(r"(failed on teardown with .)?(AssertionError|assert |Failed: DID NOT RAISE)")
_WHERE_FROM = "import importlib.util as u; print(u.find_spec('safelight').origin)"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests said: whether they passed, and the first lines of what failed."""

    code: int
    words: tuple[str, ...]


def share_of(day: datetime, count: int = CI_SHARE) -> list[Mutant]:
    """The mutants of a day: every one comes up in turn."""
    begin = day.timetuple().tm_yday * count
    return [MUTANTS[(begin + step) % len(MUTANTS)] for step in range(min(count, len(MUTANTS)))]


async def run(size: Size, seed: int) -> LayerReport:
    """Every mutant, or the share of the day: first the tests must pass without it, then fail because of it."""
    report = LayerReport("mutants", seed)
    chosen = share_of(datetime.now(UTC)) if size is Size.CI else list(MUTANTS)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="safelight-mutants-"))
    try:
        names = sorted({test for mutant in chosen for test in mutant.tests})
        clean = await tried(folder / "clean", (), names)
        if clean.code != 0:
            report.failures.append(f"the tests fail without any mutant: {clean.code} {clean.words}")
            return report
        verdicts = [await _judged(folder / one.name, one) for one in chosen]
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    report.tried = len(verdicts)
    report.figures |= {"caught": verdicts.count(None), "narrow tests": len(names)}
    report.failures += [verdict for verdict in verdicts if verdict is not None]
    return report


async def _judged(folder: Path, mutant: Mutant) -> str | None:
    """None if the mutant was caught for a right reason, else what is wrong."""
    try:
        outcome = await tried(folder, mutant.edits, mutant.tests)
    except (ValueError, TimeoutError) as error:
        return f"{mutant.name}: {error or 'its tests hang'}"
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    if outcome.code == 0:
        return f"{mutant.name} survives: {mutant.breaks}"
    seen = re.compile(mutant.seen_as) if mutant.seen_as else _BY_ASSERTION
    if outcome.code != 1 or not any(seen.match(words) for words in outcome.words):
        return f"{mutant.name} fails for another reason: {outcome.code} {outcome.words}"
    return None


async def tried(folder: Path, edits: Sequence[Edit], tests: Sequence[str]) -> Outcome:
    """Run the tests against a copy of the package with these edits.

    Raises:
        ValueError: an edit fits no more, or the copy is not what is imported.
        TimeoutError: they did not end.
    """
    await asyncio.to_thread(copied, folder, edits)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    came_from = (await _ran(["-c", _WHERE_FROM], environment))[1].strip()
    if Path(came_from).parent != folder / "safelight":
        raise ValueError(f"the tests would import {came_from}")
    told = folder / "told.xml"
    flags = ["-q", "-n", "0", "-x", "-p", "no:cacheprovider", f"--junit-xml={told}"]
    code, _ = await _ran(["-m", "pytest", *flags, *tests], environment)
    return Outcome(code, tuple(_failures(told)))


def copied(folder: Path, edits: Sequence[Edit]) -> None:
    """Copy the package into `folder` and change it; ValueError if an edit does not fit exactly once."""
    # With its compiled files: they stay good where the source is the same, and save a second each.
    shutil.copytree(PACKAGE, folder / "safelight")
    for edit in edits:
        path = folder / "safelight" / edit.file
        text = path.read_text()
        if text.count(edit.old) != 1:
            raise ValueError(f"{edit.file} holds {edit.old!r} {text.count(edit.old)} times")
        path.write_text(text.replace(edit.old, edit.new))


def _failures(told: Path) -> list[str]:
    if not told.exists():
        return []
    tree = ElementTree.parse(told)  # noqa: S314 - written by our own test run
    found = [*tree.iter("failure"), *tree.iter("error")]
    return [node.get("message", "")[:200] for node in found]


async def _ran(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    return await run_child(arguments, environment, timeout_s=TIMEOUT_S, stderr=asyncio.subprocess.STDOUT)
