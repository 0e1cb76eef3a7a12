"""Wiring of the whole suite: where data directories lie, and the tail of sizes that a run prints."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sizes import tail
from tests.places import new_data_dir
from tests.world import Server, started_server


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """An empty data directory of one test's own."""
    path = new_data_dir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the longest files and functions after a run that checked them."""
    passed = terminalreporter.stats.get("passed", [])
    if any("test_no_function_is_over_a_limit" in report.nodeid for report in passed):
        terminalreporter.section("sizes", sep="-")
        for line in tail():
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The embedded PostgreSQL server of this test process."""
    yield from started_server()
