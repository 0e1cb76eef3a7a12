"""Replicate: predictions, the bare record as callback, pages by an address, moderation in words only."""

from __future__ import annotations

import base64
import hmac
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import Trust, UpdateStatus
from safelight.errors import CallbackRejected, ProviderError
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    KEY,
    NO_MONEY,
    PNG,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

SINCE = datetime(2026, 11, 20, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=1)
SECRET = "whsec_" + base64.b64encode(b"twenty-four bytes secret").decode()
URL = "https://replicate.delivery/xezq/1.webp"


def prediction(**changes: Any) -> dict[str, Any]:
    record = {
        "id": "p1",
        "model": "black-forest-labs/flux-schnell",
        "status": "starting",
        "input": {"prompt": "a fox"},
        "output": None,
        "error": None,
        "metrics": {},
        "created_at": "2026-11-20T10:00:00.123Z",
        "data_removed": False,
    }
    return {**record, **changes}


def problem(status: int, title: str = "Some title") -> dict[str, Any]:
    return {"type": "about:blank", "title": title, "status": status, "detail": "its words"}


@pytest.fixture
def replicate(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    """Replicate with the secret of its callbacks."""
    return Asker("replicate", session, upstream, credentials={"api_key": KEY, "callback_secret": SECRET})


async def test_a_submit_asks_for_the_end_only(replicate: Asker) -> None:
    sent = await replicate.sends(
        201,
        prediction(urls={"get": f"{replicate.upstream.base_url}/predictions/p1"}),
        n=2,
        aspect_ratio="16:9",
        options={"seed": 7, "output_format": "png"},
        callback_url=replicate.callback_url,
    )
    asked = replicate.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/predictions")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert sent == {
        "version": "black-forest-labs/flux-schnell",
        "input": {
            "prompt": "a fox",
            "aspect_ratio": "16:9",
            "num_outputs": 2,
            "seed": 7,
            "output_format": "png",
        },
        "webhook": replicate.callback_url,
        "webhook_events_filter": ["completed"],
    }


async def test_without_an_address_no_events_are_asked_for(replicate: Asker) -> None:
    sent = await replicate.sends(201, prediction())
    assert set(sent) == {"version", "input"}


@pytest.mark.parametrize(
    ("model", "wishes", "given"),
    [
        ("flux-1.1-pro", {"operation": "generate", "aspect_ratio": "3:2"}, {"aspect_ratio": "3:2"}),
        ("flux-kontext-pro", {"images": [PNG]}, {"input_image": PNG.url}),
        ("flux-fill-pro", {"images": [PNG], "mask": JPEG}, {"image": PNG.url, "mask": JPEG.url}),
        ("flux-2-pro", {"images": [PNG, JPEG]}, {"input_images": [PNG.url, JPEG.url]}),
    ],
)
async def test_every_model_has_inputs_of_its_own(
    upstream: Upstream, session: aiohttp.ClientSession, model: str, wishes: Any, given: Any
) -> None:
    replicate = Asker("replicate", session, upstream, model=f"black-forest-labs/{model}")
    sent = await replicate.sends(201, prediction(), **{"operation": "edit", **wishes})
    assert sent["input"] == {"prompt": "a fox", **given}


@pytest.mark.parametrize(
    ("changes", "status", "urls"),
    [
        ({"status": "starting"}, UpdateStatus.QUEUED, []),
        ({"status": "processing", "output": [URL]}, UpdateStatus.RUNNING, []),
        ({"status": "aborted"}, UpdateStatus.RUNNING, []),
        ({"status": "succeeded", "output": [URL, URL]}, UpdateStatus.SUCCEEDED, [URL, URL]),
        ({"status": "succeeded", "output": URL}, UpdateStatus.SUCCEEDED, [URL]),
        ({"status": "succeeded", "output": None, "data_removed": True}, UpdateStatus.SUCCEEDED, []),
        ({"status": "canceled"}, UpdateStatus.CANCELED, []),
    ],
)
async def test_what_a_look_says(
    replicate: Asker, changes: dict[str, Any], status: UpdateStatus, urls: list[str]
) -> None:
    update = await replicate.polls(200, prediction(**changes, metrics={"predict_time": 2.5}), "p1")
    assert (update.status, urls_of(update), update.run_s) == (status, urls, 2.5)
    assert replicate.upstream.asked[0].path == "/predictions/p1"


@pytest.mark.parametrize(
    ("words", "failure_class"),
    [
        (
            "NSFW content detected. Try running it again, or try a different prompt.",
            FailureClass.CONTENT_BLOCKED,
        ),
        ("The input or output was flagged as sensitive. (E005) (abc)", FailureClass.CONTENT_BLOCKED),
        ("All generated images contained NSFW content", FailureClass.CONTENT_BLOCKED),
        ("CUDA out of memory", FailureClass.UPSTREAM_FAULT),
        (None, FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_moderation_is_told_by_its_words(
    replicate: Asker, words: str | None, failure_class: FailureClass
) -> None:
    update = await replicate.polls(200, prediction(status="failed", error=words), "p1")
    assert update.failure is not None
    assert update.failure.failure_class is failure_class


@pytest.mark.parametrize(
    ("http", "body", "word"),
    [
        (422, problem(422), REFUSED_INPUT),
        (404, problem(404), REFUSED_INPUT),
        (401, problem(401, "Unauthenticated"), BAD_KEY),
        (402, problem(402, "Insufficient credit"), NO_MONEY),
        (429, problem(429), TOO_FAST),
        (500, problem(500), "uncertain"),
        (503, problem(503), "uncertain"),
        (502, HTML, "uncertain"),
    ],
)
async def test_what_an_answered_submit_comes_to(replicate: Asker, http: int, body: Any, word: str) -> None:
    assert await replicate.refuses(http, body) == word


async def test_a_list_goes_by_the_cursor_in_the_next_pages_address(replicate: Asker) -> None:
    address = "https://api.replicate.com/v1/predictions?created_after=2026-11-20&cursor=cD0yMDI2%2B"
    replicate.upstream.answers(200, {"next": address, "previous": None, "results": [prediction()]})
    replicate.upstream.answers(
        200, {"next": None, "results": [prediction(created_at="2026-11-21T00:00:00Z")]}
    )
    first = await replicate.provider.list_records(SINCE, UNTIL, None)
    last = await replicate.provider.list_records(SINCE, UNTIL, first.next_cursor)
    assert [line.provider_ref for line in first.records] == ["p1"]
    assert (last.records, last.next_cursor) == ((), None)
    window = {"created_after": "2026-11-20T00:00:00Z", "created_before": "2026-11-21T00:00:00Z"}
    assert [asked.query for asked in replicate.upstream.asked] == [window, {**window, "cursor": "cD0yMDI2+"}]


@pytest.mark.parametrize(
    "following", ["https://api.replicate.com/v1/predictions", "cD0y", 7, {"cursor": "x"}]
)
async def test_a_next_page_without_a_cursor_spoils_the_list(replicate: Asker, following: Any) -> None:
    replicate.upstream.answers(200, {"next": following, "results": []})
    with pytest.raises(ProviderError):
        await replicate.provider.list_records(SINCE, UNTIL, None)


async def test_a_cancel_is_confirmed_by_the_record(replicate: Asker) -> None:
    replicate.upstream.answers(200, prediction(status="canceled"))
    replicate.upstream.answers(200, prediction(status="succeeded", output=[URL]))
    assert await replicate.provider.cancel(replicate.attempt("p1"))
    assert not await replicate.provider.cancel(replicate.attempt("p1"))
    asked = replicate.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/predictions/p1/cancel")


async def test_a_callback_is_the_bare_record_with_a_standard_signature(replicate: Asker) -> None:
    raw = json.dumps(prediction(status="succeeded", output=[URL])).encode()
    at = b"%d" % time.time()
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    digest = base64.b64encode(hmac.digest(key, b"msg_1." + at + b"." + raw, "sha256"))
    headers = [
        (b"webhook-id", b"msg_1"),
        (b"webhook-timestamp", at),
        (b"webhook-signature", b"v1,bm9uZQ== v1," + digest),
    ]
    await replicate.provider.verify_callback(headers, raw)
    with pytest.raises(CallbackRejected):
        await replicate.provider.verify_callback(headers, raw + b" ")
    update = replicate.provider.read_callback(raw)
    assert (update.provider_ref, update.status, urls_of(update)) == ("p1", UpdateStatus.SUCCEEDED, [URL])
    assert replicate.provider.capabilities.trust is Trust.BODY


async def test_without_the_secret_callbacks_are_hints(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    unsigned = Asker("replicate", session, upstream)
    assert unsigned.provider.capabilities.trust is Trust.HINT
