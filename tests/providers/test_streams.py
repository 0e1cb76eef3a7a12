"""Answers that come as events: what is progress, what is the answer, and what a cut stream means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import aiohttp
import pytest

from safelight.domain.provider import Output, ProviderUpdate, UpdateStatus
from safelight.errors import ProviderError
from safelight.providers.streams import Event, EventReader
from tests.providers.upstream import Upstream, provider_of, raw_upstream, submission
from tests.providers.upstreams.asking import (
    NO_MONEY,
    PNG,
    PNG_BASE64,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    TOO_FAST,
    word_for,
)
from tests.providers.upstreams.parts import parts_of

EVENTS = {"Content-Type": "text/event-stream; charset=utf-8"}
GENERATION, EDIT = "image_generation", "image_edit"
PARTIAL = {"type": f"{GENERATION}.partial_image", "b64_json": "ZHJhZnQ=", "partial_image_index": 0}
COMPLETED = {"type": f"{GENERATION}.completed", "b64_json": PNG_BASE64, "usage": {"output_tokens": 4260}}
HTML = b"<html><body>502 Bad Gateway</body></html>"


def stream(*events: Any, has_names: bool = True, newline: str = "\n") -> bytes:
    """Events as they are sent; a string is sent as it is."""
    lines: list[str] = []
    for event in events:
        if isinstance(event, str):
            lines += [event, ""]
        else:
            lines += [f"event: {event['type']}"] if has_names else []
            lines += [f"data: {json.dumps(event)}", ""]
    return "".join(line + newline for line in lines).encode()


class Heard(list[int | None]):
    """The percents that were reported."""

    def __call__(self, update: ProviderUpdate) -> None:
        assert update.status is UpdateStatus.RUNNING
        assert update.outputs == ()
        self.append(update.percent)


async def submits(
    session: aiohttp.ClientSession, base_url: str, heard: Heard | None, name: str = "openai", **wishes: Any
) -> ProviderUpdate:
    model = {"openai": "gpt-image-2", "ark": "seedream-4-5-251128"}[name]
    asked = submission(upstream_model=model, report=heard, **wishes)
    return await provider_of(name, session, base_url).submit(asked)


async def comes_to(session: aiohttp.ClientSession, base_url: str) -> str:
    try:
        await submits(session, base_url, Heard())
    except ProviderError as error:
        return word_for(error)
    return "accepted"


@pytest.mark.parametrize("has_names", [True, False])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_partial_pictures_are_progress_and_the_last_event_is_the_answer(
    session: aiohttp.ClientSession, upstream: Upstream, has_names: bool, newline: str
) -> None:
    body = stream(
        ": keep-alive", PARTIAL, PARTIAL, COMPLETED, "data: [DONE]", has_names=has_names, newline=newline
    )
    upstream.answers(200, body, EVENTS)
    heard = Heard()
    update = await submits(session, upstream.base_url, heard)
    assert heard == [33, 66]
    assert (update.status, update.outputs) == (UpdateStatus.SUCCEEDED, (Output(data=b"png-bytes"),))
    assert update.cost == 4260
    asked = upstream.asked[0].body
    assert (asked["stream"], asked["partial_images"], asked["prompt"]) == (True, 2, "a fox")


async def test_an_edit_is_streamed_in_the_same_way(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    done = {**COMPLETED, "type": f"{EDIT}.completed"}
    upstream.answers(200, stream({**PARTIAL, "type": f"{EDIT}.partial_image"}, done), EVENTS)
    heard = Heard()
    update = await submits(session, upstream.base_url, heard, operation="edit", images=[PNG])
    assert (heard, len(update.outputs)) == ([33], 1)
    parts = parts_of(upstream.asked[0])
    assert ("stream", "true") in parts
    assert ("image[]", ("image/png", b"png-bytes")) in parts


@pytest.mark.parametrize(("heard", "n"), [(None, 1), (Heard(), 2)])
async def test_a_stream_is_asked_for_only_where_it_says_something(
    session: aiohttp.ClientSession, upstream: Upstream, heard: Heard | None, n: int
) -> None:
    upstream.answers(200, {"data": [{"b64_json": PNG_BASE64}] * n})
    update = await submits(session, upstream.base_url, heard, n=n)
    assert len(update.outputs) == n
    assert "stream" not in upstream.asked[0].body


async def test_an_upstream_may_answer_as_if_no_stream_had_been_asked_for(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    upstream.answers(200, {"data": [{"b64_json": PNG_BASE64}]})
    heard = Heard()
    assert len((await submits(session, upstream.base_url, heard)).outputs) == 1
    assert heard == []


def error(code: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "code": code, "message": "its words"}}


@pytest.mark.parametrize(
    ("event", "word"),
    [
        (error("moderation_blocked", "image_generation_user_error"), REFUSED_CONTENT),
        (error("insufficient_quota"), NO_MONEY),
        (error("rate_limit_exceeded"), TOO_FAST),
        (error("", "server_error"), REFUSED_FAULT),
        (error("surprise"), "uncertain"),
    ],
)
@pytest.mark.parametrize("has_names", [True, False])
async def test_an_error_event_is_read_by_the_same_rules(
    session: aiohttp.ClientSession, upstream: Upstream, event: dict[str, Any], word: str, has_names: bool
) -> None:
    upstream.answers(200, stream(PARTIAL, event, has_names=has_names), EVENTS)
    assert await comes_to(session, upstream.base_url) == word


async def test_an_error_without_any_type_is_an_error_as_well(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    told = json.dumps({"error": {"code": "moderation_blocked", "message": "its words"}})
    upstream.answers(200, stream(PARTIAL, f"data: {told}"), EVENTS)
    assert await comes_to(session, upstream.base_url) == REFUSED_CONTENT


@pytest.mark.parametrize(
    "body",
    [
        b"",
        stream(PARTIAL),
        stream(PARTIAL, "data: [DONE]"),
        stream(PARTIAL, COMPLETED)[:-30],
        stream({"type": "never.seen"}),
        b"event: image_generation.completed\ndata: not json\n\n",
        stream({**COMPLETED, "b64_json": "****"}),
        HTML,
    ],
)
async def test_a_stream_without_a_usable_last_event_is_uncertain(
    session: aiohttp.ClientSession, upstream: Upstream, body: bytes
) -> None:
    upstream.answers(200, body, EVENTS)
    assert await comes_to(session, upstream.base_url) == "uncertain"


async def test_a_connection_that_breaks_within_a_stream_is_uncertain(session: aiohttp.ClientSession) -> None:
    def reply(writer: asyncio.StreamWriter) -> None:
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99999\r\n\r\n"
        writer.write(head.encode() + stream(PARTIAL))

    async with raw_upstream(reply) as base_url:
        assert await comes_to(session, base_url) == "uncertain"


async def test_a_stream_without_end_is_given_up(session: aiohttp.ClientSession, upstream: Upstream) -> None:
    upstream.answers(200, stream(PARTIAL, {**PARTIAL, "b64_json": "A" * 100_000}, COMPLETED), EVENTS)
    one = provider_of("openai", session, upstream.base_url, max_answer_bytes=50_000)
    with pytest.raises(ProviderError, match="answer_too_large"):
        await one.submit(submission(upstream_model="gpt-image-2", report=Heard()))


@pytest.mark.parametrize(("status", "word"), [(429, TOO_FAST), (502, "uncertain")])
async def test_an_error_before_the_stream_is_an_ordinary_one(
    session: aiohttp.ClientSession, upstream: Upstream, status: int, word: str
) -> None:
    upstream.answers(status, {"error": {"code": "rate_limit_exceeded"}} if status == 429 else HTML, EVENTS)
    assert await comes_to(session, upstream.base_url) == word


async def test_a_set_comes_picture_by_picture(session: aiohttp.ClientSession, upstream: Upstream) -> None:
    name = "image_generation.partial"
    events: Sequence[dict[str, Any]] = [
        {"type": f"{name}_succeeded", "image_index": 0, "url": "https://ark.example/1.jpg"},
        {"type": f"{name}_failed", "image_index": 1, "error": {"code": "OutputImageRiskDetection"}},
        {"type": f"{name}_succeeded", "image_index": 2, "url": "https://ark.example/3.jpg"},
        {"type": "image_generation.completed", "usage": {"generated_images": 2}},
    ]
    upstream.answers(200, stream(*events, "data: [DONE]"), EVENTS)
    heard = Heard()
    update = await submits(session, upstream.base_url, heard, "ark", n=3)
    assert heard == [33, 66, 99]
    assert [output.url for output in update.outputs] == [
        "https://ark.example/1.jpg",
        "https://ark.example/3.jpg",
    ]
    assert update.cost == 2
    assert upstream.asked[0].body["stream"] is True


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_the_same_however_the_bytes_arrive(size: int) -> None:
    sent = b": hello\r\n\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\nid: 5\n\ndata: 3\n\nevent: b\ndata: 4"
    reader = EventReader()
    events = [
        event for start in range(0, len(sent), size) for event in reader.feed(sent[start : start + size])
    ]
    assert [*events, *reader.close()] == [Event("a", b"1\n2"), Event("", b"3"), Event("b", b"4")]
