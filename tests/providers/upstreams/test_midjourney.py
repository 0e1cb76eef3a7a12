"""midjourney-proxy: codes in a 200, parameters in the prompt, our reference in its list."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import Trust, UpdateStatus
from safelight.errors import ProviderError
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    JPEG_BASE64,
    KEY,
    PNG,
    PNG_BASE64,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

SUBMITTED_MS = 1_795_000_000_250
TAKEN = {"code": 1, "description": "ok", "result": "1795000000250123", "properties": {}}


def record(status: str, **more: Any) -> dict[str, Any]:
    told = {"id": "j1", "action": "IMAGINE", "state": "t1-1", "progress": "42%", "submitTime": SUBMITTED_MS}
    return {**told, "status": status, "imageUrl": None, "failReason": None, **more}


@pytest.fixture
def proxy(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    return Asker("midjourney", session, upstream)


async def test_everything_that_is_wished_stands_in_the_prompt(proxy: Asker) -> None:
    wishes = {"aspect_ratio": "16:9", "options": {"seed": 7, "negative_prompt": "rain"}}
    update = await proxy.submits(200, TAKEN, callback_url=proxy.callback_url, **wishes)
    asked = proxy.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/mj/submit/imagine")
    assert asked.headers["mj-api-secret"] == KEY
    assert asked.body == {
        "prompt": "a fox --ar 16:9 --no rain --seed 7",
        "state": "t1-1",
        "notifyHook": proxy.callback_url,
    }
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "1795000000250123")


async def test_pictures_travel_as_data_urls(proxy: Asker) -> None:
    body = await proxy.sends(200, TAKEN, operation="edit", images=[PNG, JPEG])
    assert body["prompt"] == "a fox"
    assert body["base64Array"] == [
        f"data:image/png;base64,{PNG_BASE64}",
        f"data:image/jpeg;base64,{JPEG_BASE64}",
    ]


async def test_a_proxy_without_a_secret_is_asked_without_one(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    await Asker("midjourney", session, upstream, credentials={}).submits(200, TAKEN)
    assert "mj-api-secret" not in upstream.asked[0].headers


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (1, "accepted"),
        (22, "accepted"),
        (3, REFUSED_FAULT),
        (4, REFUSED_INPUT),
        (9, REFUSED_FAULT),
        (23, TOO_FAST),
        (24, REFUSED_CONTENT),
        (99, "uncertain"),
    ],
)
async def test_the_code_decides_and_not_the_status(proxy: Asker, code: int, outcome: str) -> None:
    assert await proxy.refuses(200, {**TAKEN, "code": code}) == outcome


@pytest.mark.parametrize(("status", "body", "outcome"), [(401, b"", BAD_KEY), (502, HTML, "uncertain")])
async def test_answers_without_a_code(proxy: Asker, status: int, body: bytes, outcome: str) -> None:
    assert await proxy.refuses(status, body) == outcome


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("NOT_START", "queued"),
        ("SUBMITTED", "queued"),
        ("IN_PROGRESS", "running"),
        ("CANCEL", "canceled"),
        ("MODAL", "running"),
    ],
)
async def test_a_look_reads_state_and_progress_and_no_preview(proxy: Asker, word: str, status: str) -> None:
    update = await proxy.polls(200, record(word, imageUrl="https://discord/preview"))
    assert (update.status, update.percent, update.outputs) == (status, 42, ())
    assert proxy.upstream.asked[0].path == "/mj/task/j1/fetch"


async def test_a_grid_is_one_picture(proxy: Asker) -> None:
    update = await proxy.polls(200, record("SUCCESS", progress="100%", imageUrl="https://discord/grid.png"))
    assert urls_of(update) == ["https://discord/grid.png"]


@pytest.mark.parametrize(
    ("reason", "failure_class"),
    [
        ("[Banned prompt] a word is not allowed", FailureClass.CONTENT_BLOCKED),
        ("[Pending mod message] wait", FailureClass.CONTENT_BLOCKED),
        ("[Invalid link] could not fetch", FailureClass.INVALID_REQUEST),
        ("任务超时", FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_why_a_task_has_failed_stands_in_a_title(
    proxy: Asker, reason: str, failure_class: FailureClass
) -> None:
    update = await proxy.polls(200, record("FAILURE", failReason=reason))
    assert update.failure is not None
    assert update.failure.failure_class is failure_class


@pytest.mark.parametrize("body", [b"", b"null"])
async def test_an_unknown_id_says_nothing_about_the_task(proxy: Asker, body: bytes) -> None:
    assert await proxy.poll_fails(200, body) == "nothing"


async def test_a_lost_submit_is_found_in_the_list_by_our_reference(proxy: Asker) -> None:
    found = [record("SUCCESS", id="other", state="t9-1"), record("IN_PROGRESS")]
    proxy.upstream.answers(200, json.dumps(found).encode())
    update = await proxy.provider.look_up(proxy.attempt(None))
    assert update is not None
    assert (update.provider_ref, update.status) == ("j1", UpdateStatus.RUNNING)
    assert proxy.upstream.asked[0].path == "/mj/task/list"


async def test_only_a_whole_list_without_it_proves_that_nothing_was_taken(proxy: Asker) -> None:
    proxy.upstream.answers(200, b"[]")
    proxy.upstream.answers(404, {"error": "a relay without a list"})
    assert await proxy.provider.look_up(proxy.attempt(None)) is None
    with pytest.raises(ProviderError):
        await proxy.provider.look_up(proxy.attempt(None))


async def test_the_list_is_one_page(proxy: Asker) -> None:
    since = datetime.fromtimestamp(SUBMITTED_MS / 1000, UTC) - timedelta(hours=1)
    proxy.upstream.answers(200, json.dumps([record("SUCCESS"), record("FAILURE", id="j2")]).encode())
    page = await proxy.provider.list_records(since, since + timedelta(days=1), None)
    assert [line.provider_ref for line in page.records] == ["j1", "j2"]
    assert page.next_cursor is None


async def test_a_callback_is_the_record_and_only_a_hint(proxy: Asker) -> None:
    raw = json.dumps(record("SUCCESS", imageUrl="https://discord/grid.png")).encode()
    await proxy.provider.verify_callback([], raw)
    assert proxy.provider.read_callback(raw).provider_ref == "j1"
    assert proxy.provider.capabilities.trust is Trust.HINT
