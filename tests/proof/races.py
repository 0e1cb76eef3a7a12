"""Two connections driven to the exact point where one waits for the other, in both orders, again and again."""

from __future__ import annotations

from safelight.lifecycle.doctor import examine
from tests.proof.report import LayerReport, Size, told
from tests.races.rounds import ROUNDS, Round
from tests.world import Server, World, running_server, running_world

REPETITIONS = {Size.CI: 5, Size.PROVE: 50, Size.RELEASE: 1_000}
PLENTY = 1_000_000
"""Credits for every round of a release."""


async def run(size: Size, seed: int) -> LayerReport:
    """Every race at this size, on a server of its own."""
    async with running_server() as server:
        return await race_all(server, size, seed)


async def race_all(server: Server, size: Size, seed: int) -> LayerReport:
    """Every race in both orders; nothing in it is left to chance."""
    report = LayerReport("races", seed, figures={"races": len(ROUNDS), "orders": 2})
    async with running_world(server, granted=PLENTY, max_open_tasks=PLENTY) as world:
        for name, play in ROUNDS.items():
            for is_swapped in (False, True):
                await _repeat(world, report, name, play, is_swapped=is_swapped, times=REPETITIONS[size])
        async for finding in examine(world.database, world.graph.context.store, with_bytes=False):
            if not finding.is_information:
                report.failures.append(f"doctor: {finding.check} {finding.subject} {finding.detail}")
    return report


async def _repeat(
    world: World, report: LayerReport, name: str, play: Round, *, is_swapped: bool, times: int
) -> None:
    """Rounds until one fails: those after it would tell the same."""
    order = "the other way round" if is_swapped else "in order"
    for number in range(times):
        report.tried += 1
        try:
            await play(world, number, is_swapped)
        except Exception as error:  # noqa: BLE001 - whatever a round ends with is what it found
            report.failures.append(f"{name} {order}, round {number}: {told(error)}")
            return
