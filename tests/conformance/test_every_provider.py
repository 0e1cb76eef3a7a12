"""The one suite on every provider that comes with safelight, before the lab's dialect of its upstream."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from safelight.cli.conformance.run import open_workbench, run_cases, running_lab_child
from safelight.lab.dialects import dialect_names
from safelight.providers import packaged_declaration, packaged_names

OWN_SHAPES = ("lab-callback", "lab-poll", "lab-sync")
"""The lab's own three, which the tests of every other layer go through."""
PROVIDERS = [name for name in packaged_names() if name not in OWN_SHAPES]


@pytest.fixture
async def lab_url() -> AsyncIterator[str]:
    """A lab of one test's own."""
    async with running_lab_child() as url:
        yield url


def test_every_provider_has_a_dialect_to_be_tested_against() -> None:
    assert sorted(dialect_names()) == PROVIDERS


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_provider_does_what_its_upstream_asks_for(name: str, lab_url: str) -> None:
    async with open_workbench(packaged_declaration(name), name, lab_url) as bench:
        verdicts = await run_cases(bench)
    assert [f"{one.case}: {one.fault}" for one in verdicts if not one.is_good] == []
    assert len(verdicts) > 30
