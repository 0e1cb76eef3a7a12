"""What holds for every dialect: it publishes its ways of saying no, and every knob works in it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import get_args

import aiohttp
import pytest

from safelight.lab.dialects import dialect_names
from safelight.lab.knobs import How
from safelight.lab.situations import ENDINGS, REFUSALS
from tests.lab.dialects.conftest import DIALECTS, Caller
from tests.lab.dialects.speaker import Asked, Visitor
from tests.lab.upstream import open_upstream

HOWS = get_args(How)
WAYS = [
    (name, situation, way.name)
    for name, dialect in DIALECTS.items()
    for situation, ways in dialect.refusals.items()
    for way in ways
]
BAD_ENDS = [
    (name, situation, ending.name)
    for name, dialect in DIALECTS.items()
    for situation, endings in dialect.endings.items()
    for ending in endings
]
CALLING = [name for name, dialect in DIALECTS.items() if dialect.features.callback != "none"]
PICTURED = [name for name, dialect in DIALECTS.items() if dialect.features.edit]
CANCELING = [name for name, dialect in DIALECTS.items() if dialect.features.cancel]
LISTING = [name for name, dialect in DIALECTS.items() if dialect.features.list]
COVERS_THE_BODY = {"standard_webhooks", "ed25519_jwks"}


def is_polled(name: str) -> bool:
    return DIALECTS[name].shape != "sync"


async def test_the_dialect_describes_itself(visitor: Visitor) -> None:
    told = await visitor.read(f"/lab/dialects/{visitor.name}")
    assert told["name"] == visitor.name
    assert told["shape"] in {"sync", "poll", "callback"}
    assert (list(told["refusals"]), list(told["endings"])) == (list(REFUSALS), list(ENDINGS))
    assert told["refusals"]["invalid_request"]
    assert told["refusals"]["upstream_fault"]
    assert not is_polled(visitor.name) or told["refusals"]["not_found"]


async def test_a_right_submit_is_drawn_and_witnessed(visitor: Visitor) -> None:
    submitted = await visitor.submit()
    last = await visitor.finished(submitted)
    item = await visitor.item()
    assert (item["dialect"], item["prompt"], item["outcome"]) == (
        visitor.name,
        "a red fox in the snow",
        "done",
    )
    assert item["model"]
    [got] = visitor.speaker.pictures(last)
    raw = got if isinstance(got, bytes) else (await visitor.ask(Asked("GET", got))).raw
    assert raw[:4] in {b"\x89PNG", b"\xff\xd8\xff\xe0", b"RIFF"}


async def test_without_its_key_a_submit_is_refused_unless_everybody_is_let_in(visitor: Visitor) -> None:
    if not DIALECTS[visitor.name].refusals.get("credentials"):
        assert DIALECTS[visitor.name].credentials == {}
        return
    asked = visitor.speaker.submit()
    kind = {name: value for name, value in asked.headers.items() if name.lower() == "content-type"}
    wrong = {name: value if name in kind else f"{value[:-1]}¡" for name, value in asked.headers.items()}
    await visitor.ask(replace(asked, headers=wrong))
    assert await visitor.accepted() == 0
    answered = await visitor.ask(replace(asked, headers=kind, path=asked.path.partition("?key=")[0]))
    assert answered.raw
    assert await visitor.accepted() == int(DIALECTS[visitor.name].features.is_open)


async def test_a_field_that_nobody_knows_is_refused(visitor: Visitor) -> None:
    asked = visitor.speaker.submit()
    if isinstance(asked.json, dict):
        refused = await visitor.ask(replace(asked, json={**asked.json, "no_such_field": 1}))
        assert refused.raw
        assert await visitor.accepted() == 0


async def test_garbage_is_refused(visitor: Visitor) -> None:
    asked = visitor.speaker.submit()
    refused = await visitor.ask(
        replace(asked, json=None, data=b"{", headers={**asked.headers, "Content-Type": "application/json"})
    )
    assert refused.raw
    assert await visitor.accepted() == 0


@pytest.mark.parametrize(("name", "situation", "way"), WAYS)
async def test_every_published_refusal_is_answered(visitor: Visitor, situation: str, way: str) -> None:
    before = await visitor.submit() if situation == "not_found" else None
    accepted = await visitor.accepted()
    await visitor.turn(refuse=situation, refuse_way=way, refuse_times=1)
    asked = visitor.speaker.submit() if before is None else visitor.speaker.poll(before.body)
    refused = await visitor.ask(asked)
    expected = DIALECTS[visitor.name].refusals[situation]
    reply = next(each for each in expected if each.name == way).made()
    assert refused.status == reply.status
    assert reply.body is None or refused.raw
    assert await visitor.accepted() == accepted
    assert (await visitor.submit()).raw != refused.raw
    assert await visitor.accepted() == accepted + 1


@pytest.mark.parametrize(("name", "situation", "way"), BAD_ENDS)
async def test_every_published_ending_comes_true(visitor: Visitor, situation: str, way: str) -> None:
    good = await visitor.finished(await visitor.submit())
    await visitor.turn(ending=situation, ending_way=way)
    bad = await visitor.finished(await visitor.submit(prompt="another"))
    item = await visitor.item()
    assert item["outcome"] == situation
    assert (bad.status, bad.body) != (good.status, good.body)
    ending = next(each for each in DIALECTS[visitor.name].endings[situation] if each.name == way)
    assert item["billed"] == (1 if ending.is_billed else 0)


@pytest.mark.parametrize("name", list(DIALECTS)[:1])
async def test_a_way_that_is_not_published_is_told_loudly(visitor: Visitor) -> None:
    await visitor.turn(refuse="invalid_request", refuse_way="no such way")
    assert (await visitor.submit()).status == 501
    await visitor.turn(ending="failed", ending_way="no such way")
    assert (await visitor.submit()).status == 501


@pytest.mark.parametrize("is_accepted", [False, True])
@pytest.mark.parametrize("how", HOWS)
async def test_the_gateway_answers_for_a_submit(visitor: Visitor, how: str, is_accepted: bool) -> None:
    await visitor.turn(gateway={"where": "submit", "how": how, "is_accepted": is_accepted, "times": 1})
    await misled(visitor, visitor.speaker.submit(), how)
    assert await visitor.accepted() == int(is_accepted)
    await visitor.submit()
    assert await visitor.accepted() == int(is_accepted) + 1


@pytest.mark.parametrize("name", [name for name in DIALECTS if is_polled(name)])
@pytest.mark.parametrize("how", HOWS)
async def test_the_gateway_answers_for_a_poll(visitor: Visitor, how: str) -> None:
    submitted = await visitor.submit()
    # Without a count: an HTTP client asks by itself again where nothing can have changed.
    await visitor.turn(gateway={"where": "poll", "how": how})
    await misled(visitor, visitor.speaker.poll(submitted.body), how)
    await visitor.turn()
    assert visitor.speaker.pictures(await visitor.finished(submitted))


async def misled(visitor: Visitor, asked: Asked | None, how: str) -> None:
    """Ask, and find what the gateway does instead of answering."""
    breaks = {
        "hang": TimeoutError,
        "reset_before": aiohttp.ServerDisconnectedError,
        "reset_after_head": aiohttp.ClientPayloadError,
    }
    if how in breaks:
        with pytest.raises(breaks[how]):
            async with asyncio.timeout(0.3):
                await visitor.ask(asked)
        return
    statuses = {"html_502": 502, "empty_500": 500, "redirect": 307}
    if how in {"garbage_200", "truncated_json"}:
        with pytest.raises(ValueError):  # noqa: PT011 - the JSON of aiohttp says no more
            await visitor.ask(asked)
        return
    answered = await visitor.ask(asked)
    assert answered.status == statuses.get(how, 200)
    assert (answered.body is None) == (how != "json_200")


async def test_after_a_lost_answer_the_job_goes_on(visitor: Visitor) -> None:
    await visitor.turn(lose_answer=1)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await visitor.submit()
    assert (await visitor.item())["outcome"] == "done"


async def test_chance_speaks_the_words_of_the_dialect(visitor: Visitor) -> None:
    dialect = DIALECTS[visitor.name]
    for knob, situation, ending in (
        ("moderate", "content_blocked", "blocked"),
        ("fail", "upstream_fault", "failed"),
    ):
        await visitor.turn(**{knob: 1})
        before = await visitor.accepted()
        submitted = await visitor.submit()
        if dialect.endings.get(ending):
            assert (await visitor.item())["outcome"] == ending
        else:
            ways = dialect.refusals.get(situation, ())
            assert submitted.status in ({way.made().status for way in ways} or {501})
            assert await visitor.accepted() == before
    await visitor.turn(rate_limit=1)
    before = await visitor.accepted()
    limited = dialect.refusals.get("rate_limited", ())
    assert (await visitor.submit()).status in ({way.made().status for way in limited} or {501})
    assert await visitor.accepted() == before


async def test_fewer_pictures_and_none_are_successes_too(visitor: Visitor) -> None:
    await visitor.turn(empty_success=1)
    last = await visitor.finished(await visitor.submit())
    assert visitor.speaker.pictures(last) == []
    assert (await visitor.item())["outcome"] == "done"


@pytest.mark.parametrize("name", [name for name in DIALECTS if is_polled(name)])
async def test_an_unknown_word_shows_in_two_polls(visitor: Visitor) -> None:
    await visitor.turn(unknown_status=1)
    submitted = await visitor.submit()
    looks = [await visitor.ask(visitor.speaker.poll(submitted.body)) for _ in range(2)]
    assert not any(visitor.speaker.is_final(look) for look in looks)
    assert visitor.speaker.pictures(await visitor.finished(submitted))


@pytest.mark.parametrize("name", [name for name in DIALECTS if is_polled(name)])
async def test_a_restarted_lab_goes_on(name: str, tmp_path: Path) -> None:
    async with aiohttp.ClientSession() as session:
        async with open_upstream(tmp_path, {"latency_s": [0.4, 0.4], "small_pictures": True}) as lab:
            visitor = Visitor(lab.base, name, session)
            submitted = await visitor.submit()
            port = lab.base.rpartition(":")[2]
        async with open_upstream(tmp_path, port=int(port)) as lab:
            last = await Visitor(lab.base, name, session).finished(submitted)
            assert len(visitor.speaker.pictures(last)) == 1
            item = await visitor.item()
            assert (item["times_accepted"], item["billed"]) == (1, 1)


@pytest.mark.parametrize("name", PICTURED)
async def test_pictures_that_come_along_are_looked_at(visitor: Visitor, caller: Caller) -> None:
    if (before := visitor.speaker.before_edit()) is not None:
        await visitor.ask(before)
    edit = visitor.speaker.edit(caller.picture_url)
    submitted = await visitor.ask(edit)
    plain = await visitor.finished(submitted)
    item = await visitor.item()
    assert item["inputs"], submitted.raw
    assert all(len(digest) == 64 for digest in item["inputs"])
    assert visitor.speaker.pictures(plain)
    nothing_there = visitor.speaker.edit(f"{caller.url}/missing.png")
    if nothing_there != edit:
        assert (await visitor.ask(nothing_there)).raw
        assert await visitor.accepted() == 1


@pytest.mark.parametrize("name", CANCELING)
async def test_an_open_job_is_canceled(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    submitted = await visitor.submit()
    await visitor.ask(visitor.speaker.cancel(submitted.body))
    assert (await visitor.item())["outcome"] == "canceled"


@pytest.mark.parametrize("name", LISTING)
async def test_jobs_are_listed(visitor: Visitor) -> None:
    await visitor.submit()
    [identity] = (await visitor.item())["ids"]
    listed = await visitor.ask(visitor.speaker.listing())
    assert identity in listed.raw.decode()


async def called(visitor: Visitor, caller: Caller, **knobs: object) -> list[tuple[dict[str, str], bytes]]:
    """Submit with a callback address, and wait until the callbacks have come."""
    await visitor.turn(callback_urls={visitor.name: caller.callback_url}, **knobs)
    is_account = DIALECTS[visitor.name].features.callback == "account"
    await visitor.submit(callback_url=None if is_account else caller.callback_url)
    assert (await visitor.item(is_told=True))["callback_token"] == "token-1"
    return caller.taken


def is_signed(name: str) -> bool:
    return DIALECTS[name].signing.family not in {"none", "static_token"}


@pytest.mark.parametrize("name", CALLING)
async def test_callbacks_come_and_are_genuine(visitor: Visitor, caller: Caller) -> None:
    taken = await called(visitor, caller)
    least = 2 if DIALECTS[visitor.name].features.notices == "changes" else 1
    assert len(taken) >= least
    if DIALECTS[visitor.name].signing.family != "none":
        assert all(visitor.speaker.is_genuine(*one) for one in taken)


@pytest.mark.parametrize("name", CALLING)
async def test_replayed_callbacks_are_the_same_bytes(visitor: Visitor, caller: Caller) -> None:
    before = len(await called(visitor, caller, callback_replay_s=0.4))
    await caller.until(lambda: len(caller.taken) == before + 1)
    first, again = caller.taken[-2:]
    assert first[1] == again[1]
    assert (
        len({one[0].get(DIALECTS[visitor.name].signing.signature or "Host") for one in (first, again)}) == 1
    )


@pytest.mark.parametrize("name", [name for name in CALLING if is_signed(name)])
async def test_forged_callbacks_are_not_genuine(visitor: Visitor, caller: Caller) -> None:
    for seed in range(6):
        caller.taken.clear()
        genuine = len(await called(visitor, caller, seed=seed))
        caller.taken.clear()
        taken = await called(visitor, caller, seed=seed, callback_forge=1)
        forged = [one for one in taken if not visitor.speaker.is_genuine(*one)]
        assert (len(taken), len(forged)) == (genuine + 1, 1)


@pytest.mark.parametrize("name", [name for name in CALLING if is_signed(name)])
async def test_changed_bytes_new_secrets_and_no_signature_are_noticed(
    visitor: Visitor, caller: Caller
) -> None:
    family = DIALECTS[visitor.name].signing.family
    for knobs in (
        {"secret_rotated": "new_only"},
        {"callback_unsigned": True},
        {"callback_reserialised": True},
    ):
        if "callback_reserialised" in knobs and family not in COVERS_THE_BODY:
            continue
        caller.taken.clear()
        taken = await called(visitor, caller, **knobs)
        assert taken
        assert not any(visitor.speaker.is_genuine(*one) for one in taken)


@pytest.mark.parametrize("name", list(DIALECTS)[:1])
async def test_all_dialects_are_listed(visitor: Visitor) -> None:
    if set(DIALECTS) == set(dialect_names()):
        listed = (await visitor.read("/lab/dialects"))["dialects"]
        assert [each["name"] for each in listed] == list(DIALECTS)


def test_every_dialect_has_a_speaker_and_its_modules_name() -> None:
    folder = Path(__file__).parent / "speakers"
    assert set(DIALECTS) <= {path.stem.replace("_", "-") for path in folder.glob("*.py")}
    assert all(dialect.name == name for name, dialect in DIALECTS.items())
