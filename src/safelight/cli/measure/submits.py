"""(a) Durable submits per second, beside the no-op on the same server in the same run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from safelight.cli.measure.figures import Submits, quantiles
from safelight.cli.measure.instance import Instance
from safelight.cli.measure.load import Burst, Load
from safelight.cli.measure.messages import noop_messages, submit_messages
from safelight.errors import ConfigurationError

SIZE = "64x64"
WARM_UP_S = 0.5


async def measure_submits(instance: Instance, *, connections: int, rounds: int, round_s: float) -> Submits:
    """Rounds of submits and of the no-op in turn, over the same connections.

    Raises:
        ConfigurationError: submits were refused, for example because the credits were used up.
    """
    submits, noops = submit_messages(instance, SIZE), noop_messages(instance)
    asked: list[Burst] = []
    idled: list[Burst] = []
    async with Load(instance.url, connections) as load:
        for messages in (submits, noops):
            await load.send(messages, seconds=min(WARM_UP_S, round_s))
        for _ in range(rounds):
            asked.append(await load.send(submits, seconds=round_s))
            idled.append(await load.send(noops, seconds=round_s))
    refused = sum((burst.refused for burst in asked), Counter[int]())
    if refused:
        raise ConfigurationError(f"submits were refused, so that nothing was measured: {dict(refused)}")
    submits_per_s, noop_per_s = _rate(asked), _rate(idled)
    return Submits(
        server=instance.server,
        connections=connections,
        rounds=rounds,
        submits_per_s=round(submits_per_s, 1),
        submit_ms=quantiles(_latencies(asked)),
        noop_per_s=round(noop_per_s, 1),
        noop_ms=quantiles(_latencies(idled)),
        ratio=round(submits_per_s / noop_per_s, 3) if noop_per_s else 0.0,
        generator_share=round(median(burst.cpu_s / burst.elapsed_s for burst in idled), 2),
    )


def _rate(bursts: Sequence[Burst]) -> float:
    return median(burst.per_s for burst in bursts)


def _latencies(bursts: Sequence[Burst]) -> list[float]:
    return [latency for burst in bursts for latency in burst.latencies_ms]
