"""The three shapes, behaving."""

import asyncio
import base64
import io
import re
from typing import Any

import pytest
from PIL import Image

from tests.lab.upstream import Receiver, Upstream


async def test_the_sync_shape_answers_with_the_pictures(upstream: Upstream) -> None:
    status, body = await upstream.submit("sync", n=2, size="96x128")
    assert (status, body["status"], body["cost"], body["reference"]) == (200, "done", 2, "ref-1")
    assert re.fullmatch(r"syn_[A-Za-z0-9]{20}", body["id"])
    pictures = [base64.b64decode(image["b64"]) for image in body["images"]]
    assert [Image.open(io.BytesIO(picture)).size for picture in pictures] == [(96, 128)] * 2


async def test_the_same_key_and_body_get_the_very_same_answer_and_one_bill(upstream: Upstream) -> None:
    slow = {"lab": {"latency_s": [0.2, 0.2]}, "headers": {"Idempotency-Key": "k"}}
    answers = await asyncio.gather(*(upstream.submit("sync", **dict(slow)) for _ in range(5)))
    again = await upstream.submit("sync", **dict(slow))
    assert all(answer == again for answer in answers)
    ledger = await upstream.ledger()
    assert (ledger["accepted"], ledger["billed"]) == (1, 1)


async def test_the_same_key_with_another_body_is_a_conflict(upstream: Upstream) -> None:
    await upstream.submit("sync", headers={"Idempotency-Key": "k"})
    status, body = await upstream.submit("sync", prompt="other", headers={"Idempotency-Key": "k"})
    assert (status, body["error"]["code"]) == (409, "idempotency_conflict")


async def test_a_poll_job_goes_from_queued_over_running_to_done(upstream: Upstream) -> None:
    status, job = await upstream.submit(lab={"latency_s": [0.4, 0.4]}, n=3)
    assert (status, job["status"]) == (202, "queued")
    seen: list[dict[str, Any]] = []
    while not seen or seen[-1]["finished_at"] is None:
        seen.append((await upstream.call("GET", f"/poll/v1/jobs/{job['id']}"))[1])
        await asyncio.sleep(0.01)
    assert list(dict.fromkeys(record["status"] for record in seen)) == ["queued", "running", "done"]
    assert (seen[0]["position"], seen[0]["images"], seen[0]["cost"]) == (1, [], 0)
    assert [record["progress"] for record in seen] == sorted(record["progress"] for record in seen)
    assert (seen[-1]["progress"], seen[-1]["cost"], seen[-1]["run_s"]) == (100, 3, 0.4)
    async with upstream.session.get(seen[-1]["images"][2]["url"]) as answer:
        picture = await answer.read()
        assert (answer.content_type, answer.content_length) == ("image/png", len(picture))
    Image.open(io.BytesIO(picture)).verify()


async def test_a_poll_job_is_found_by_reference_and_a_second_submit_is_a_second_job(
    upstream: Upstream,
) -> None:
    first, second = (await upstream.submit())[1], (await upstream.submit())[1]
    _, body = await upstream.call("GET", "/poll/v1/jobs?reference=ref-1")
    assert [job["id"] for job in body["jobs"]] == [first["id"], second["id"]]
    assert (await upstream.ledger())["items"][0]["times_accepted"] == 2
    assert (await upstream.call("GET", "/poll/v1/jobs?reference=none"))[1] == {"jobs": []}


async def test_the_callback_shape_has_no_look_up_by_reference(upstream: Upstream) -> None:
    status, body = await upstream.call("GET", "/callback/v1/jobs?reference=ref-1")
    assert (status, body["error"]["code"]) == (400, "invalid_request")


async def test_notices_are_signed_and_say_what_a_poll_says(upstream: Upstream, receiver: Receiver) -> None:
    status, job = await upstream.submit("callback", callback_url=receiver.url)
    assert (status, job["id"][:4]) == (201, "cal_")
    await receiver.until(lambda: len(receiver.notices) == 2)
    assert receiver.words() == ["running", "done"]
    notice, record = receiver.notices[1][1], await upstream.finished(job["id"], "callback")
    assert notice.pop("sent_at") > 0
    assert notice.pop("images") != record.pop("images")
    assert notice == record


async def test_a_refused_notice_is_sent_again(upstream: Upstream, receiver: Receiver) -> None:
    receiver.statuses_to_answer = [204, 500]
    await upstream.submit("callback", callback_url=receiver.url)
    await receiver.until(lambda: len(receiver.notices) == 3)
    assert receiver.words() == ["running", "done", "done"]


async def test_a_window_is_listed_in_pages_in_order_of_acceptance(upstream: Upstream) -> None:
    ids = [(await upstream.submit(reference=f"r{number}"))[1]["id"] for number in range(7)]
    found: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        _, page = await upstream.call("GET", f"/poll/v1/jobs?limit=3&after={after}")
        found += page["jobs"]
        after = page["next"]
    assert [job["id"] for job in found] == ids
    since, until = found[2]["created_at"], found[5]["created_at"]
    _, page = await upstream.call("GET", f"/poll/v1/jobs?since={since!r}&until={until!r}")
    assert ([job["id"] for job in page["jobs"]], page["next"]) == (ids[2:5], None)
    assert (await upstream.call("GET", "/callback/v1/jobs"))[1] == {"jobs": [], "next": None}


async def test_an_open_job_can_be_canceled_and_a_finished_one_cannot(
    upstream: Upstream, receiver: Receiver
) -> None:
    slow = {"latency_s": [60, 60]}
    _, job = await upstream.submit("callback", callback_url=receiver.url, lab=slow)
    status, record = await upstream.call("POST", f"/callback/v1/jobs/{job['id']}/cancel")
    assert (status, record["status"], record["cost"]) == (200, "canceled", 0)
    await receiver.until(lambda: receiver.words() == ["canceled"])
    status, body = await upstream.call("POST", f"/callback/v1/jobs/{job['id']}/cancel")
    assert (status, body["error"]["code"]) == (409, "already_finished")
    assert (await upstream.ledger())["items"][0]["outcome"] == "canceled"


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "  "},
        {"n": 0},
        {"n": 11},
        {"n": True},
        {"size": "63x64"},
        {"size": "64x2049"},
        {"size": "big"},
        {"reference": ""},
        {"surprise": 1},
        {"callback_url": "http://x/"},
        {"images": ["ftp://x"]},
        {"lab": {"nonsense": 1}},
        {"lab": {"fail": 2}},
    ],
)
async def test_a_bad_submit_is_refused_and_not_accepted(upstream: Upstream, fields: dict[str, Any]) -> None:
    status, body = await upstream.submit(**fields)
    assert (status, body["error"]["code"]) == (400, "invalid_request")
    assert (await upstream.ledger())["accepted"] == 0


async def test_without_the_key_nothing_is_told(upstream: Upstream) -> None:
    for path in ("/poll/v1/jobs", "/callback/v1/jobs/cal_x"):
        status, body = await upstream.call("GET", path, headers={"Authorization": "Bearer näh"})
        assert (status, body["error"]["code"]) == (401, "unauthorized")


async def test_unknown_ids_and_paths_are_not_found(upstream: Upstream) -> None:
    for path in ("/poll/v1/jobs/pol_x", "/results/abc", "/results/%F0%9F%99%82", "/nowhere"):
        status, body = await upstream.call("GET", path)
        assert (status, body["error"]["code"]) == (404, "not_found")
