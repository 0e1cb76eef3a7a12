"""Cases about callbacks: genuine ones are understood, and nothing else is believed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from safelight.cli.conformance.cases import Case
from safelight.cli.conformance.looks import CANCELED, ENDINGS
from safelight.cli.conformance.mailbox import Received
from safelight.cli.conformance.ways import Way, different_ways
from safelight.cli.conformance.workbench import OPEN, Nonconformity, Workbench, expect, known_words
from safelight.domain.provider import AttemptRef, ProviderUpdate, Submission, Trust, UpdateStatus
from safelight.errors import CallbackRejected

TIMED_BY_CLOCK_S = 3_600.0
SOON_S = 0.2
"""Within this a callback that is sent at all has arrived from a lab that draws at once."""


def notice_cases(bench: Workbench) -> Iterator[Case]:
    """Every case about callbacks; none for an upstream or a declaration without them."""
    if bench.features["callback"] == "none" or not bench.capabilities.calls_back:
        return
    for way in different_ways(bench):
        yield Case(f"callback: the genuine end of {way.name}", partial(_genuine, bench, way))
    yield Case("callback: before the submit is answered", partial(_early, bench))
    yield Case("callback: the same one several times", partial(_copies, bench))
    yield Case("callback: the same one again later", partial(_replayed, bench))
    for situation in ENDINGS:
        for way in bench.dialect["endings"].get(situation, ()):
            yield Case(f"callback: {situation} ({way})", partial(_bad_end, bench, situation, way))
    if bench.features["notices"] == "changes":
        yield Case("callback: in the wrong order", partial(_reordered, bench))
        yield Case("callback: a word that nobody knows", partial(_unknown_word, bench))
    if _is_signed(bench):
        yield Case("callback: forged", partial(_forged, bench))
        yield Case(
            "callback: without a signature", partial(_refused_with, bench, {"callback_unsigned": True})
        )
        for what in ("body", "header"):
            yield Case(f"callback: another {what} under a good signature", partial(_tampered, bench, what))
        if bench.capabilities.trust is Trust.BODY:
            case = partial(_refused_with, bench, {"callback_reserialised": True})
            yield Case("callback: written down anew after signing", case)
        if _has_time(bench):
            case = partial(_refused_with, bench, {"callback_stale_s": TIMED_BY_CLOCK_S})
            yield Case("callback: signed long ago", case)
        yield from _rotation_cases(bench)


def _rotation_cases(bench: Workbench) -> Iterator[Case]:
    secrets = _secrets(bench)
    if secrets is None:
        yield Case("callback: signed with the upstream's new key", partial(_rotated, bench, "new_only", {}))
        return
    old, new = secrets
    second = _second_secret(bench)
    yield Case("callback: two signatures while the secret is replaced", partial(_rotated, bench, "both", {}))
    if second is not None:
        both = {"callback_secret": old, second: new}
        yield Case("callback: the new secret beside the old one", partial(_rotated, bench, "new_only", both))
    yield Case(
        "callback: only the old secret is known",
        partial(_refused_with, bench, {"secret_rotated": "new_only"}),
    )


async def _genuine(bench: Workbench, way: Way) -> None:
    await bench.turn(latency_s=[0.15, 0.15])
    submission, attempt, _ = await bench.started(way.submission(bench))
    with known_words():
        update = await _last(bench, submission, attempt)
    if bench.features["notice_filter"]:
        told = [
            await _read(bench, one) for one in bench.mailbox.at(bench.callback_path(submission.reference))
        ]
        expect(all(one.status not in OPEN for one in told), "every change is told, where the end would do")
    if bench.capabilities.trust is Trust.HINT:
        return
    expect(update.status is UpdateStatus.SUCCEEDED, f"a good end is told as {update.status} {update.failure}")


async def _early(bench: Workbench) -> None:
    await bench.turn(callback_early=1)
    submission, attempt, _ = await bench.started()
    await _last(bench, submission, attempt)


async def _copies(bench: Workbench) -> None:
    await bench.turn(callback_copies=3)
    submission, _, _ = await bench.started()
    received = await _received(bench, submission, 3)
    seen = [await _read(bench, one) for one in received[:3]]
    expect(len(seen) == 3, f"{len(seen)} of three copies arrive")


async def _replayed(bench: Workbench) -> None:
    await bench.turn(callback_replay_s=0.2)
    submission, _, _ = await bench.started()
    received = await _received(bench, submission, 2)
    expect(len(received) >= 2, "a replayed callback does not arrive")
    for one in received:
        await _read(bench, one)


async def _bad_end(bench: Workbench, situation: str, way: str) -> None:
    await bench.turn(ending=situation, ending_way=way)
    submission = bench.submission()
    outcome = await bench.submit(submission)
    if outcome.word != "accepted":
        return  # told in the answer: nothing is left to be called back about
    if bench.features["notices"] == "success":
        await bench.finish(bench.attempt(submission, outcome.update), outcome)
        await asyncio.sleep(SOON_S)
        if not bench.mailbox.at(bench.callback_path(submission.reference)):
            return
    update = await _last(bench, submission, bench.attempt(submission, outcome.update))
    if update.status is UpdateStatus.HINT or bench.capabilities.trust is Trust.HINT:
        return
    wanted = (UpdateStatus.CANCELED, None) if way in CANCELED else ENDINGS[situation]
    told = update.failure.failure_class if update.failure else None
    expect((update.status, told) == wanted, f"{situation} is told as {update.status} {update.failure}")
    is_explained = bench.features["reasons"] and way not in bench.features["silent_ends"]
    expect(update.excerpt or not is_explained, f"the operator reads nothing about {update.status}")


async def _reordered(bench: Workbench) -> None:
    await bench.turn(latency_s=[0.15, 0.15], callback_reorder=1)
    submission, _, _ = await bench.started()
    for one in await _received(bench, submission, 2):
        await _read(bench, one)


async def _unknown_word(bench: Workbench) -> None:
    await bench.turn(latency_s=[0.15, 0.15], unknown_status=1)
    submission, _, _ = await bench.started()
    first = (await _received(bench, submission, 1))[0]
    update = await _read(bench, first)
    expect(update.status not in (UpdateStatus.FAILED, UpdateStatus.BLOCKED), f"is read as {update.status}")


async def _forged(bench: Workbench) -> None:
    await bench.turn(latency_s=[0.1, 0.1], callback_forge=1)
    believed, refused = 0, 0
    for _ in range(6):
        submission, _, _ = await bench.started()
        for one in await _received(bench, submission, 2):
            is_believed = await _is_believed(bench, one)
            believed, refused = believed + is_believed, refused + (not is_believed)
    expect(refused >= 6, f"of forged callbacks only {refused} are refused")
    expect(believed >= 6, f"beside forged ones only {believed} genuine callbacks are believed")


async def _refused_with(bench: Workbench, knobs: Mapping[str, Any]) -> None:
    await bench.turn(**knobs)
    submission, _, _ = await bench.started()
    for one in await _received(bench, submission, 1):
        expect(not await _is_believed(bench, one), "it is believed")


async def _tampered(bench: Workbench, what: str) -> None:
    """One byte of the body, or of one of the signed headers, is another one."""
    await bench.turn()
    submission, _, _ = await bench.started()
    genuine = (await _received(bench, submission, 1))[-1]
    expect(await _is_believed(bench, genuine), "a genuine callback is refused")
    if what == "body":
        if bench.capabilities.trust is Trust.BODY:
            forged = Received(genuine.path, genuine.headers, genuine.raw.replace(b":", b": ", 1))
            expect(not await _is_believed(bench, forged), "another body is believed")
        return
    for index, (name, value) in enumerate(genuine.headers):
        if not _is_proof(name) or not value:
            continue
        for bent in (value[:-1] + (b"0" if value[-1:] != b"0" else b"1"), b"", "é".encode() + value):
            headers = (*genuine.headers[:index], (name, bent), *genuine.headers[index + 1 :])
            forged = Received(genuine.path, headers, genuine.raw)
            expect(not await _is_believed(bench, forged), f"a bent {name.decode()} is believed")
        missing = Received(
            genuine.path, (*genuine.headers[:index], *genuine.headers[index + 1 :]), genuine.raw
        )
        expect(not await _is_believed(bench, missing), f"it is believed without {name.decode()}")


async def _rotated(bench: Workbench, how: str, credentials: Mapping[str, str]) -> None:
    await bench.turn(secret_rotated=how)
    provider = bench.built(credentials=credentials)
    submission, _, _ = await bench.started()
    genuine = (await _received(bench, submission, 1))[-1]
    try:
        await provider.verify_callback(genuine.headers, genuine.raw)
    except CallbackRejected as rejected:
        raise Nonconformity(f"a genuine callback is refused: {rejected.reason}") from None


async def _received(bench: Workbench, submission: Submission, count: int) -> list[Received]:
    path = bench.callback_path(submission.reference)
    received = await bench.mailbox.wait_for(path, count)
    if not received:
        raise Nonconformity("no callback arrives")
    return received


async def _last(bench: Workbench, submission: Submission, attempt: AttemptRef) -> ProviderUpdate:
    """What the last of the callbacks about an attempt says; every one of them must be genuine."""
    update = await _read(bench, (await _received(bench, submission, 1))[-1])
    if update.status in OPEN:
        received = await bench.mailbox.wait_for(bench.callback_path(submission.reference), 2)
        update = await _read(bench, received[-1])
    ref = attempt.provider_ref
    expect(
        update.provider_ref in (None, ref),
        f"a callback about {ref} is read as one about {update.provider_ref}",
    )
    if not bench.capabilities.takes_callback_url:
        expect(update.provider_ref == ref, "without an address of its own, a callback must name its attempt")
    return update


async def _read(bench: Workbench, one: Received) -> ProviderUpdate:
    try:
        await bench.provider.verify_callback(one.headers, one.raw)
        update = bench.provider.read_callback(one.raw)
    except CallbackRejected as rejected:
        raise Nonconformity(f"a genuine callback is refused: {rejected.reason}") from None
    bench.note(update)
    return update


async def _is_believed(bench: Workbench, one: Received) -> bool:
    try:
        await bench.provider.verify_callback(one.headers, one.raw)
    except CallbackRejected:
        return False
    return True


def _is_signed(bench: Workbench) -> bool:
    callback = bench.declaration.callback
    return callback is not None and callback.signature.kind != "none"


def _has_time(bench: Workbench) -> bool:
    callback = bench.declaration.callback
    signature = callback.signature if callback else None
    return signature is not None and (
        signature.kind == "standard_webhooks" or getattr(signature, "timestamp_header", None) is not None
    )


def _is_proof(header: bytes) -> bool:
    name = header.lower()
    # The id of a key only says which one to try first.
    return not name.endswith(b"key-id") and any(
        word in name for word in (b"signature", b"webhook", b"authorization", b"timestamp")
    )


def _secrets(bench: Workbench) -> tuple[str, str] | None:
    """The lab's secret now, and the one that it is replaced by; None for public keys."""
    known = bench.dialect["credentials"]
    if "callback_secret" not in known or "next_callback_secret" not in known:
        return None
    return known["callback_secret"], known["next_callback_secret"]


def _second_secret(bench: Workbench) -> str | None:
    callback = bench.declaration.callback
    names: tuple[str, ...] = getattr(callback.signature, "secrets", ()) if callback else ()
    return names[1] if len(names) > 1 else None
