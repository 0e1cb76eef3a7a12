"""Hostile addresses on every way by which a stranger can make us fetch."""

from __future__ import annotations

from tests.proof.addresses import WAYS, run, targets
from tests.proof.report import Size


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(targets(8_080)) >= 400


async def test_nothing_is_connected_whichever_way_a_hostile_address_comes() -> None:
    report = await run(Size.CI, 1)
    assert report.failures == []
    assert report.tried >= 40 * len(WAYS)
    assert report.figures["ways"] == len(WAYS) >= 6
