"""What a declaration can say of what is read: results, states, single pictures, waits, lists."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import UpdateStatus
from safelight.errors import (
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    SubmissionUncertain,
)
from tests.providers.sketches import ATTEMPT, provider
from tests.providers.upstream import Upstream, submission

RESULT = """
[result]
path = "/v1/jobs/{provider_ref}/result"
[result.answer]
status_if_absent = "succeeded"
[result.answer.outputs]
items = "pictures"
url = "@"
[errors]
code = "detail[0].type"
[[errors.rules]]
phases = ["result"]
equals = ["content_policy_violation"]
outcome = "content_blocked"
ends_task = true
[[errors.rules]]
equals = ["content_policy_violation"]
outcome = "content_blocked"
"""


async def test_a_second_call_fetches_the_pictures(session: aiohttp.ClientSession, upstream: Upstream) -> None:
    one = provider(session, upstream, RESULT)
    upstream.answers(200, {"id": "j1", "status": "done"})
    upstream.answers(200, {"pictures": ["https://cdn.example/1.png"]})
    update = await one.poll(ATTEMPT)
    assert (update.status, update.upstream_status) == (UpdateStatus.SUCCEEDED, "done")
    assert [output.url for output in update.outputs] == ["https://cdn.example/1.png"]
    assert [asked.path for asked in upstream.asked] == ["/v1/jobs/j1", "/v1/jobs/j1/result"]


async def test_the_second_call_may_say_that_the_task_failed(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, RESULT)
    upstream.answers(200, {"id": "j1", "status": "done"})
    upstream.answers(422, {"detail": [{"type": "content_policy_violation"}]})
    update = await one.poll(ATTEMPT)
    assert update.status is UpdateStatus.BLOCKED
    assert update.failure == Failure(FailureClass.CONTENT_BLOCKED, "content_blocked")


async def test_an_error_of_the_second_call_says_nothing_about_the_task(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, RESULT)
    upstream.answers(200, {"id": "j1", "status": "done"})
    upstream.answers(503, b"<html>")
    with pytest.raises(ProviderError):
        await one.poll(ATTEMPT)


async def test_an_error_answer_to_a_poll_ends_the_task_only_by_a_rule_that_says_so(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, RESULT)
    upstream.answers(422, {"detail": [{"type": "content_policy_violation"}]})
    with pytest.raises(ProviderError):
        await one.poll(ATTEMPT)


BY_HTTP = """
[poll]
path = "/v1/results/{provider_ref}"
accepted = [200, 202]
[poll.answer]
statuses_by_http = [{ status = 202, means = "running" }, { status = 200, means = "succeeded" }]
outputs = { items = "@", base64 = "image" }
"""


@pytest.mark.parametrize(
    ("status", "body", "means", "count"),
    [
        (202, {"id": "j1"}, UpdateStatus.RUNNING, 0),
        (200, {"id": "j1", "image": "cG5n"}, UpdateStatus.SUCCEEDED, 1),
    ],
)
async def test_the_state_may_be_in_the_status_of_the_answer(
    session: aiohttp.ClientSession,
    upstream: Upstream,
    status: int,
    body: dict[str, Any],
    means: UpdateStatus,
    count: int,
) -> None:
    upstream.answers(status, body)
    update = await provider(session, upstream, BY_HTTP).poll(ATTEMPT)
    assert (update.status, len(update.outputs)) == (means, count)


ITEMS = """
[poll]
path = "/p"
[poll.answer]
record = "output"
decode = ["output.resultJson"]
failed_if = "error"
error_code = "error"
cost = "charged"
refunded = "refunded"
[poll.answer.outputs]
items = "resultJson.results"
url = "url"
error_code = "code"
blocked_if = "is_safe == `false`"
[[failures]]
equals = ["DataInspectionFailed"]
class = "content_blocked"
code = "content_blocked"
[[failures]]
equals = ["BadInput"]
class = "invalid_request"
code = "invalid_request"
"""
URL = {"url": "https://cdn.example/1.png"}


@pytest.mark.parametrize(
    ("items", "status", "count", "failure_class"),
    [
        ([URL, URL], UpdateStatus.SUCCEEDED, 2, None),
        ([URL, {"code": "DataInspectionFailed"}, {"code": "Odd"}], UpdateStatus.SUCCEEDED, 1, None),
        (
            [{"code": "Odd"}, {"code": "DataInspectionFailed"}],
            UpdateStatus.BLOCKED,
            0,
            FailureClass.CONTENT_BLOCKED,
        ),
        ([{"code": "BadInput"}, {"code": "Odd"}], UpdateStatus.FAILED, 0, FailureClass.INVALID_REQUEST),
        ([{"code": "Odd"}], UpdateStatus.FAILED, 0, FailureClass.UPSTREAM_FAULT),
        ([{"url": "", "is_safe": False}], UpdateStatus.BLOCKED, 0, FailureClass.CONTENT_BLOCKED),
        ([{"url": "https://cdn.example/x.png", "is_safe": False}, URL], UpdateStatus.SUCCEEDED, 1, None),
        ([], UpdateStatus.SUCCEEDED, 0, None),
    ],
)
async def test_pictures_that_failed_singly_are_told_apart(
    session: aiohttp.ClientSession,
    upstream: Upstream,
    items: list[dict[str, Any]],
    status: UpdateStatus,
    count: int,
    failure_class: FailureClass | None,
) -> None:
    inner = json.dumps({"results": items})
    upstream.answers(
        200, {"output": {"id": "j1", "status": "done", "resultJson": inner, "charged": 5, "refunded": "2"}}
    )
    update = await provider(session, upstream, ITEMS).poll(ATTEMPT)
    assert (update.status, len(update.outputs)) == (status, count)
    assert (update.failure.failure_class if update.failure else None) == failure_class
    assert update.cost == 3


async def test_a_condition_overrules_the_word(session: aiohttp.ClientSession, upstream: Upstream) -> None:
    upstream.answers(
        200, {"output": {"id": "j1", "status": "done", "error": "DataInspectionFailed", "resultJson": None}}
    )
    update = await provider(session, upstream, ITEMS).poll(ATTEMPT)
    assert update.status is UpdateStatus.BLOCKED


@pytest.mark.parametrize("bad", ["not json", '{"a": NaN}', '"text"', "[" * 100_000, "\ud800"])
async def test_json_in_json_that_is_none_says_nothing(
    session: aiohttp.ClientSession, upstream: Upstream, bad: str
) -> None:
    upstream.answers(200, {"output": {"id": "j1", "status": "done", "resultJson": bad}})
    with pytest.raises(ProviderError, match="unreadably"):
        await provider(session, upstream, ITEMS).poll(ATTEMPT)


WAITS = """
[errors]
code = "error.code"
takes_text = true
retry_after_ms_header = "retry-after-ms"
retry_after = "error.details[?retryDelay].retryDelay | [0]"
[[errors.rules]]
path = "text"
regex = "unauthorized"
outcome = "credentials"
[[errors.rules]]
equals = ["JobNumExceed"]
status = [200, 429]
outcome = "concurrency_limited"
"""


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "7"}, {"error": {"code": "x"}}, 7.0),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, {"error": {"code": "x"}}, 1.5),
        ({"retry-after-ms": "soon", "Retry-After": "9"}, {"error": {"code": "x"}}, 9.0),
        ({}, {"error": {"code": "x", "details": [{"a": 1}, {"retryDelay": "55s"}]}}, 55.0),
        ({}, {"error": {"code": "x", "details": [{"retryDelay": 3}]}}, 3.0),
        ({}, {"error": {"code": "x", "details": [{"retryDelay": "1h"}]}}, None),
        ({}, {"error": {"code": "x"}}, None),
    ],
)
async def test_every_way_to_say_how_long_to_wait_is_read(
    session: aiohttp.ClientSession,
    upstream: Upstream,
    headers: dict[str, str],
    body: dict[str, Any],
    seconds: float | None,
) -> None:
    upstream.answers(429, body, headers)
    with pytest.raises(ProviderUnavailable) as raised:
        await provider(session, upstream, WAITS).submit(submission())
    assert (raised.value.reason, raised.value.retry_after_s) == ("rate_limited", seconds)


async def test_too_many_at_once_closes_the_gate_like_a_rate(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    upstream.answers(200, {"error": {"code": "JobNumExceed"}})
    with pytest.raises(ProviderUnavailable) as raised:
        await provider(session, upstream, WAITS).submit(submission())
    assert raised.value.reason == "rate_limited"


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, b"request unauthorized", ProviderUnavailable),
        (404, b"no such style", ProviderRefused),
        (404, b"<html>not found</html>", SubmissionUncertain),
        (502, b"bad gateway", SubmissionUncertain),
        (404, b"", SubmissionUncertain),
        (404, b"\xff\xfe", SubmissionUncertain),
    ],
)
async def test_an_upstream_that_speaks_plain_text_is_understood_and_a_gateway_is_not(
    session: aiohttp.ClientSession, upstream: Upstream, status: int, body: bytes, error: type[ProviderError]
) -> None:
    upstream.answers(status, body)
    with pytest.raises(error):
        await provider(session, upstream, WAITS).submit(submission())


def listing(words: str) -> str:
    return (
        f'[list]\npath = "/v1/jobs"\nrecords = "items"\nlimit = 2\n{words}\n'
        '[list.answer]\ncreated_at = "at"\n[list.query]\npage = "{page}"\noffset = "{offset}"\nsize = "{limit}"\n'
    )


SINCE = datetime(2026, 11, 1, tzinfo=UTC)


def line(number: int, *, hours: float) -> dict[str, Any]:
    moment = SINCE + timedelta(hours=hours)
    return {"id": f"j{number}", "status": "done", "at": moment.timestamp()}


@pytest.mark.parametrize(
    ("words", "queries"),
    [
        ('paging = "page"', [{"page": "1", "size": "2"}, {"page": "2", "size": "2"}]),
        ('paging = "page"\nfirst_page = 0', [{"page": "0", "size": "2"}, {"page": "1", "size": "2"}]),
        ('paging = "offset"', [{"offset": "0", "size": "2"}, {"offset": "2", "size": "2"}]),
    ],
)
async def test_a_list_is_read_by_page_or_offset_until_a_page_is_not_full(
    session: aiohttp.ClientSession, upstream: Upstream, words: str, queries: list[dict[str, str]]
) -> None:
    one = provider(session, upstream, listing(words))
    upstream.answers(200, json.dumps([line(1, hours=1), line(2, hours=2)]).encode())
    upstream.answers(200, json.dumps([line(3, hours=3)]).encode())
    first = await one.list_records(SINCE, SINCE + timedelta(days=1), None)
    second = await one.list_records(SINCE, SINCE + timedelta(days=1), first.next_cursor)
    assert [record.provider_ref for page in (first, second) for record in page.records] == ["j1", "j2", "j3"]
    assert second.next_cursor is None
    assert [asked.query for asked in upstream.asked] == queries


async def test_a_list_that_begins_with_the_newest_ends_before_the_window(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, listing('paging = "page"\nnewest_first = true'))
    upstream.answers(200, json.dumps([line(1, hours=1), line(2, hours=-1)]).encode())
    page = await one.list_records(SINCE, SINCE + timedelta(days=1), None)
    assert ([record.provider_ref for record in page.records], page.next_cursor) == (["j1"], None)


async def test_a_list_may_say_whether_there_is_more(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, listing('paging = "offset"\nhas_more = "more"'))
    upstream.answers(200, {"items": [line(1, hours=1)], "more": True})
    assert (await one.list_records(SINCE, SINCE + timedelta(days=1), None)).next_cursor == "1"
    upstream.answers(200, {"items": [line(1, hours=1), line(2, hours=2)], "more": False})
    await one.list_records(SINCE, SINCE + timedelta(days=1), "0")
    assert (await one.list_records(SINCE, SINCE + timedelta(days=1), "0")).next_cursor is None
