"""The races at the size of every test run."""

from __future__ import annotations

from tests.proof import races
from tests.proof.report import Size
from tests.races.rounds import ROUNDS
from tests.world import Server


async def test_of_two_at_one_row_the_first_counts_in_every_round(server: Server) -> None:
    report = await races.race_all(server, Size.CI, seed=20)
    assert report.failures == []
    assert report.tried == 2 * len(ROUNDS) * races.REPETITIONS[Size.CI]
