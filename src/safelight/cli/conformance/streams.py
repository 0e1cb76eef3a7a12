"""Cases about answers that come as a stream: progress first, then the same that a plain answer says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from safelight.cli.conformance.cases import Case
from safelight.cli.conformance.looks import ENDINGS
from safelight.cli.conformance.workbench import Nonconformity, Outcome, Workbench, expect
from safelight.domain.provider import ProviderUpdate, Submission, UpdateStatus
from safelight.providers.declaration import Stream

LATENCY_S = 0.2


def stream_cases(bench: Workbench) -> Iterator[Case]:
    """Every case about streams; none where the declaration asks for none."""
    stream = bench.declaration.submit.stream
    if stream is None or not bench.features["stream"]:
        return
    for operation in ("generate", "edit"):
        if bench.model(operation) is not None:
            yield Case(f"streamed: {operation}", partial(_streamed, bench, stream, operation))
            for how in ("reset_after_head", "truncated_json"):
                yield Case(
                    f"streamed: {operation} cut by {how}", partial(_cut, bench, stream, operation, how)
                )
    if stream.is_many is not None:
        yield Case("streamed: only so many pictures", partial(_not_streamed, bench, stream))
    if bench.features["partial_items"] and stream.is_many is not False:
        yield Case("streamed: fewer pictures than were asked for", partial(_fewer, bench, stream))
    for situation in ENDINGS:
        for way in bench.dialect["endings"].get(situation, ()):
            yield Case(f"streamed: {situation} ({way})", partial(_ended, bench, stream, situation, way))


def _count(bench: Workbench, stream: Stream, operation: str = "generate") -> int:
    model = bench.model(operation)
    return 1 if stream.is_many is False or model is None else min(3, model.max_n)


async def _sent(
    bench: Workbench, n: int, operation: str = "generate"
) -> tuple[Submission, Outcome, list[ProviderUpdate]]:
    told: list[ProviderUpdate] = []
    submission = bench.submission(bench.model(operation), operation=operation, n=n, report=told.append)
    return submission, await bench.submit(submission), told


async def _streamed(bench: Workbench, stream: Stream, operation: str) -> None:
    await bench.turn(latency_s=[LATENCY_S, LATENCY_S])
    count = _count(bench, stream, operation)
    _, outcome, told = await _sent(bench, count, operation)
    update = _expect_done(bench, outcome, count)
    expect(_is_asked_for(stream, await bench.witness()), "a stream is not asked for")
    percents = [one.percent for one in told if one.percent is not None]
    expect(all(one.status is UpdateStatus.RUNNING for one in told), f"progress is told as {told}")
    expect(percents, "progress is not told while the stream runs")
    expect(percents == sorted(set(percents)) and percents[-1] < 100, f"progress is told as {percents}")
    steps = count if stream.steps == "n" else stream.steps - 1
    expect(len(percents) == steps, f"of {steps} steps {len(percents)} are told")
    plain = await bench.submit(bench.submission(bench.model(operation), operation=operation, n=count))
    same = _expect_done(bench, plain, count)
    expect(update.cost == same.cost, f"a stream costs {update.cost}, a plain answer {same.cost}")


async def _cut(bench: Workbench, stream: Stream, operation: str, how: str) -> None:
    await bench.turn(gateway={"where": "submit", "how": how, "is_accepted": True})
    _, outcome, _ = await _sent(bench, _count(bench, stream, operation), operation)
    expect(outcome.word == "uncertain", f"a stream without its end is {outcome.word} {outcome.reason}")


async def _not_streamed(bench: Workbench, stream: Stream) -> None:
    """As many pictures as the stream is not for, and then nobody who listens."""
    await bench.turn()
    model = bench.model()
    count = 1 if stream.is_many else min(3, model.max_n if model else 1)
    _, outcome, told = await _sent(bench, count)
    _expect_done(bench, outcome, count)
    is_asked_for = _is_asked_for(stream, await bench.witness())
    expect(not told and not is_asked_for, "a stream is asked for where none is wanted")


async def _fewer(bench: Workbench, stream: Stream) -> None:
    await bench.turn(partial=1, seed=7)
    count = _count(bench, stream)
    _, outcome, _ = await _sent(bench, count)
    expect(outcome.word == "done" and outcome.update, f"k of n is read as {outcome.word} {outcome.reason}")
    delivered = len(outcome.update.outputs) if outcome.update else 0
    expect(0 < delivered < count, f"{delivered} of {count} pictures are read")


async def _ended(bench: Workbench, stream: Stream, situation: str, way: str) -> None:
    await bench.turn(ending=situation, ending_way=way)
    _, outcome, _ = await _sent(bench, _count(bench, stream))
    status, failure_class = ENDINGS[situation]
    seen = (outcome.word, str(outcome.reason))
    expect(seen == (status, failure_class), f"is read as {seen[0]} {seen[1]}")


def _is_asked_for(stream: Stream, witness: Any) -> bool:
    """Whether the body that came has what asks for a stream."""
    body = witness["given"][1] or {}
    # A form has texts only.
    texts = {name: str(value).lower() for name, value in body.items()}
    return all(texts.get(name) == str(value).lower() for name, value in stream.body.items())


def _expect_done(bench: Workbench, outcome: Outcome, count: int) -> ProviderUpdate:
    if outcome.word != "done" or outcome.update is None:
        raise Nonconformity(f"a submit is {outcome.word} {outcome.reason}: {bench.told[-1:]}")
    outputs = outcome.update.outputs
    expect(
        len({one.url or one.data for one in outputs}) == count, f"of {count} pictures {len(outputs)} are read"
    )
    return outcome.update
