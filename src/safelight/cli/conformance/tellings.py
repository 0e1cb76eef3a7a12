"""Cases about what an upstream tells beside its verdicts, and about what it lets be left out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial

from safelight.cli.conformance.cases import Case
from safelight.cli.conformance.workbench import (
    OPEN,
    Nonconformity,
    Outcome,
    Workbench,
    expect,
    known_words,
)
from safelight.domain.provider import Trust, UpdateStatus
from safelight.errors import CallbackRejected, ProviderError

LONG_S = 20.0
IN_LINE_S = 1.0
"""So long a job of the lab waits that takes its time."""
APART = frozenset({"cluster", "data_removed", "one_job", "unknown_code"})
"""Variants in which an attempt does not simply go its way: each is a case of its own."""
EXPLAINED = ("invalid_request", "content_blocked", "funds", "upstream_fault")


def telling_cases(bench: Workbench) -> Iterator[Case]:
    """The cases for what the dialect says that it tells or does without."""
    features = bench.features
    if features["is_open"]:
        yield Case("accepted: without any key", partial(_without_key, bench))
    if "unknown_code" in bench.dialect["variants"]:
        yield Case("uncertain: a code that nobody knows", partial(_unknown_code, bench))
    if features["reasons"]:
        for situation in EXPLAINED:
            for way in bench.dialect["refusals"][situation]:
                yield Case(
                    f"told: why a submit is refused, {situation} ({way})",
                    partial(_why, bench, situation, way),
                )
        for situation, ways in bench.dialect["endings"].items():
            for way in (way for way in ways if way not in features["silent_ends"]):
                yield Case(
                    f"told: why it has ended, {situation} ({way})", partial(_why_ended, bench, situation, way)
                )
    if bench.capabilities.can_poll:
        for variant in (None, *(name for name in bench.dialect["variants"] if name not in APART)):
            beside = f", and {variant}" if variant else ""
            yield Case(f"told: no word that is not declared{beside}", partial(_words, bench, variant))
            if features["waiting"]:
                yield Case(f"told: that it waits{beside}", partial(_waits, bench, variant))
    if features["cost"] or features["run_time"]:
        yield Case("told: what it costs, how long it ran", partial(_account, bench))
    if features["call_id"]:
        yield Case("told: the id for which its support will ask", partial(_call_id, bench))
    if features["gives_back"]:
        yield Case("told: that a bad end costs nothing", partial(_given_back, bench))
    if features["is_signing_optional"] and bench.capabilities.calls_back:
        yield Case("callback: a hint where there is no secret", partial(_without_secret, bench))


async def _without_key(bench: Workbench) -> None:
    await bench.turn()
    keyless = bench.built(credentials=dict.fromkeys(bench.dialect["credentials"], ""))
    outcome = await bench.submit(bench.submission(), keyless)
    expect(outcome.word in ("accepted", "done"), f"a submit without a key is {outcome.word} {outcome.reason}")


async def _unknown_code(bench: Workbench) -> None:
    await bench.turn(variant="unknown_code")
    outcome = await bench.submit(bench.submission())
    expect(outcome.word == "uncertain", f"is read as {outcome.word} {outcome.reason}")


async def _why(bench: Workbench, situation: str, way: str) -> None:
    await bench.turn(refuse=situation, refuse_way=way, refuse_where="submit")
    try:
        update = await bench.provider.submit(bench.submission())
    except ProviderError as error:
        expect(error.excerpt and error.excerpt[0] not in "{[", f"the operator reads {error.excerpt!r}")
        return
    expect(update.failure, "it is not refused")
    expect(update.excerpt, "the operator reads nothing")


async def _why_ended(bench: Workbench, situation: str, way: str) -> None:
    await bench.turn(ending=situation, ending_way=way)
    submission = bench.submission()
    outcome = await bench.submit(submission)
    if outcome.word != "accepted" and outcome.update is None:
        return  # told as a refusal
    final = await bench.finish(bench.attempt(submission, outcome.update), outcome)
    expect(final.excerpt, f"the operator reads nothing about {final.status}")


async def _words(bench: Workbench, variant: str | None) -> None:
    await bench.turn(latency_s=[0.5, 0.5], variant=variant)
    attempts = [(await bench.started())[1] for _ in range(2)]
    attempt = attempts[-1]  # it stands second in the line
    stranger = bench.built()  # one that has not told of any word yet
    with known_words():
        while (await stranger.poll(attempt)).status in OPEN:  # noqa: ASYNC110 - only a look tells
            await asyncio.sleep(0.01)


async def _waits(bench: Workbench, variant: str | None) -> None:
    await bench.turn(latency_s=[LONG_S, LONG_S], variant=variant)
    _, attempt, _ = await bench.started()
    until = (await bench.witness())["accepted_at"] + IN_LINE_S
    seen = set()
    for _ in range(6):
        update = await bench.look(attempt)
        if time.time() >= until:
            break  # this machine is slow: it may be drawn by now
        seen.add(update.status)
    expect(seen <= {UpdateStatus.QUEUED}, f"while it waits, it is read as {', '.join(sorted(seen))}")


async def _account(bench: Workbench) -> None:
    await bench.turn(latency_s=[0.1, 0.1])
    _, attempt, outcome = await bench.started()
    final = await bench.finish(attempt, outcome)
    # An upstream may say it once only, in its answer to the submit.
    costs = [update.cost for update in (outcome.update, final) if update and update.cost is not None]
    expect(any(costs[-1:]) or not bench.features["cost"], f"its cost is read as {costs}")
    expect(final.run_s or not bench.features["run_time"], f"its run time is read as {final.run_s}")


async def _call_id(bench: Workbench) -> None:
    await bench.turn()
    _, _, outcome = await bench.started()
    expect(outcome.update and outcome.update.provider_ref, "the call's id is not read")


async def _given_back(bench: Workbench) -> None:
    await bench.turn(ending="failed")
    _, attempt, outcome = await bench.started()
    final = await bench.finish(attempt, outcome)
    expect(not final.cost, f"the cost of a bad end is read as {final.cost}")


async def _without_secret(bench: Workbench) -> None:
    """What nothing proves may make us look, and no more."""
    await bench.turn(callback_unsigned=True)
    secrets = [name for name in bench.dialect["credentials"] if "callback_secret" in name]
    provider = bench.built(credentials=dict.fromkeys(secrets, ""))
    expect(provider.capabilities.trust is Trust.HINT, "without a secret callbacks are believed")
    submission = bench.submission()
    outcome = await bench.submit(submission, provider)
    await bench.finish(bench.attempt(submission, outcome.update), Outcome("accepted", update=outcome.update))
    received = await bench.mailbox.wait_for(bench.callback_path(submission.reference), 1)
    try:
        await provider.verify_callback(received[-1].headers, received[-1].raw)
    except CallbackRejected as rejected:
        raise Nonconformity(f"a callback without a signature is refused: {rejected.reason}") from None
