"""What a submit sends, and what each answer to it means."""

from __future__ import annotations

import base64
from typing import Any

import aiohttp
import pytest

from safelight.domain.provider import InputImage, Origin, Output, UpdateStatus
from safelight.errors import ProviderError, ProviderRefused, ProviderUnavailable, SubmissionUncertain
from tests.providers.upstream import CALLBACK_URL, Upstream, error, provider_of, submission

PICTURE = b"\x89PNG not really"
NAMES = ("lab-sync", "lab-poll", "lab-callback")
HTML = b"<html><body>502 Bad Gateway</body></html>"


def done(**changes: Any) -> dict[str, Any]:
    images = [{"b64": base64.b64encode(PICTURE).decode()}]
    record = {"id": "s1", "reference": "t1-1", "status": "done", "images": images, "cost": 2.5, "run_s": 1.25}
    return {**record, **changes}


async def fails(upstream: Upstream, session: aiohttp.ClientSession, name: str) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await provider_of(name, session, upstream.base_url).submit(submission())
    return raised.value


async def test_a_synchronous_answer_carries_the_pictures(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    upstream.answers(200, done())
    update = await provider_of("lab-sync", session, upstream.base_url).submit(submission())
    assert update.status is UpdateStatus.SUCCEEDED
    assert update.origin is Origin.ANSWER
    assert update.provider_ref == "s1"
    assert update.outputs == (Output(data=PICTURE),)
    assert (update.cost, update.run_s) == (2.5, 1.25)


async def test_the_reference_is_the_idempotency_key(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    upstream.answers(200, done())
    await provider_of("lab-sync", session, upstream.base_url).submit(submission())
    asked = upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/sync/v1/images")
    assert asked.headers["idempotency-key"] == "t1-1"
    assert asked.headers["authorization"] == "Bearer canary-key-71f3"


async def test_what_is_absent_is_left_out_of_the_body(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    upstream.answers(202, {"id": "j1", "status": "queued"})
    await provider_of("lab-poll", session, upstream.base_url).submit(submission(callback_url=CALLBACK_URL))
    assert upstream.asked[0].body == {"prompt": "a fox", "n": 1, "reference": "t1-1"}


async def test_what_is_given_arrives_with_its_type(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    upstream.answers(201, {"id": "j1", "status": "queued"})
    given = submission(
        prompt='{n} "quoted" \U0001f98a \ud800',
        n=3,
        size="256x256",
        images=[InputImage("image/png", b"1"), InputImage("image/png", b"2", "https://a.example/2.png")],
        options={"lab": {"delay_s": 0.5}, "other": 1},
        callback_url=CALLBACK_URL,
    )
    await provider_of("lab-callback", session, upstream.base_url).submit(given)
    assert upstream.asked[0].body == {
        "prompt": '{n} "quoted" \U0001f98a \ud800',
        "n": 3,
        "size": "256x256",
        "reference": "t1-1",
        "images": ["data:image/png;base64,MQ==", "https://a.example/2.png"],
        "lab": {"delay_s": 0.5},
        "callback_url": CALLBACK_URL,
    }


@pytest.mark.parametrize(("name", "status"), [("lab-poll", 202), ("lab-callback", 201)])
async def test_an_acceptance_gives_the_provider_ref(
    upstream: Upstream, session: aiohttp.ClientSession, name: str, status: int
) -> None:
    upstream.answers(status, {"id": "j1", "status": "queued"})
    update = await provider_of(name, session, upstream.base_url).submit(submission())
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "j1")
    assert update.upstream_status == "queued"


async def test_an_acceptance_without_a_status_waits_in_the_upstreams_line(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    upstream.answers(202, {"id": "j1"})
    update = await provider_of("lab-poll", session, upstream.base_url).submit(submission())
    assert update.status is UpdateStatus.QUEUED


async def test_a_number_as_id_keeps_all_its_digits(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    upstream.answers(202, b'{"id": 90071992547409931234567}')
    update = await provider_of("lab-poll", session, upstream.base_url).submit(submission())
    assert update.provider_ref == "90071992547409931234567"


async def test_a_byte_order_mark_does_no_harm(upstream: Upstream, session: aiohttp.ClientSession) -> None:
    upstream.answers(202, b'\xef\xbb\xbf{"id": "j1"}')
    update = await provider_of("lab-poll", session, upstream.base_url).submit(submission())
    assert update.provider_ref == "j1"


async def test_success_without_pictures_stays_a_success(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    upstream.answers(200, done(images=[]))
    update = await provider_of("lab-sync", session, upstream.base_url).submit(submission())
    assert (update.status, update.outputs) == (UpdateStatus.SUCCEEDED, ())


async def test_more_pictures_than_asked_for_are_passed_on(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    upstream.answers(200, done(images=done()["images"] * 3))
    update = await provider_of("lab-sync", session, upstream.base_url).submit(submission(n=2))
    assert update.outputs == (Output(data=PICTURE),) * 3


async def test_a_large_answer_is_read_whole(upstream: Upstream, session: aiohttp.ClientSession) -> None:
    picture = bytes(range(256)) * 12_000
    upstream.answers(200, done(images=[{"b64": base64.b64encode(picture).decode()}]))
    update = await provider_of("lab-sync", session, upstream.base_url).submit(submission())
    assert update.outputs == (Output(data=picture),)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("status", "code", "failure"),
    [
        (400, "invalid_request", ("invalid_request", "invalid_request")),
        (400, "content_blocked", ("content_blocked", "content_blocked")),
        (404, "not_found", ("invalid_request", "invalid_request")),
        (413, "too_large", ("invalid_request", "invalid_request")),
        (415, "media", ("invalid_request", "invalid_request")),
        (422, "size", ("invalid_request", "invalid_request")),
        (500, "generation_failed", ("upstream_fault", "generation_failed")),
        (503, "generation_failed", ("upstream_fault", "generation_failed")),
    ],
)
async def test_a_no_in_the_upstreams_own_words_is_a_refusal(
    upstream: Upstream,
    session: aiohttp.ClientSession,
    name: str,
    status: int,
    code: str,
    failure: tuple[str, str],
) -> None:
    upstream.answers(status, error(code))
    raised = await fails(upstream, session, name)
    assert isinstance(raised, ProviderRefused)
    assert (raised.failure_class, raised.failure_code) == failure
    assert raised.excerpt == "the upstream's words"
    assert raised.provider == name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (401, "unauthorized", "credentials"),
        (403, "forbidden", "credentials"),
        (402, "insufficient_funds", "funds"),
        (429, "rate_limited", "rate_limited"),
    ],
)
async def test_being_turned_away_is_certainly_not_accepted(
    upstream: Upstream, session: aiohttp.ClientSession, name: str, status: int, code: str, reason: str
) -> None:
    upstream.answers(status, error(code))
    raised = await fails(upstream, session, name)
    assert isinstance(raised, ProviderUnavailable)
    assert raised.reason == reason


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, HTML),
        (401, b""),
        (404, b'{"message": "no route matched"}'),
        (408, error("request_timeout")),
        (409, error("idempotency_conflict")),
        (429, HTML),
        (500, b""),
        (500, error("internal")),
        (500, b'{"error": "generation_failed"}'),
        (502, HTML),
        (503, b"{}"),
        (504, b"generation_failed"),
        (302, b""),
        (204, b""),
        (206, {"id": "j1", "status": "queued"}),
    ],
)
async def test_an_answer_that_proves_nothing_leaves_the_submit_uncertain(
    upstream: Upstream, session: aiohttp.ClientSession, name: str, status: int, body: Any
) -> None:
    upstream.answers(status, body, {"Location": "/elsewhere"} if status == 302 else None)
    raised = await fails(upstream, session, name)
    assert isinstance(raised, SubmissionUncertain)
    assert len(upstream.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b'"j1"',
        b'{"id": "j1", "id": "j2"}',
        b'{"id": "j1", "cost": NaN}',
        b'{"id": "j1", "cost": -Infinity}',
        b'{"id": "j1", "x": ' + b"[" * 70 + b"]" * 70 + b"}",
        b'{"id": "j1", "x": ' + b"[" * 100_000,
        b'{"id": "j1", "seed": ' + b"9" * 5_000 + b"}",
        b'{"id": "j1"',
        b'{"id": "\xff"}',
        b"{}",
        b'{"id": null, "status": "queued"}',
        b'{"id": ""}',
        b'{"id": "a/b"}',
        b'{"id": ".."}',
        b'{"id": "j1\\n"}',
        b'{"id": "' + b"x" * 129 + b'"}',
        b'{"id": 1.5}',
        b'{"id": true}',
        b'{"id": ["j1"]}',
        b'{"id": "j1", "status": ["queued"]}',
        b'{"id": "j1", "reference": "t2-1"}',
    ],
)
async def test_a_success_that_cannot_be_read_leaves_the_submit_uncertain(
    upstream: Upstream, session: aiohttp.ClientSession, body: bytes
) -> None:
    upstream.answers(202, body)
    assert isinstance(await fails(upstream, session, "lab-poll"), SubmissionUncertain)


@pytest.mark.parametrize(
    "changes",
    [
        {"images": [{"b64": "abc"}]},
        {"images": [{"b64": "****"}]},
        {"images": [{"b64": 7}]},
        {"status": "running"},
        {"status": "never seen"},
        {"status": None},
        {"reference": "t9-1"},
    ],
)
async def test_a_synchronous_answer_that_cannot_be_used_is_uncertain(
    upstream: Upstream, session: aiohttp.ClientSession, changes: dict[str, Any]
) -> None:
    upstream.answers(200, done(**changes))
    assert isinstance(await fails(upstream, session, "lab-sync"), SubmissionUncertain)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("30", 30.0),
        ("0", 0.0),
        (" 1.5 ", 1.5),
        ("-5", None),
        ("soon", None),
        ("99999999", None),
        ("", None),
        (None, None),
    ],
)
async def test_retry_after_is_believed_only_if_sensible(
    upstream: Upstream, session: aiohttp.ClientSession, header: str | None, expected: float | None
) -> None:
    upstream.answers(429, error("rate_limited"), {"Retry-After": header} if header is not None else None)
    raised = await fails(upstream, session, "lab-poll")
    assert isinstance(raised, ProviderUnavailable)
    assert raised.retry_after_s == expected


async def test_a_value_that_json_cannot_carry_is_refused_before_sending(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    with pytest.raises(ProviderRefused) as raised:
        await provider_of("lab-poll", session, upstream.base_url).submit(
            submission(options={"lab": {"x": float("nan")}})
        )
    assert raised.value.failure_class == "invalid_request"
    assert upstream.asked == []
