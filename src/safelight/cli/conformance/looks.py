"""Cases about what becomes of an accepted attempt: progress, every ending, answers that say nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from uuid import UUID

from safelight.cli.conformance.cases import Case
from safelight.cli.conformance.submits import GATEWAYS
from safelight.cli.conformance.workbench import (
    OPEN,
    Nonconformity,
    Outcome,
    Workbench,
    expect,
    known_words,
    without_links,
)
from safelight.domain.provider import AttemptRef, Output, ProviderUpdate, UpdateStatus
from safelight.errors import ProviderError

ENDINGS = {
    "failed": (UpdateStatus.FAILED, "upstream_fault"),
    "blocked": (UpdateStatus.BLOCKED, "content_blocked"),
    "invalid_request": (UpdateStatus.FAILED, "invalid_request"),
}
CANCELED = frozenset({"canceled", "cancelled"})
"""Ways of ending that an upstream itself calls so: somebody there has taken the task back."""
PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"RIFF")
LONG_S = 20.0


def look_cases(bench: Workbench) -> Iterator[Case]:
    """Every case about endings and polls."""
    yield Case("done: as many pictures as were asked for", partial(_done, bench))
    if "inline" in bench.dialect["variants"]:
        yield Case("done: with pictures in the answer itself", partial(_done, bench, variant="inline"))
    for situation, (status, failure_class) in ENDINGS.items():
        for way in bench.dialect["endings"].get(situation, ()):
            wanted = (UpdateStatus.CANCELED, None) if way in CANCELED else (status, failure_class)
            yield Case(f"ended: {situation} ({way})", partial(_ended, bench, situation, way, *wanted))
    if bench.features["partial_items"] and _most(bench) > 1:
        yield Case("done: fewer pictures than were asked for", partial(_fewer, bench))
        # A code that nobody knows, with a success beneath it, is a case of its own.
        for variant in bench.dialect["variants"].keys() - {"unknown_code"}:
            case = partial(_fewer, bench, variant=variant)
            yield Case(f"done: fewer pictures than were asked for, and {variant}", case)
    yield Case("done: no picture at all", partial(_empty, bench))
    if bench.capabilities.can_poll:
        yield from _poll_cases(bench)
    if bench.capabilities.can_cancel:
        yield Case("canceled: while it runs", partial(_canceled, bench))
        yield Case("canceled: too late", partial(_canceled_late, bench))
        if bench.features["confirms_cancel"]:
            yield Case("canceled: what is not there", partial(_canceled_nothing, bench))
        if "cluster" in bench.dialect["variants"]:
            yield Case("canceled: only where the answer says", partial(_canceled_elsewhere, bench))
        for how in ("html_502", "empty_200", "garbage_200", "html_200", "json_200"):
            yield Case(f"canceled: {how} confirms nothing", partial(_cancel_says_nothing, bench, how))


def _poll_cases(bench: Workbench) -> Iterator[Case]:
    yield Case("polled: before it is done", partial(_open, bench))
    yield Case("polled: a word that nobody knows", partial(_unknown_word, bench))
    yield Case("polled: without the addresses of the answer", partial(_without_links, bench))
    if "cluster" in bench.dialect["variants"]:
        yield Case("polled: only where the answer says", partial(_at_its_cluster, bench))
    for situation in ("not_found", "upstream_fault", "rate_limited", "invalid_request"):
        # Where the same words also say that an attempt has ended, they do so in a poll.
        ends = bench.dialect["endings"].get(situation, ())
        for way in (way for way in bench.dialect["refusals"].get(situation, ()) if way not in ends):
            yield Case(f"polled: {situation} ({way})", partial(_poll_refused, bench, situation, way))
    for where in ("poll", "result"):
        if where == "poll" or bench.declaration.result is not None:
            for how in GATEWAYS:
                yield Case(f"polled: {how} of the {where}", partial(_poll_says_nothing, bench, where, how))


def _most(bench: Workbench) -> int:
    model = bench.model()
    return min(3, model.max_n) if model else 1


async def _done(bench: Workbench, variant: str | None = None) -> None:
    await bench.turn(variant=variant)
    count = _most(bench)
    _, attempt, outcome = await bench.started(n=count)
    final = await bench.finish(attempt, outcome)
    expect(final.status is UpdateStatus.SUCCEEDED, f"a good attempt ends {final.status} {final.failure}")
    expect(len(final.outputs) == count, f"{count} pictures are read as {len(final.outputs)}")
    expect(len({output.url or output.data for output in final.outputs}) == count, "a picture is read twice")
    if variant is None and "inline" in bench.dialect["variants"]:
        # Pictures by address are lighter answers, and are to be asked for.
        expect(all(output.url for output in final.outputs), "pictures come in the answer unasked")
    for output in final.outputs:
        expect((await _bytes_of(bench, output)).startswith(PICTURES), "an output is no picture")
    if not bench.capabilities.is_synchronous:
        expect(final.provider_ref in (None, attempt.provider_ref), "the id changes between submit and poll")


async def _bytes_of(bench: Workbench, output: Output) -> bytes:
    if output.data is not None:
        return output.data
    async with bench.session.get(str(output.url)) as answer:
        return await answer.read()


async def _ended(
    bench: Workbench, situation: str, way: str, status: UpdateStatus, failure_class: str | None
) -> None:
    await bench.turn(ending=situation, ending_way=way)
    submission = bench.submission()
    outcome = await bench.submit(submission)
    if outcome.word in ("failed", "blocked"):
        seen = (outcome.word, str(outcome.reason))
        expect(seen == (status, failure_class), f"is read as {seen[0]} {seen[1]}")
        return
    if outcome.word == "uncertain" and situation == "failed" and bench.doubts_faults:
        return
    expect(outcome.word == "accepted", f"a submit that will end {situation} is {outcome.word}")
    final = await bench.finish(bench.attempt(submission, outcome.update), outcome)
    told = final.failure.failure_class if final.failure else None
    expect(
        (final.status, told) == (status, failure_class) and not final.outputs,
        f"is read as {final.status} {told} with {len(final.outputs)} pictures",
    )


async def _fewer(bench: Workbench, variant: str | None = None) -> None:
    await bench.turn(partial=1, seed=7, variant=variant)
    count = _most(bench)
    _, attempt, outcome = await bench.started(n=count)
    final = await bench.finish(attempt, outcome)
    expect(final.status is UpdateStatus.SUCCEEDED, f"k of n is read as {final.status} {final.failure}")
    expect(0 < len(final.outputs) < count, f"{len(final.outputs)} of {count} pictures are read")


async def _empty(bench: Workbench) -> None:
    await bench.turn(empty_success=1)
    submission = bench.submission()
    outcome = await bench.submit(submission)
    if outcome.word in ("failed", "blocked", "uncertain"):
        return
    final = await bench.finish(bench.attempt(submission, outcome.update), outcome)
    expect(not final.outputs, "pictures are read where there are none")


async def _open(bench: Workbench) -> None:
    # A tenth of it is spent in the line, where the first look has to come in time.
    latency_s = 2.0 if bench.features["position"] else 0.5
    await bench.turn(latency_s=[latency_s, latency_s])
    _, attempt, outcome = await bench.started()
    seen: list[ProviderUpdate] = []
    while (update := await bench.look(attempt)).status in OPEN:
        seen.append(update)
        await asyncio.sleep(0.04)
    expect(seen, "an attempt that takes its time is never seen open")
    expect(update.status is UpdateStatus.SUCCEEDED, f"it ends {update.status}")
    expect(not any(one.outputs for one in seen), "pictures are read before it is done")
    running = [one for one in seen if one.status is UpdateStatus.RUNNING]
    expect(running, "it is never seen running")
    percents = [one.percent for one in running if one.percent is not None]
    if bench.features["progress"]:
        is_told = percents and max(percents) > 1 and percents == sorted(percents)
        expect(is_told, f"progress is read as {percents}")
    if bench.features["position"]:
        places = [one.position for one in seen if one.status is UpdateStatus.QUEUED]
        expect(any(place == 0 for place in places), f"its place in the line is read as {places}")
    del outcome


async def _unknown_word(bench: Workbench) -> None:
    await bench.turn(unknown_status=1)
    _, attempt, outcome = await bench.started()
    if outcome.update is not None and outcome.update.status not in OPEN:
        return
    first = await bench.look(attempt)
    expect(
        first.status is UpdateStatus.RUNNING or first.status is UpdateStatus.SUCCEEDED,
        f"is read as {first.status}",
    )
    final = await bench.finish(attempt, Outcome("accepted", update=None))
    expect(final.status is UpdateStatus.SUCCEEDED, f"an unknown word leads to {final.status}")


async def _without_links(bench: Workbench) -> None:
    await bench.turn()
    _, attempt, outcome = await bench.started()
    final = await bench.finish(without_links(attempt), Outcome("accepted", update=None))
    expect(final.status is UpdateStatus.SUCCEEDED, f"ends {final.status} where its addresses are lost")
    del outcome


async def _at_its_cluster(bench: Workbench) -> None:
    await bench.turn(variant="cluster")
    _, attempt, outcome = await bench.started(callback_url=None)
    final = await bench.finish(attempt, outcome)
    expect(final.status is UpdateStatus.SUCCEEDED, f"at its own address it ends {final.status}")


async def _poll_refused(bench: Workbench, situation: str, way: str) -> None:
    await bench.turn(latency_s=[LONG_S, LONG_S])
    _, attempt, _ = await bench.started()
    await bench.turn(refuse=situation, refuse_way=way, refuse_where="poll")
    await _expect_no_verdict(bench, attempt)


async def _poll_says_nothing(bench: Workbench, where: str, how: str) -> None:
    await bench.turn()
    _, attempt, _ = await bench.started()
    await bench.turn(gateway={"where": where, "how": how})
    impatient = bench.built(patience_s=0.4) if how == "hang" else bench.provider
    await _expect_no_verdict(bench, attempt, provider=impatient)
    await bench.turn()
    final = await bench.finish(attempt, Outcome("accepted", update=None))
    expect(final.status is UpdateStatus.SUCCEEDED, f"afterwards it ends {final.status}")


async def _expect_no_verdict(bench: Workbench, attempt: AttemptRef, provider: object = None) -> None:
    asked = provider if provider is not None else bench.provider
    try:
        update = await asked.poll(attempt)  # type: ignore[attr-defined] # one of two providers
    except ProviderError as error:
        bench.hear(error)
        return
    expect(update.status in OPEN, f"an answer that says nothing is read as {update.status} {update.failure}")


async def _canceled(bench: Workbench) -> None:
    await bench.turn(latency_s=[LONG_S, LONG_S])
    _, attempt, _ = await bench.started()
    try:
        with known_words():
            is_confirmed = await _cancel(bench, attempt)
    except ProviderError as error:
        raise Nonconformity(f"a cancel in time is an error: {error} {error.excerpt}") from None
    if not bench.capabilities.can_poll:
        return
    witness = await bench.witness()
    expect(witness["outcome"] == "canceled", "a cancel does not arrive")
    expect(is_confirmed or not bench.features["confirms_cancel"], "a cancel is confirmed, and not read so")
    try:
        update = await bench.provider.poll(attempt)
    except ProviderError as error:
        bench.hear(error)  # it may be gone altogether
        return
    # Some have no word of their own for it: then it has failed.
    is_over = update.status in (UpdateStatus.CANCELED, UpdateStatus.FAILED)
    expect(is_over, f"afterwards it is {update.status}")


async def _cancel(bench: Workbench, attempt: AttemptRef) -> bool:
    stranger = bench.built()  # one that has not told of any word yet
    with known_words():
        return await stranger.cancel(attempt)


async def _canceled_late(bench: Workbench) -> None:
    await bench.turn()
    _, attempt, outcome = await bench.started()
    await bench.finish(attempt, outcome)
    try:
        with known_words():
            is_confirmed = await _cancel(bench, attempt)
    except ProviderError as error:
        bench.hear(error)
        expect(not bench.features["confirms_cancel"], "a cancel that comes too late is an error")
        return
    expect(not is_confirmed, "a cancel of a finished attempt is confirmed")


async def _canceled_nothing(bench: Workbench) -> None:
    await bench.turn()
    _, attempt, _ = await bench.started()
    stranger = replace(without_links(attempt), provider_ref=str(UUID(int=1)))
    try:
        with known_words():
            is_confirmed = await bench.provider.cancel(stranger)
    except ProviderError as error:
        raise Nonconformity(f"a cancel of nothing is an error: {error} {error.excerpt}") from None
    expect(not is_confirmed, "a cancel of nothing is confirmed")


async def _canceled_elsewhere(bench: Workbench) -> None:
    await bench.turn(variant="cluster", latency_s=[LONG_S, LONG_S])
    _, attempt, _ = await bench.started(callback_url=None)
    with suppress(ProviderError):
        await bench.provider.cancel(attempt)
    expect((await bench.witness())["outcome"] == "canceled", "a cancel does not arrive at its own address")


async def _cancel_says_nothing(bench: Workbench, how: str) -> None:
    await bench.turn(latency_s=[LONG_S, LONG_S])
    _, attempt, _ = await bench.started()
    await bench.turn(latency_s=[LONG_S, LONG_S], gateway={"where": "cancel", "how": how})
    try:
        is_confirmed = await bench.provider.cancel(attempt)
    except ProviderError as error:
        bench.hear(error)
        return
    expect(not is_confirmed, "is read as a cancel that is done")
