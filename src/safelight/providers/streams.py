"""Reads an answer that comes as server-sent events: partial pictures are progress, the last event completes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import aiohttp

from safelight.domain.provider import Origin, ProviderUpdate, Submission, UpdateStatus
from safelight.providers.declaration import Stream, Submit
from safelight.providers.dialect import Dialect
from safelight.providers.documents import Unreadable, parse_object
from safelight.providers.exchange import (
    CHUNK_BYTES,
    Answered,
    Outcome,
    SentWithoutAnswer,
    headers_of,
    read_whole,
)

_ERROR_STATUS = 500
"""An error event has no status of its own: only a rule that matches its words makes it a definite no."""

_MOST_PERCENT = 99


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event; `name` is empty where it has no `event` line."""

    name: str
    data: bytes = field(repr=False)


class EventReader:
    """Splits a stream into events. Lines may be longer than any buffer: pictures are one line."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that this chunk completes."""
        first, *others = chunk.split(b"\n")
        self._line.append(first)
        for following in others:
            yield from self._end_line()
            self._line = [following]

    def close(self) -> Iterator[Event]:
        """The last event, where the stream ended without the empty line after it."""
        yield from self._end_line()
        yield from self._end_event()

    def _end_line(self) -> Iterator[Event]:
        line = b"".join(self._line).removesuffix(b"\r")
        self._line = []
        if not line:
            yield from self._end_event()
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(value)

    def _end_event(self) -> Iterator[Event]:
        if self._data:
            yield Event(self._name, b"\n".join(self._data))
        self._name, self._data = "", []


class Listener:
    """Listens to one streamed submit: `call` asks for it, `read` is how its answer is read."""

    def __init__(self, call: Submit, stream: Stream, submission: Submission) -> None:
        self._plain = call
        self._stream = stream
        self._report = submission.report
        self._steps = submission.n if stream.steps == "n" else stream.steps
        self._done = 0
        self._kept: list[bytes] = []
        self._is_heard = False
        self.call = call.model_copy(update={"body": {**(call.body or {}), **stream.body}})

    @property
    def answered_call(self) -> Submit:
        """The call as its answer is to be read: an upstream may answer as if nothing had been asked."""
        if not self._is_heard:
            return self._plain
        answer = (self._plain.answer or Dialect()).overridden_by(self._stream.answer)
        return self._plain.model_copy(update={"answer": answer, "success_if": None})

    async def read(self, response: aiohttp.ClientResponse, limit: int) -> Outcome:
        """The whole answer, or the events as one; a stream without its last event is no answer."""
        if response.content_type != "text/event-stream" or response.status not in self._plain.accepted:
            return await read_whole(response, limit)
        self._is_heard = True
        reader = EventReader()
        size = 0
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            size += len(chunk)
            if size > limit:
                return SentWithoutAnswer("answer_too_large")
            if (outcome := self._hear(reader.feed(chunk), response)) is not None:
                return outcome
        return self._hear(reader.close(), response) or SentWithoutAnswer("stream_cut")

    def _hear(self, events: Iterator[Event], response: aiohttp.ClientResponse) -> Outcome | None:
        stream = self._stream
        for event in events:
            name = event.name or _type_of(event)
            if name in stream.errors:
                return Answered(_ERROR_STATUS, headers_of(response), event.data)
            if name in stream.progress:
                self._tell()
            if name in stream.kept:
                self._kept.append(event.data)
            if name in stream.final:
                body = b'{"events": [' + b", ".join(self._kept) + b"]}"
                return Answered(response.status, headers_of(response), body)
        return None

    def _tell(self) -> None:
        self._done += 1
        percent = min(_MOST_PERCENT, self._done * 100 // self._steps)
        if self._report is not None:
            self._report(ProviderUpdate(UpdateStatus.RUNNING, Origin.ANSWER, percent=percent))


def listener_for(call: Submit, submission: Submission) -> Listener | None:
    """Who listens to this submit; None where nobody does, or where it is not streamed."""
    stream = call.stream
    if stream is None or submission.report is None or stream.is_many not in (None, submission.n > 1):
        return None
    return Listener(call, stream, submission)


def _type_of(event: Event) -> str:
    """The type inside an event; one without any that holds an error is an error."""
    try:
        document = parse_object(event.data)
    except Unreadable:
        return ""
    name = document.get("type")
    if isinstance(name, str):
        return name
    return "error" if document.get("error") else ""
