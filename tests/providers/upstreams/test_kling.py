"""Kling: two ways to sign in, money in a 429, a callback that is the bare record."""

from __future__ import annotations

import base64
import hmac
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import Trust, UpdateStatus
from safelight.errors import CallbackRejected, ProviderError
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    ACCESS_KEY,
    BAD_KEY,
    HTML,
    KEY,
    NO_MONEY,
    PNG,
    PNG_BASE64,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    SECRET_KEY,
    TOO_FAST,
    Asker,
    urls_of,
)

SECRET = "whsec_" + base64.b64encode(b"a callback secret of kling").decode()
CREATED_MS = 1_795_000_000_250


def record(status: str, **more: Any) -> dict[str, Any]:
    named = {"task_info": {"external_task_id": "t1-1"}, "created_at": CREATED_MS, "updated_at": CREATED_MS}
    return {"task_id": "j1", "task_status": status, **named, **more}


def answer(data: Any, code: int = 0) -> dict[str, Any]:
    return {"code": code, "message": "its words", "request_id": "r1", "data": data}


@pytest.fixture
def kling(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    return Asker("kling", session, upstream, credentials={"api_key": KEY, "callback_secret": SECRET})


async def test_a_submit_names_our_reference_and_where_to_call_back(kling: Asker) -> None:
    wishes = {"n": 3, "aspect_ratio": "16:9", "options": {"negative_prompt": "rain", "resolution": "2k"}}
    update = await kling.submits(200, answer(record("submitted")), callback_url=kling.callback_url, **wishes)
    asked = kling.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/v1/images/generations")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model_name": "kling-v2-1",
        "prompt": "a fox",
        "negative_prompt": "rain",
        "resolution": "2k",
        "n": 3,
        "aspect_ratio": "16:9",
        "callback_url": kling.callback_url,
        "external_task_id": "t1-1",
    }
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "j1")


async def test_an_edit_carries_its_picture_as_bare_base64(kling: Asker) -> None:
    body = await kling.sends(200, answer(record("submitted")), operation="edit", images=[PNG])
    assert body["image"] == PNG_BASE64


async def test_with_a_pair_of_keys_every_call_has_a_token_of_its_own(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    pair = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
    kling = Asker("kling", session, upstream, credentials=pair)
    await kling.polls(200, answer(record("processing")))
    head, claims, signature = upstream.asked[0].headers["authorization"].removeprefix("Bearer ").split(".")
    digest = hmac.digest(SECRET_KEY.encode(), f"{head}.{claims}".encode(), "sha256")
    assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == signature
    told = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert told["iss"] == ACCESS_KEY
    assert 1790 < told["exp"] - time.time() <= 1800


@pytest.mark.parametrize(
    ("word", "status"),
    [("submitted", "queued"), ("processing", "running"), ("succeed", "succeeded"), ("paused", "running")],
)
async def test_a_look_reads_the_state(kling: Asker, word: str, status: str) -> None:
    update = await kling.polls(200, answer(record(word, task_result={"images": [{"url": "https://k/1"}]})))
    assert update.status == status
    assert kling.upstream.asked[0].path == "/v1/images/generations/j1"


async def test_a_finished_task_has_its_pictures_and_its_cost(kling: Asker) -> None:
    images = [{"index": 0, "url": "https://k/1"}, {"index": 1, "url": "https://k/2"}]
    done = record("succeed", task_result={"images": images}, final_unit_deduction="8")
    update = await kling.polls(200, answer(done))
    assert urls_of(update) == ["https://k/1", "https://k/2"]
    assert update.cost == 8


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("Failure to pass the risk control system", Failure(FailureClass.CONTENT_BLOCKED, "content_blocked")),
        ("internal trouble", Failure(FailureClass.UPSTREAM_FAULT, "generation_failed")),
    ],
)
async def test_why_a_task_has_failed_stands_in_its_text(kling: Asker, text: str, failure: Failure) -> None:
    update = await kling.polls(200, answer(record("failed", task_status_msg=text)))
    assert update.failure == failure


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (401, 1004, BAD_KEY),
        (403, 1103, BAD_KEY),
        (429, 1100, NO_MONEY),
        (429, 1101, NO_MONEY),
        (429, 1102, NO_MONEY),
        (429, 1302, TOO_FAST),
        (429, 1303, TOO_FAST),
        (429, 1304, BAD_KEY),
        (400, 1201, REFUSED_INPUT),
        (404, 1203, REFUSED_INPUT),
        (400, 1300, REFUSED_CONTENT),
        (400, 1301, REFUSED_CONTENT),
        (500, 5000, REFUSED_FAULT),
        (503, 5001, REFUSED_FAULT),
        (504, 5002, "uncertain"),
        (500, 9999, "uncertain"),
        (200, 9999, "uncertain"),
    ],
)
async def test_what_a_refusal_means(kling: Asker, status: int, code: int, outcome: str) -> None:
    assert await kling.refuses(status, answer(None, code)) == outcome


async def test_a_gateways_page_leaves_a_submit_open(kling: Asker) -> None:
    assert await kling.refuses(502, HTML) == "uncertain"


async def test_an_error_never_ends_a_task(kling: Asker) -> None:
    assert await kling.poll_fails(400, answer(None, 1301)) == "nothing"


async def test_a_lost_submit_is_found_by_our_reference(kling: Asker) -> None:
    kling.upstream.answers(200, answer(record("processing")))
    update = await kling.provider.look_up(kling.attempt(None))
    assert update is not None
    assert (update.provider_ref, update.status) == ("j1", UpdateStatus.RUNNING)
    assert kling.upstream.asked[0].path == "/v1/images/generations/t1-1"


async def test_only_an_unknown_reference_proves_that_nothing_was_taken(kling: Asker) -> None:
    kling.upstream.answers(404, answer(None, 1203))
    kling.upstream.answers(200, answer(None))
    assert await kling.provider.look_up(kling.attempt(None)) is None
    with pytest.raises(ProviderError, match="no_records"):
        await kling.provider.look_up(kling.attempt(None))


async def test_the_list_goes_on_page_by_page(kling: Asker) -> None:
    since = datetime.fromtimestamp(CREATED_MS / 1000, UTC) - timedelta(hours=1)
    kling.upstream.answers(200, answer([record("succeed")] * 100))
    kling.upstream.answers(200, answer([]))
    page = await kling.provider.list_records(since, since + timedelta(days=1), None)
    assert (len(page.records), page.next_cursor) == (100, "2")
    assert page.records[0].reference == "t1-1"
    assert kling.upstream.asked[0].query == {"pageNum": "1", "pageSize": "100"}
    last = await kling.provider.list_records(since, since + timedelta(days=1), "2")
    assert last.next_cursor is None


def signed(raw: bytes, secret: str = SECRET) -> list[tuple[bytes, bytes]]:
    moment = str(int(time.time()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"m1.{moment}.".encode() + raw, "sha256")
    proof = b"v1,b2xk v1," + base64.b64encode(digest)
    return [(b"webhook-id", b"m1"), (b"webhook-timestamp", moment.encode()), (b"webhook-signature", proof)]


async def test_a_signed_callback_is_the_record_itself(kling: Asker) -> None:
    raw = json.dumps(record("succeed", task_result={"images": [{"url": "https://k/1"}]})).encode()
    await kling.provider.verify_callback(signed(raw), raw)
    update = kling.provider.read_callback(raw)
    assert kling.provider.capabilities.trust is Trust.BODY
    assert (update.status, update.provider_ref, urls_of(update)) == ("succeeded", "j1", ["https://k/1"])


async def test_a_changed_callback_is_refused(kling: Asker) -> None:
    raw = json.dumps(record("succeed")).encode()
    with pytest.raises(CallbackRejected, match="signature_wrong"):
        await kling.provider.verify_callback(signed(raw), raw + b" ")


async def test_without_a_secret_a_callback_is_a_hint(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    kling = Asker("kling", session, upstream)
    await kling.provider.verify_callback([], b"{}")
    assert kling.provider.capabilities.trust is Trust.HINT
