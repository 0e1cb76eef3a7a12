"""Real processes are killed and stopped at random moments; then all is healed, and three books must agree."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from safelight.cli.rehearsal.plan import BLOWS, Fault, Plan
from safelight.cli.rehearsal.run import Report, rehearse
from safelight.lifecycle.checks import CHECKS
from tests.proof.report import LayerReport, Size

STRIKES = {Size.CI: 10, Size.PROVE: 30, Size.RELEASE: 300}
MINUTES = {Size.CI: 0.5, Size.PROVE: 1.0, Size.RELEASE: 10.0}
"""Of one rehearsal; there are as many as it takes, each on an installation of its own."""
MOST_IDLE = 3
"""Rehearsals in a row in which nothing could be struck, before that itself is the failure."""
ROUNDS: tuple[tuple[Fault, ...], ...] = (
    (Fault.KILLS, Fault.PAUSES, Fault.DATABASE, Fault.CALLBACKS, Fault.ENDINGS),
    (Fault.KILLS, Fault.PAUSES, Fault.QUEUE, Fault.GATEWAY, Fault.ANSWERS),
    (Fault.KILLS, Fault.DATABASE, Fault.STORAGE, Fault.LIMITS, Fault.RESULTS),
)
"""What goes wrong in one rehearsal and the next: blows against processes, beside an upstream in a mood."""
STRUCK = (Fault.KILLS, Fault.PAUSES, Fault.DATABASE)
"""What counts: a process that was killed or stopped."""
GAP_S = (0.5, 2.0)
RATE = 3.0


async def run(size: Size, seed: int) -> LayerReport:
    """Rehearse until so many processes were struck."""
    report, blows, totals = LayerReport("kills", seed), Counter[str](), Counter[str]()
    turn = idle = 0
    while sum(blows[one] for one in STRUCK) < STRIKES[size] and idle < MOST_IDLE:
        faults = ROUNDS[turn % len(ROUNDS)]
        plan = Plan(minutes=MINUTES[size], rate=RATE, faults=faults, seed=seed + turn, gap_s=GAP_S)
        with _quiet_connections():
            told = await rehearse(plan, lambda _: None)
        struck = Counter({str(name): told.faults.get(name, 0) for name in BLOWS})
        idle = 0 if any(struck[one] for one in STRUCK) else idle + 1
        blows, turn = blows + struck, turn + 1
        totals.update(tasks=told.found.tasks, succeeded=told.found.states["succeeded"])
        report.failures += [f"seed {plan.seed} with {','.join(faults)}: {why}" for why in _faults_of(told)]
    report.tried = sum(blows[one] for one in STRUCK)
    if report.tried < STRIKES[size]:
        report.failures.append(f"only {report.tried} of {STRIKES[size]} processes could be struck")
    report.figures |= {"rehearsals": turn, **dict(sorted(blows.items())), **totals}
    return report


@contextmanager
def _quiet_connections() -> Iterator[None]:
    """The connections of our own look break with the database that is killed: that is meant, and no news."""
    logger = logging.getLogger("asyncpg")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _faults_of(told: Report) -> list[str]:
    """What speaks against a rehearsal: its own reasons, or that it has proved nothing."""
    made = {outcome.check.name for outcome in told.found.outcomes}
    left_out = [check.name for check in CHECKS if check.name not in made]
    reasons = [*told.reasons, *(f"the doctor left out {name}" for name in left_out)]
    return reasons if told.found.tasks else [*reasons, "no task was accepted"]
