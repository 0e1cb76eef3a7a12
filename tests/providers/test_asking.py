"""What polls, look-ups, lists and cancels say, and what they never say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
import structlog
from structlog.testing import capture_logs

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import AttemptRef, Origin, Output, UpdateStatus
from safelight.errors import ProviderError, ProviderUnavailable
from safelight.providers.answers import UNKNOWN_STATUSES
from tests.providers.upstream import ATTEMPT, Upstream, error, provider_of, record

SINCE = datetime.fromtimestamp(1_795_000_000, UTC)
UNTIL = SINCE + timedelta(hours=1)


async def polled(upstream: Upstream, session: aiohttp.ClientSession, **changes: Any) -> Any:
    upstream.answers(200, record(**changes))
    return await provider_of("lab-poll", session, upstream.base_url).poll(ATTEMPT)


async def test_a_poll_asks_by_the_provider_ref(upstream: Upstream, session: aiohttp.ClientSession) -> None:
    update = await polled(upstream, session, position=3)
    asked = upstream.asked[0]
    assert (asked.method, asked.path, asked.raw) == ("GET", "/poll/v1/jobs/j1", b"")
    assert asked.headers["authorization"] == "Bearer canary-key-71f3"
    assert (update.status, update.origin, update.percent) == (UpdateStatus.RUNNING, Origin.POLL, 40)
    assert (update.provider_ref, update.position) == ("j1", 3)


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("queued", UpdateStatus.QUEUED),
        ("running", UpdateStatus.RUNNING),
        ("done", UpdateStatus.SUCCEEDED),
        ("failed", UpdateStatus.FAILED),
        ("blocked", UpdateStatus.BLOCKED),
        ("canceled", UpdateStatus.CANCELED),
        (" DONE ", UpdateStatus.SUCCEEDED),
        ("do", UpdateStatus.RUNNING),
        ("done_with_errors", UpdateStatus.RUNNING),
    ],
)
async def test_a_status_is_a_whole_word_whatever_its_case(
    upstream: Upstream, session: aiohttp.ClientSession, word: str, status: UpdateStatus
) -> None:
    assert (await polled(upstream, session, status=word)).status is status


async def test_a_finished_record_gives_its_pictures_time_and_cost(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    images = [{"url": "https://lab.example/1.png"}, {"url": None}, {"url": "data:image/png;base64,YWJj"}]
    update = await polled(upstream, session, status="done", images=images, run_s=3.5, cost=2, progress=100)
    assert update.outputs == (Output(url="https://lab.example/1.png"), Output(data=b"abc"))
    assert (update.run_s, update.cost, update.percent, update.failure) == (3.5, 2.0, 100, None)


async def test_pictures_of_an_unfinished_record_are_previews_and_left_alone(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    update = await polled(upstream, session, images=[{"url": "https://lab.example/preview.png"}])
    assert update.outputs == ()


async def test_an_unknown_word_keeps_the_task_running_and_is_told_once(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    before = UNKNOWN_STATUSES.labels("lab-poll")._value.get()
    upstream.answers(200, record(status="dreaming\n\x1b[31m"))
    provider = provider_of("lab-poll", session, upstream.base_url)
    structlog.reset_defaults()
    with capture_logs() as lines:
        first, second = await provider.poll(ATTEMPT), await provider.poll(ATTEMPT)
    assert (first.status, first.upstream_status) == (UpdateStatus.RUNNING, "dreaming [31m")
    assert second == first
    assert [(line["event"], line["log_level"], line["upstream_status"]) for line in lines] == [
        ("unknown_upstream_status", "warning", "dreaming [31m")
    ]
    assert UNKNOWN_STATUSES.labels("lab-poll")._value.get() == before + 2


@pytest.mark.parametrize(
    ("status", "upstream_error", "failure", "excerpt"),
    [
        ("failed", None, Failure(FailureClass.UPSTREAM_FAULT, "generation_failed"), ""),
        (
            "failed",
            {"code": "content_blocked", "message": "no\x00 foxes"},
            Failure(FailureClass.CONTENT_BLOCKED, "content_blocked"),
            "no foxes",
        ),
        (
            "failed",
            {"code": "invalid_request", "message": "x" * 400},
            Failure(FailureClass.INVALID_REQUEST, "invalid_request"),
            "[bytes]",
        ),
        (
            "failed",
            {"code": "<b>surprise</b>", "message": "word " * 100},
            Failure(FailureClass.UPSTREAM_FAULT, "generation_failed"),
            ("word " * 60),
        ),
        ("failed", {"code": 7, "message": 8}, Failure(FailureClass.UPSTREAM_FAULT, "generation_failed"), ""),
        ("blocked", None, Failure(FailureClass.CONTENT_BLOCKED, "content_blocked"), ""),
        ("canceled", None, None, ""),
    ],
)
async def test_a_failure_has_our_code_and_the_upstreams_cleaned_words(
    upstream: Upstream,
    session: aiohttp.ClientSession,
    status: str,
    upstream_error: Any,
    failure: Failure | None,
    excerpt: str,
) -> None:
    update = await polled(upstream, session, status=status, error=upstream_error)
    assert (update.failure, update.excerpt) == (failure, excerpt)


@pytest.mark.parametrize(
    ("status", "body", "kind", "reason"),
    [
        (404, error("not_found"), ProviderError, None),
        (400, error("content_blocked"), ProviderError, None),
        (500, error("generation_failed"), ProviderError, None),
        (502, b"<html>", ProviderError, None),
        (200, b"<html>challenge</html>", ProviderError, None),
        (200, b"", ProviderError, None),
        (204, b"", ProviderError, None),
        (301, b"", ProviderError, None),
        (200, b"{}", ProviderError, None),
        (200, record(status=None), ProviderError, None),
        (200, record(status=""), ProviderError, None),
        (200, record(status=["done"]), ProviderError, None),
        (200, record(id="j2"), ProviderError, None),
        (200, record(reference="t2-1"), ProviderError, None),
        (200, record(status="done", images=[{"url": "file:///etc/passwd"}]), ProviderError, None),
        (200, record(status="done", images=[{"url": 7}]), ProviderError, None),
        (200, b'{"status": "failed", "id": "j1", "status": "done"}', ProviderError, None),
        (401, error("unauthorized"), ProviderUnavailable, "credentials"),
        (402, error("insufficient_funds"), ProviderUnavailable, "funds"),
        (429, error("rate_limited"), ProviderUnavailable, "rate_limited"),
    ],
)
async def test_a_poll_error_never_means_failed(
    upstream: Upstream,
    session: aiohttp.ClientSession,
    status: int,
    body: Any,
    kind: type[ProviderError],
    reason: str | None,
) -> None:
    upstream.answers(status, body)
    with pytest.raises(ProviderError) as raised:
        await provider_of("lab-poll", session, upstream.base_url).poll(ATTEMPT)
    assert type(raised.value) is kind
    assert getattr(raised.value, "reason", None) == reason


@pytest.mark.parametrize("provider_ref", ["a/b", "x y"])
async def test_a_provider_ref_cannot_leave_its_place_in_the_path(
    upstream: Upstream, session: aiohttp.ClientSession, provider_ref: str
) -> None:
    upstream.answers(404, error("not_found"))
    attempt = AttemptRef("t1-1", provider_ref, "lab-poll", "generate")
    with pytest.raises(ProviderError):
        await provider_of("lab-poll", session, upstream.base_url).poll(attempt)
    assert upstream.asked[0].path == f"/poll/v1/jobs/{provider_ref}"


async def test_what_a_provider_does_not_declare_it_does_not_do(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    synchronous = provider_of("lab-sync", session, upstream.base_url)
    with pytest.raises(ProviderError, match="declares no poll"):
        await synchronous.poll(ATTEMPT)
    with pytest.raises(ProviderError, match="declares no look_up"):
        await provider_of("lab-callback", session, upstream.base_url).look_up(ATTEMPT)
    with pytest.raises(ProviderError, match="provider_ref"):
        await provider_of("lab-poll", session, upstream.base_url).poll(
            AttemptRef("t1-1", None, "lab-poll", "generate")
        )
    assert upstream.asked == []


async def test_a_look_up_finds_the_attempt_by_our_reference(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    upstream.answers(200, {"jobs": [record(id="j7", reference="t7-1"), record(id="j9")]})
    found = await provider_of("lab-poll", session, upstream.base_url).look_up(
        AttemptRef("t1-1", None, "lab-poll", "generate")
    )
    assert (upstream.asked[0].path, upstream.asked[0].query) == ("/poll/v1/jobs", {"reference": "t1-1"})
    assert found is not None
    assert (found.provider_ref, found.status, found.origin) == ("j9", UpdateStatus.RUNNING, Origin.LOOK_UP)


@pytest.mark.parametrize("jobs", [[], [record(reference="t10-1")], [record(reference=None)]])
async def test_a_look_up_among_strangers_finds_nothing(
    upstream: Upstream, session: aiohttp.ClientSession, jobs: list[Any]
) -> None:
    upstream.answers(200, {"jobs": jobs})
    assert await provider_of("lab-poll", session, upstream.base_url).look_up(ATTEMPT) is None


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, error("not_found")),
        (200, b"{}"),
        (200, {"jobs": None}),
        (200, {"jobs": [1]}),
        (200, {"jobs": [record(id=None)]}),
        (500, b""),
    ],
)
async def test_a_look_up_without_a_usable_answer_is_not_a_no(
    upstream: Upstream, session: aiohttp.ClientSession, status: int, body: Any
) -> None:
    upstream.answers(status, body)
    with pytest.raises(ProviderError):
        await provider_of("lab-poll", session, upstream.base_url).look_up(ATTEMPT)


@pytest.mark.parametrize(
    ("status", "body", "is_canceled"),
    [
        (200, record(status="canceled"), True),
        (200, record(status="done"), False),
        (200, record(status="running"), False),
        (409, error("not_cancelable"), False),
        (404, error("not_found"), False),
    ],
)
async def test_a_cancel_is_true_only_if_the_answer_says_so(
    upstream: Upstream, session: aiohttp.ClientSession, status: int, body: Any, is_canceled: bool
) -> None:
    upstream.answers(status, body)
    assert await provider_of("lab-poll", session, upstream.base_url).cancel(ATTEMPT) is is_canceled
    assert (upstream.asked[0].method, upstream.asked[0].path) == ("POST", "/poll/v1/jobs/j1/cancel")


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"ok"), (200, b"{}"), (409, b"<html>"), (500, b""), (429, error("rate_limited"))],
)
async def test_a_cancel_without_a_usable_answer_is_an_error(
    upstream: Upstream, session: aiohttp.ClientSession, status: int, body: Any
) -> None:
    upstream.answers(status, body)
    with pytest.raises(ProviderError):
        await provider_of("lab-poll", session, upstream.base_url).cancel(ATTEMPT)


async def test_a_list_goes_page_by_page_through_a_half_open_window(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    inside = record(id="j1", status="done", created_at=SINCE.timestamp())
    late = record(id="j2", created_at=UNTIL.timestamp())
    upstream.answers(200, {"jobs": [inside, late], "next": "j2"})
    upstream.answers(200, {"jobs": [], "next": None})
    provider = provider_of("lab-callback", session, upstream.base_url)
    first = await provider.list_records(SINCE, UNTIL, None)
    last = await provider.list_records(SINCE, UNTIL, first.next_cursor)
    (line,) = first.records
    assert (line.provider_ref, line.reference, line.created_at) == ("j1", "t1-1", SINCE)
    assert (line.update.status, line.update.origin) == (UpdateStatus.SUCCEEDED, Origin.RECONCILIATION)
    assert (first.next_cursor, last.records, last.next_cursor) == ("j2", (), None)
    window = {"since": "1795000000.0", "until": "1795003600.0", "limit": "100"}
    assert [asked.query for asked in upstream.asked] == [window, {**window, "after": "j2"}]


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        {"jobs": [record(created_at=None)], "next": None},
        {"jobs": [record(created_at="yesterday")], "next": None},
        {"jobs": [record(created_at=1e300)], "next": None},
        {"jobs": [record(), record(id=None)], "next": None},
        {"jobs": [], "next": {"id": 1}},
        {"jobs": [], "next": "same"},
    ],
)
async def test_a_page_with_a_gap_is_no_page(
    upstream: Upstream, session: aiohttp.ClientSession, body: Any
) -> None:
    upstream.answers(200, body)
    with pytest.raises(ProviderError):
        await provider_of("lab-poll", session, upstream.base_url).list_records(SINCE, UNTIL, "same")
