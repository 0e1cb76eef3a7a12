"""Cases about submits: accepted as asked, refused in every documented way, and answers that say nothing."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from functools import partial

from safelight.cli.conformance.cases import Case
from safelight.cli.conformance.workbench import Nonconformity, Outcome, Workbench, expect, without_links
from safelight.domain.provider import AfterUncertain, Submission, UpdateStatus
from safelight.errors import ProviderError
from safelight.providers.declaration import DeclaredModel

EXPECTED = {
    "invalid_request": ("failed", "invalid_request"),
    "content_blocked": ("blocked", "content_blocked"),
    "credentials": ("turned_away", "credentials"),
    "funds": ("turned_away", "funds"),
    "rate_limited": ("turned_away", "rate_limited"),
    "concurrency_limited": ("turned_away", "rate_limited"),
    "upstream_fault": ("failed", "upstream_fault"),
}
"""What each situation of the lab must be read as."""
TIMES = frozenset({"seconds", "date", "ms", "body"})
"""The forms in which upstreams say how long to wait."""
GATEWAYS = (
    *("html_502", "empty_500", "empty_200", "garbage_200", "html_200", "json_200", "truncated_json"),
    *("reset_before", "reset_after_head", "redirect", "hang"),
)
LONG_S = 20.0


def submit_cases(bench: Workbench) -> Iterator[Case]:
    """Every case about submits."""
    for model in bench.models:
        for operation in model.operations:
            yield Case(f"accepted: {model.name} {operation}", partial(_accepted, bench, model, operation))
        yield Case(f"accepted: {model.name} with n and sizes", partial(_shapes, bench, model))
        if model.takes_mask:
            yield Case(f"accepted: {model.name} edit with a mask", partial(_masked, bench, model))
    if len(bench.models) > 1:
        yield Case("accepted: each model as another one", partial(_told_apart, bench))
    if bench.capabilities.takes_callback_url and bench.capabilities.can_poll:
        for model, word in _first_of_each(bench):
            case = partial(_uncalled, bench, model, word)
            yield Case(f"accepted: {word} without an address for callbacks", case)
    for situation, expected in EXPECTED.items():
        for way in bench.dialect["refusals"].get(situation, ()):
            yield Case(f"refused: {situation} ({way})", partial(_refused, bench, situation, way, expected))
    if bench.dialect["refusals"].get("credentials"):
        yield Case("refused: another key", partial(_wrong_key, bench))
    for how in GATEWAYS:
        for is_accepted in (False, True):
            name = f"uncertain: {how} {'after' if is_accepted else 'before'} acceptance"
            yield Case(name, partial(_uncertain, bench, how, is_accepted=is_accepted))
    yield Case("not sent: nobody listens", partial(_nobody, bench))
    if bench.capabilities.after_uncertain is AfterUncertain.SAME_KEY:
        yield Case("the same key again is the same attempt", partial(_same_key, bench))
    if bench.capabilities.can_look_up:
        yield Case("an attempt is found by our reference", partial(_looked_up, bench))
        yield Case("an unknown reference is not found", partial(_not_found, bench))
        for how in ("html_502", "empty_200", "html_200", "json_200", "truncated_json"):
            yield Case(f"looked up: {how} proves nothing", partial(_look_up_says_nothing, bench, how))
        for way in bench.dialect["refusals"].get("upstream_fault", ()):
            yield Case(
                f"looked up: upstream_fault ({way}) proves nothing", partial(_not_looked_up, bench, way)
            )


async def _accepted(bench: Workbench, model: DeclaredModel, operation: str) -> None:
    await bench.turn()
    before = await bench.accepted()
    images = bench.images(model.max_images) if operation == "edit" else ()
    submission = bench.submission(model, operation=operation, images=images)
    outcome = await bench.submit(submission)
    _expect_taken(bench, outcome)
    expect(await bench.accepted() == before + 1, "one submit is not one job upstream")
    await _expect_arrived(bench, submission)


async def _expect_arrived(bench: Workbench, submission: Submission) -> None:
    """What every upstream has to be told, in whichever way it is sent."""
    witness = await bench.witness()
    n = submission.n
    expect(submission.prompt in witness["prompt"], f"the prompt arrives as {witness['prompt']!r}")
    expect(witness["n"] == n, f"n = {n} arrives as {witness['n']}")
    inputs = [hashlib.sha256(image.data).hexdigest() for image in submission.images]
    expect(witness["inputs"] == inputs, "the pictures to be edited do not arrive as they are")
    flaws = witness["details"].get("flaws")
    expect(not flaws, f"the picture will be {' and '.join(flaws or ())}")
    if bench.features["reference"] and submission.reference != witness["reference"]:
        raise Nonconformity("the upstream has a field for our reference, and does not get it")
    if submission.callback_url is not None and bench.features["callback"] == "task":
        token = submission.callback_url.rpartition("/")[2]
        expect(witness["callback_token"] == token, "the callback address does not arrive")


def _first_of_each(bench: Workbench) -> Iterator[tuple[DeclaredModel, str]]:
    for operation in ("generate", "edit"):
        model = bench.model(operation)
        if model is not None:
            yield model, operation


async def _uncalled(bench: Workbench, model: DeclaredModel, operation: str) -> None:
    """An installation that nobody can call has no address to give."""
    await bench.turn(latency_s=[LONG_S, LONG_S])
    outcome = await bench.submit(bench.submission(model, operation=operation, callback_url=None))
    expect(outcome.word == "accepted", f"is {outcome.word} {outcome.reason}: {bench.told[-1:]}")


async def _told_apart(bench: Workbench) -> None:
    await bench.turn()
    for operation in ("generate", "edit"):
        seen: dict[str, str] = {}
        for model in bench.models:
            if operation not in model.operations:
                continue
            _expect_taken(bench, await bench.submit(bench.submission(model, operation=operation)))
            arrived = (await bench.witness())["model"]
            ours = model.upstream_model or model.name
            expect(
                seen.setdefault(arrived, ours) == ours,
                f"{ours} arrives as {arrived}, and {seen[arrived]} too",
            )


async def _shapes(bench: Workbench, model: DeclaredModel) -> None:
    """The most pictures, and every size that is offered."""
    await bench.turn()
    shapes = [{"size": size, "aspect_ratio": None} for size in model.sizes if size]
    shapes += [{"size": None, "aspect_ratio": ratio} for ratio in model.aspect_ratios if ratio]
    if "" in model.sizes:
        shapes.append({"size": "1024x1024", "aspect_ratio": None})
    if "" in model.aspect_ratios:
        shapes.append({"size": None, "aspect_ratio": "16:9"})
    shapes.append({"size": None, "aspect_ratio": None})
    came_as: dict[tuple[str, str], str] = {}
    for operation, shape in itertools.product(model.operations, shapes):
        outcome = await bench.submit(bench.submission(model, operation=operation, **shape))
        _expect_taken(bench, outcome, f"with {shape}")
        arrived = (await bench.witness())["size"]
        wanted = shape["size"] or shape["aspect_ratio"]
        is_kept = operation == "edit" and bench.features["keeps_size"]
        if wanted and not is_kept and arrived not in (wanted, "0x0"):
            expect(_is_same_ratio(wanted, arrived), f"{operation}: {wanted} arrives as {arrived}")
        if shape["size"] and not is_kept and arrived != "0x0":
            other = came_as.setdefault((operation, arrived), shape["size"])
            expect(other == shape["size"], f"{operation}: {other} and {wanted} both arrive as {arrived}")
    for operation in model.operations:
        # Upstreams may count what comes in among the most pictures.
        most = min(2, model.max_n) if operation == "edit" else model.max_n
        submission = bench.submission(model, operation=operation, n=most)
        _expect_taken(bench, await bench.submit(submission), f"with n = {most}")
        await _expect_arrived(bench, submission)


def _is_same_ratio(ours: str, theirs: str) -> bool:
    """Whether two sizes or ratios are nearly the same: sides are multiples of something."""
    width, height = (int(side) for side in ours.replace(":", "x").split("x"))
    their_width, their_height = (int(side) for side in theirs.split("x"))
    return abs(width * their_height / (height * their_width) - 1) < 0.04


async def _masked(bench: Workbench, model: DeclaredModel) -> None:
    await bench.turn()
    ours, theirs = bench.capabilities.mask_style, bench.features["mask_style"]
    expect(theirs in (None, ours), f"a mask is {ours} where it may change, and should be {theirs}")
    mask = bench.mask()
    submission = bench.submission(model, operation="edit", mask=mask, n=min(2, model.max_n))
    _expect_taken(bench, await bench.submit(submission))
    await _expect_arrived(bench, submission)
    witness = await bench.witness()
    expect(witness["mask"] == hashlib.sha256(mask.data).hexdigest(), "the mask does not arrive as it is")


async def _refused(bench: Workbench, situation: str, way: str, expected: tuple[str, str]) -> None:
    await bench.turn(refuse=situation, refuse_way=way, refuse_where="submit")
    before = await bench.accepted()
    outcome = await bench.submit(bench.submission())
    seen = (outcome.word, str(outcome.reason))
    if situation == "upstream_fault" and seen[0] == "uncertain" and bench.doubts_faults:
        return
    if way == "model" and seen == EXPECTED["upstream_fault"]:
        # A model that is gone upstream is no mistake of the customer: another route may have it.
        expect(outcome.code == "model_unavailable", f"a model that is gone is told as {outcome.code}")
        return
    expect(seen == expected, f"is read as {seen[0]} {seen[1]}, and is {expected[0]} {expected[1]}")
    expect(await bench.accepted() == before, "a refused submit is sent again")
    if situation == "rate_limited":
        is_told = outcome.retry_after_s is not None
        expect(is_told or way not in TIMES, f"the time to wait ({way}) is not read")
        expect(not is_told or way != "none", f"a time to wait of {outcome.retry_after_s} s is made up")


async def _wrong_key(bench: Workbench) -> None:
    await bench.turn()
    names = [name for name in bench.dialect["credentials"] if not name.startswith("callback")]
    wrong = bench.built(credentials=dict.fromkeys(names, "lab-test-wrong-credential"))
    outcome = await bench.submit(bench.submission(), wrong)
    expect((outcome.word, outcome.reason) == ("turned_away", "credentials"), f"is read as {outcome}")


async def _uncertain(bench: Workbench, how: str, *, is_accepted: bool) -> None:
    await bench.turn(gateway={"where": "submit", "how": how, "is_accepted": is_accepted})
    strays = (await bench.ledger())["strays"]
    outcome = await bench.submit(bench.submission(), bench.built(patience_s=0.4) if how == "hang" else None)
    expect(
        outcome.word == "uncertain", f"is read as {outcome.word} {outcome.reason}, though it may be accepted"
    )
    expect((await bench.ledger())["strays"] == strays, "a redirect is followed with our credentials")


async def _nobody(bench: Workbench) -> None:
    outcome = await bench.submit(bench.submission(), bench.built(base_url="http://127.0.0.1:1"))
    expect((outcome.word, outcome.reason) == ("turned_away", "not_sent"), f"is read as {outcome}")


async def _same_key(bench: Workbench) -> None:
    await bench.turn(gateway={"where": "submit", "how": "reset_after_head", "is_accepted": True, "times": 1})
    submission = bench.submission()
    expect((await bench.submit(submission)).word == "uncertain", "a lost answer is not uncertain")
    again = await bench.submit(submission)
    _expect_taken(bench, again, "under the same key again")
    witness = await bench.witness()
    expect(witness["times_accepted"] == 1, "the same key makes a second job")


async def _looked_up(bench: Workbench) -> None:
    await bench.turn(gateway={"where": "submit", "how": "reset_after_head", "is_accepted": True, "times": 1})
    submission = bench.submission()
    expect((await bench.submit(submission)).word == "uncertain", "a lost answer is not uncertain")
    found = await bench.provider.look_up(bench.attempt(submission, None))
    if found is None or found.provider_ref is None:
        raise Nonconformity("an accepted attempt is not found by its reference")
    attempt = without_links(bench.attempt(submission, found))
    final = await bench.finish(attempt, Outcome("accepted", update=found))
    expect(final.status is UpdateStatus.SUCCEEDED, f"the found attempt ends {final.status}")


async def _not_found(bench: Workbench) -> None:
    await bench.turn()
    try:
        found = await bench.provider.look_up(bench.attempt(bench.submission(), None))
    except ProviderError as error:
        raise Nonconformity(
            f"looking for an unknown reference is an error: {error} {error.excerpt}"
        ) from None
    expect(found is None, "a reference that nobody sent is found")


async def _look_up_says_nothing(bench: Workbench, how: str) -> None:
    """Who takes it for a list without the attempt sends the attempt again."""
    await bench.turn(gateway={"where": "any", "how": how})
    await _expect_no_proof(bench)


async def _not_looked_up(bench: Workbench, way: str) -> None:
    await bench.turn(refuse="upstream_fault", refuse_way=way, refuse_where="any")
    await _expect_no_proof(bench)


async def _expect_no_proof(bench: Workbench) -> None:
    try:
        found = await bench.provider.look_up(bench.attempt(bench.submission(), None))
    except ProviderError as error:
        bench.hear(error)
        return
    raise Nonconformity(f"is read as {found.status if found else 'not there'}")


def _expect_taken(bench: Workbench, outcome: Outcome, what: str = "") -> None:
    wanted = "done" if bench.capabilities.is_synchronous else "accepted"
    # An upstream may draw so fast that its answer to the submit has the pictures already.
    if outcome.word not in (wanted, "done"):
        raise Nonconformity(f"a plain submit {what} is {outcome.word} {outcome.reason}: {bench.told[-1:]}")
