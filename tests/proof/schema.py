"""Raw SQL tries to break every constraint: the tests of the database's own refusals, run and counted."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from tests.proof.child import run_child
from tests.proof.report import LayerReport, Size

TESTS = ("tests/db/test_rows_refused.py", "tests/db/test_arrows.py", "tests/db/test_money.py")


async def run(size: Size, seed: int) -> LayerReport:
    """Every test of them at every size; nothing in it is left to chance."""
    report = LayerReport("schema", seed)
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.xml"
        flags = ["-q", "-n", "0", f"--junitxml={found}"]
        code, _ = await run_child(["-m", "pytest", *flags, *TESTS], os.environ, timeout_s=None, stderr=None)
        if not found.exists():
            report.failures.append(f"pytest ended with {code} and told nothing")
            return report
        read_results(report, found.read_text(encoding="utf-8"))
    if code and not report.failures:
        report.failures.append(f"pytest ended with {code}")
    return report


def read_results(report: LayerReport, text: str) -> None:
    """Count the tests of a JUnit document, and name those that failed or were left out."""
    for case in ElementTree.fromstring(text).iter("testcase"):  # noqa: S314 - written by our own pytest
        report.tried += 1
        if {"failure", "error", "skipped"} & {child.tag for child in case}:
            report.failures.append(f"{case.get('classname')}::{case.get('name')}")
