"""Refusals, bad ends and gateways on demand, for the own shapes; knobs of one upstream; the way back."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from safelight.lab.knobs import Knobs
from safelight.lab.moods import Moods
from tests.lab.upstream import Receiver, Upstream


async def turn(upstream: Upstream, **knobs: Any) -> None:
    status, _ = await upstream.call("POST", "/lab/knobs", knobs)
    assert status == 200


@pytest.mark.parametrize(
    "knobs",
    [
        {"refuse": "nonsense"},
        {"ending": "done"},
        {"gateway": {"how": "nonsense"}},
        {"gateway": {"how": "hang", "where": "nowhere"}},
        {"gateway": {"how": "hang", "times": 0}},
        {"secret_rotated": "never"},
    ],
)
def test_a_knob_that_makes_no_sense_is_refused(knobs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"knob {next(iter(knobs))}"):
        Knobs().merged(knobs)


async def test_a_reset_brings_back_what_the_lab_was_started_with(upstream: Upstream) -> None:
    _, start = await upstream.call("GET", "/lab/knobs")
    await turn(upstream, fail=1, latency_s=[3, 3])
    _, after = await upstream.call("POST", "/lab/knobs", {"reset": True, "partial": 0.5})
    assert after == start | {"partial": 0.5}


async def test_one_upstream_may_have_knobs_of_its_own(upstream: Upstream) -> None:
    _, own = await upstream.call("POST", "/lab/knobs/fal", {"fail": 1})
    assert own["fail"] == 1
    assert (await upstream.call("GET", "/lab/knobs"))[1]["fail"] == 0
    await turn(upstream, partial=0.5)
    _, own = await upstream.call("GET", "/lab/knobs/fal")
    assert (own["fail"], own["partial"]) == (1, 0.5)
    await turn(upstream, reset=True)
    assert (await upstream.call("GET", "/lab/knobs/fal"))[1]["fail"] == 0
    assert (await upstream.call("GET", "/lab/knobs/nobody"))[0] == 404


def test_refusals_are_counted_for_each_upstream_and_anew_at_each_turn() -> None:
    moods = Moods(Knobs())
    for _ in range(2):
        moods.turn({"refuse": "funds", "refuse_times": 2})
        told = [moods.refusal(name, "submit") for name in ("a", "a", "a", "b")]
        assert told == [("funds", None), ("funds", None), None, ("funds", None)]
    assert moods.refusal("b", "poll") is None


async def test_a_refusal_comes_as_often_as_asked_and_accepts_nothing(upstream: Upstream) -> None:
    await turn(upstream, refuse="funds", refuse_times=2)
    assert [(await upstream.submit())[0] for _ in range(3)] == [402, 402, 202]
    assert (await upstream.ledger())["accepted"] == 1


async def test_a_look_can_be_refused_too(upstream: Upstream) -> None:
    _, job = await upstream.submit()
    await turn(upstream, refuse="not_found", refuse_times=1)
    path = f"/poll/v1/jobs/{job['id']}"
    assert [(await upstream.call("GET", path))[0] for _ in range(2)] == [404, 200]


@pytest.mark.parametrize(
    ("ending", "code"), [("invalid_request", "invalid_request"), ("blocked", "content_blocked")]
)
async def test_a_bad_end_comes_on_demand(upstream: Upstream, ending: str, code: str) -> None:
    _, job = await upstream.submit(lab={"ending": ending})
    record = await upstream.finished(job["id"])
    assert (record["status"], record["error"]["code"]) == (ending, code)


async def test_a_success_may_be_empty(upstream: Upstream) -> None:
    _, job = await upstream.submit(lab={"empty_success": 1})
    record = await upstream.finished(job["id"])
    assert (record["status"], record["images"], record["cost"]) == ("done", [], 0)


async def test_a_gateway_stands_before_the_own_shapes(upstream: Upstream) -> None:
    await turn(upstream, gateway={"where": "submit", "how": "html_502", "is_accepted": True, "times": 1})
    with pytest.raises(aiohttp.ContentTypeError):
        await upstream.submit()
    assert (await upstream.submit())[0] == 202
    assert (await upstream.ledger())["accepted"] == 2


async def test_the_ledger_tells_all_or_only_the_last(upstream: Upstream) -> None:
    for number in range(3):
        await upstream.submit(reference=f"attempt-{number}")
    _, told = await upstream.call("GET", "/lab/ledger?last=2")
    assert told["accepted"] == 3
    assert [item["reference"] for item in told["items"]] == ["attempt-1", "attempt-2"]
    assert (await upstream.call("GET", "/lab/ledger?last=0"))[1]["items"] == []
    assert (await upstream.call("GET", "/lab/ledger?last=all"))[0] == 400


async def test_who_follows_a_redirect_is_counted(upstream: Upstream) -> None:
    await turn(upstream, gateway={"where": "submit", "how": "redirect"})
    with pytest.raises(aiohttp.ContentTypeError):
        await upstream.submit()
    ledger = await upstream.ledger()
    assert (ledger["accepted"], ledger["strays"]) == (0, 1)


async def test_a_replayed_callback_says_the_same_again(upstream: Upstream, receiver: Receiver) -> None:
    knobs = {"callback_replay_s": 0.1, "callback_late_s": 0.2}
    await upstream.submit("callback", callback_url=receiver.url, lab=knobs)
    await receiver.until(lambda: receiver.words() == ["running", "done", "done"])
    first, again = receiver.notices[-2:]
    assert first == again
    assert first[1]["sent_at"] - first[1]["finished_at"] >= 0.19


@pytest.mark.parametrize(
    ("knobs", "verdict"),
    [
        ({"callback_reserialised": True}, "forged"),
        ({"callback_unsigned": True}, "none"),
        ({"secret_rotated": "new_only"}, "forged"),
        ({"secret_rotated": "both"}, "genuine"),
    ],
)
async def test_callbacks_lose_their_signature_in_several_ways(
    upstream: Upstream, receiver: Receiver, knobs: dict[str, Any], verdict: str
) -> None:
    await upstream.submit("callback", callback_url=receiver.url, lab=knobs)
    await receiver.until(lambda: len(receiver.notices) == 2)
    assert {given for given, _ in receiver.notices} == {verdict}
