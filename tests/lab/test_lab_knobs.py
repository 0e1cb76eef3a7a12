"""Every knob does what it says."""

import asyncio
from unittest.mock import patch

import aiohttp
import pytest

from safelight.lab import Knobs, results
from tests.lab.upstream import Receiver, Upstream


@pytest.mark.parametrize(
    "text", ["", "[]", '{"nonsense": 1}', '{"fail": 1.5}', '{"latency_s": [2, 1]}', '{"callback_copies": 0}']
)
def test_wrong_knobs_are_refused_with_a_clear_message(text: str) -> None:
    with pytest.raises(ValueError, match="knob"):
        Knobs.parse(text)


async def test_knobs_are_merged_while_the_lab_runs(upstream: Upstream) -> None:
    assert (await upstream.call("POST", "/lab/knobs", {"fail": 1}))[1]["fail"] == 1
    assert (await upstream.call("POST", "/lab/knobs", {"partial": 0.5}))[1]["fail"] == 1
    assert (await upstream.call("POST", "/lab/knobs", {}))[1] == (await upstream.call("GET", "/lab/knobs"))[1]
    status, body = await upstream.call("POST", "/lab/knobs", {"fail": "often"})
    assert (status, body["error"]["code"]) == (400, "invalid_request")
    assert "fail" in body["error"]["message"]


async def test_the_request_turns_knobs_over_the_server(upstream: Upstream) -> None:
    await upstream.call("POST", "/lab/knobs", {"fail": 1})
    _, job = await upstream.submit(lab={"fail": 0})
    assert (await upstream.finished(job["id"]))["status"] == "done"


async def test_a_seed_makes_the_draws_repeatable(upstream: Upstream) -> None:
    runs = []
    for _ in range(2):
        await upstream.call("POST", "/lab/knobs", {"seed": 7, "fail": 0.5})
        jobs = [(await upstream.submit())[1]["id"] for _ in range(12)]
        runs.append([(await upstream.finished(job))["status"] for job in jobs])
    assert runs[0] == runs[1]
    assert set(runs[0]) == {"done", "failed"}


@pytest.mark.parametrize(
    ("knob", "word", "code", "status"),
    [("fail", "failed", "generation_failed", 500), ("moderate", "blocked", "content_blocked", 400)],
)
async def test_bad_ends_are_accepted_and_not_billed(
    upstream: Upstream, knob: str, word: str, code: str, status: int
) -> None:
    _, job = await upstream.submit(lab={knob: 1})
    record = await upstream.finished(job["id"])
    assert (record["status"], record["error"]["code"], record["images"]) == (word, code, [])
    given, body = await upstream.submit("sync", lab={knob: 1})
    assert (given, body["error"]["code"]) == (status, code)
    ledger = await upstream.ledger()
    assert (ledger["accepted"], ledger["billed"], ledger["items"][0]["outcome"]) == (2, 0, word)


async def test_a_rate_limited_submit_is_not_accepted(upstream: Upstream) -> None:
    body = {"prompt": "x", "reference": "r", "lab": {"rate_limit": 1}}
    headers = {"Authorization": "Bearer lab-key"}
    async with upstream.session.post(f"{upstream.base}/poll/v1/jobs", json=body, headers=headers) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert (await answer.json())["error"]["code"] == "rate_limited"
    assert (await upstream.ledger())["accepted"] == 0


@pytest.mark.parametrize("shape", ["sync", "poll"])
async def test_a_lost_answer_is_an_accepted_job(upstream: Upstream, shape: str) -> None:
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await upstream.submit(shape, lab={"lose_answer": 1})
    while (await upstream.ledger())["billed"] == 0:  # noqa: ASYNC110 - seen from outside only
        await asyncio.sleep(0.01)


async def test_after_a_lost_answer_the_same_key_gets_the_stored_one(upstream: Upstream) -> None:
    fields = {"lab": {"lose_answer": 1}, "headers": {"Idempotency-Key": "k"}}
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await upstream.submit("sync", **dict(fields))
    assert (await upstream.submit("sync", **dict(fields)))[0] == 200
    assert (await upstream.ledger())["accepted"] == 1


async def test_a_hanging_submit_is_never_answered_but_drawn(upstream: Upstream) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.4):
            await upstream.submit(lab={"hang_after_accept": 1})
    assert (await upstream.ledger())["items"][0]["outcome"] == "done"


async def test_partial_delivers_and_bills_fewer_but_at_least_one(upstream: Upstream) -> None:
    for n, most in ((4, 3), (1, 1)):
        _, job = await upstream.submit(n=n, lab={"partial": 1})
        record = await upstream.finished(job["id"])
        assert 1 <= len(record["images"]) == record["cost"] <= most


async def test_an_unknown_status_shows_in_two_looks(upstream: Upstream) -> None:
    _, job = await upstream.submit(lab={"unknown_status": 1})
    words = [(await upstream.call("GET", f"/poll/v1/jobs/{job['id']}"))[1]["status"] for _ in range(2)]
    assert words == ["dreaming", "dreaming"]
    assert (await upstream.finished(job["id"]))["status"] == "done"


async def test_an_unknown_status_shows_in_the_running_notice(upstream: Upstream, receiver: Receiver) -> None:
    await upstream.submit("callback", callback_url=receiver.url, lab={"unknown_status": 1})
    await receiver.until(lambda: receiver.words() == ["dreaming", "done"])


async def test_an_expired_url_is_forbidden_and_the_next_look_gives_a_fresh_one(upstream: Upstream) -> None:
    _, job = await upstream.submit(lab={"expire_result_s": 0.2})
    url = (await upstream.finished(job["id"]))["images"][0]["url"]
    assert (await upstream.session.get(url)).status == 200
    await asyncio.sleep(0.25)
    assert (await upstream.session.get(url)).status == 403
    fresh = (await upstream.finished(job["id"]))["images"][0]["url"]
    assert (await upstream.session.get(fresh)).status == 200


async def test_a_result_can_be_html(upstream: Upstream) -> None:
    _, job = await upstream.submit(lab={"html_result": 1})
    url = (await upstream.finished(job["id"]))["images"][0]["url"]
    async with upstream.session.get(url) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")


async def test_a_result_can_be_cut_in_the_middle(upstream: Upstream) -> None:
    _, job = await upstream.submit(lab={"truncate_result": 1})
    url = (await upstream.finished(job["id"]))["images"][0]["url"]
    async with upstream.session.get(url) as answer:
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()


async def test_a_result_can_drip(upstream: Upstream) -> None:
    _, job = await upstream.submit(lab={"slow_result": 1})
    url = (await upstream.finished(job["id"]))["images"][0]["url"]
    async with upstream.session.get(url) as answer:
        assert len(await answer.content.read(64)) == 1
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await answer.content.read(64)


async def test_who_leaves_in_the_middle_of_a_result_is_no_fault_of_the_lab(
    upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    _, job = await upstream.submit(lab={"slow_result": 1})
    url = (await upstream.finished(job["id"]))["images"][0]["url"]
    with patch.object(results, "SLOW_GAP_S", 0.01):
        async with upstream.session.get(url) as answer:
            await answer.content.read(1)
            answer.close()
        await asyncio.sleep(0.5)  # many letters more, to nobody
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_lost_callbacks_never_come(upstream: Upstream, receiver: Receiver) -> None:
    _, job = await upstream.submit("callback", callback_url=receiver.url, lab={"callback_loss": 1})
    await upstream.finished(job["id"], "callback")
    await asyncio.sleep(0.2)
    assert receiver.notices == []


async def test_callbacks_come_in_copies(upstream: Upstream, receiver: Receiver) -> None:
    await upstream.submit("callback", callback_url=receiver.url, lab={"callback_copies": 3})
    await receiver.until(lambda: sorted(receiver.words()) == ["done"] * 3 + ["running"] * 3)


async def test_reordered_callbacks_say_running_after_done(upstream: Upstream, receiver: Receiver) -> None:
    await upstream.submit("callback", callback_url=receiver.url, lab={"callback_reorder": 1})
    await receiver.until(lambda: receiver.words() == ["done", "running"])


async def test_delayed_callbacks_come_later_than_the_end(upstream: Upstream, receiver: Receiver) -> None:
    await upstream.submit("callback", callback_url=receiver.url, lab={"callback_delay_s": [0.3, 0.4]})
    await receiver.until(lambda: receiver.words() == ["running", "done"])
    notice = receiver.notices[-1][1]
    assert notice["sent_at"] - notice["finished_at"] >= 0.29


async def test_forged_callbacks_come_first_in_three_kinds(upstream: Upstream, receiver: Receiver) -> None:
    for _ in range(24):
        await upstream.submit("callback", callback_url=receiver.url, lab={"callback_forge": 1})
    await receiver.until(lambda: receiver.words().count("done") == 24)
    forged = [notice for verdict, notice in receiver.notices if verdict != "genuine"]
    assert [notice["status"] for notice in forged] == ["failed"] * 24
    assert {verdict for verdict, _ in receiver.notices} == {"genuine", "forged", "none"}


async def test_an_early_callback_comes_before_the_answer(upstream: Upstream, receiver: Receiver) -> None:
    slow_but_early = {"callback_early": 1, "latency_s": [60, 60]}
    await upstream.submit("callback", callback_url=receiver.url, lab=slow_but_early)
    assert receiver.words() == ["running", "done"]
