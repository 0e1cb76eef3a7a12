"""ComfyUI: a local server that runs graphs; pictures are uploaded first and found by file name afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from safelight.domain.provider import (
    AttemptRef,
    InputImage,
    Origin,
    Output,
    ProviderUpdate,
    Submission,
    UpdateStatus,
)
from safelight.errors import ProviderError, ProviderUnavailable
from safelight.providers.answers import GENERATION_FAILED
from safelight.providers.declaration import Call, Phase
from safelight.providers.declared import DeclaredProvider
from safelight.providers.documents import Unreadable, parse_object, pick
from safelight.providers.forms import FilePart
from safelight.providers.values import Values

REFERENCE_KEY = "safelight_reference"
"""Under this name `extra_data` carries our reference. Source: ComfyUI server.py, which keeps extra_data as the
fourth member of every queue item and hands it out with /queue and /history."""

MOST_HISTORY = 500
_UPLOAD = Call(
    method="POST",
    path="/upload/image",
    encoding="multipart",
    body={"image": "{image.file}", "type": "input", "overwrite": "true"},
)
_QUEUE = Call(path="/queue", max_answer_bytes=64 * 1024 * 1024)
_HISTORY = Call(path="/history", query={"max_items": MOST_HISTORY}, max_answer_bytes=64 * 1024 * 1024)
_INTERRUPT = Call(method="POST", path="/interrupt", body={"prompt_id": "{provider_ref}"})


class ComfyUi(DeclaredProvider):
    """One ComfyUI server. Its graphs are in the declaration's submit bodies, like any other body."""

    async def _submission_values(self, submission: Submission) -> dict[str, Any]:
        """Upload the pictures first: a graph speaks of them by name. Only the submit makes anything."""
        values = await super()._submission_values(submission)
        names = [
            {"name": await self._upload(image, f"{submission.reference}-{number}")}
            for number, image in enumerate(submission.images)
        ]
        values |= {"images": names, "image": names[0] if names else None}
        if submission.mask is not None:
            values["mask"] = {"name": await self._upload(submission.mask, f"{submission.reference}-mask")}
        return values

    async def poll(self, attempt: AttemptRef) -> ProviderUpdate:
        """A finished graph is in the history; until then it is in the queue, running or in its place."""
        ref = str(attempt.provider_ref)
        update = await self._ended(attempt) or await self._in_line(ref)
        # It may have ended between the two looks.
        update = update or await self._ended(attempt)
        if update is None:
            # A restart empties both: nothing is known, which is not the same as failed.
            raise ProviderError(f"{self.name} does not know this graph (any more)", provider=self.name)
        return update

    async def _ended(self, attempt: AttemptRef) -> ProviderUpdate | None:
        call = self._declared("poll", self._declaration.poll)
        entry = (await self._history("poll", call, self._with_ref(attempt))).get(str(attempt.provider_ref))
        return None if entry is None else self._finished(str(attempt.provider_ref), entry)

    async def _in_line(self, ref: str) -> ProviderUpdate | None:
        running, pending = await self._refs_in_line("poll")
        if ref in running:
            return ProviderUpdate(UpdateStatus.RUNNING, Origin.POLL, upstream_status="running")
        if ref in pending:
            position = pending.index(ref)
            return ProviderUpdate(
                UpdateStatus.QUEUED, Origin.POLL, upstream_status="pending", position=position
            )
        return None

    async def look_up(self, attempt: AttemptRef) -> ProviderUpdate | None:
        """Find a graph by our reference, in the queue and in the history."""
        running, pending = await self._queue("look_up")
        for items, status in ((running, UpdateStatus.RUNNING), (pending, UpdateStatus.QUEUED)):
            for item in items:
                if _reference(item) == attempt.reference:
                    return ProviderUpdate(status, Origin.LOOK_UP, provider_ref=str(item[1]))
        for ref, entry in (await self._history("look_up", _HISTORY, {})).items():
            if _reference(entry["prompt"]) == attempt.reference:
                return replace(self._finished(ref, entry), origin=Origin.LOOK_UP)
        return None

    async def cancel(self, attempt: AttemptRef) -> bool:
        """Take a waiting graph out of the line; a running one is interrupted and the next poll tells."""
        values = self._with_ref(attempt)
        running, pending = await self._refs_in_line("cancel")
        if attempt.provider_ref in pending:
            await self._ask("cancel", self._declared("cancel", self._declaration.cancel), values)
            running, pending = await self._refs_in_line("cancel")
            is_gone = attempt.provider_ref not in (*running, *pending)
            history = await self._history("cancel", self._declared("poll", self._declaration.poll), values)
            return is_gone and str(attempt.provider_ref) not in history
        if attempt.provider_ref in running:
            # Older servers do not read the id and interrupt whatever runs: so only while ours does.
            await self._ask("cancel", _INTERRUPT, values)
        return False

    async def _upload(self, image: InputImage, stem: str) -> str:
        """Store one picture upstream under a name of ours; the same name again replaces the same bytes.

        Raises:
            ProviderUnavailable: it could not be stored, or the key was refused; nothing was put into the line.
        """
        name = f"{stem}.{image.content_type.rpartition('/')[2]}"
        values = {"image": {"file": FilePart(image.content_type, image.data, name)}}
        try:
            answer = await self._ask("submit", _UPLOAD, values)
            stored = parse_object(answer.body) if answer.status == 200 else {}
        except (ProviderError, Unreadable):
            raise self._not_uploaded("not_sent") from None
        if not isinstance(stored.get("name"), str):
            judged = self._interpreter.errors.judge("submit", answer)
            is_locked = judged is not None and judged.outcome == "credentials"
            raise self._not_uploaded("credentials" if is_locked else "not_sent")
        return f"{stored['subfolder']}/{stored['name']}" if stored.get("subfolder") else str(stored["name"])

    def _not_uploaded(self, reason: str) -> ProviderUnavailable:
        return ProviderUnavailable(f"{self.name} did not take a picture", reason=reason, provider=self.name)

    async def _refs_in_line(self, phase: Phase) -> tuple[list[str], list[str]]:
        """The ids of the graphs that run and that wait, the next one first."""
        running, pending = await self._queue(phase)
        pending.sort(key=lambda item: _number(item[0]))
        return [str(item[1]) for item in running], [str(item[1]) for item in pending]

    async def _queue(self, phase: Phase) -> tuple[list[list[Any]], list[list[Any]]]:
        """The items that run and that wait. A gateway's own JSON must not look like an empty line."""
        queue = await self._json(phase, _QUEUE, {})
        running, pending = queue.get("queue_running"), queue.get("queue_pending")
        if not isinstance(running, list) or not isinstance(pending, list):
            raise ProviderError(f"{self.name} answered {phase} without its queue", provider=self.name)
        return _items(running), _items(pending)

    async def _history(self, phase: Phase, call: Call, values: Values) -> dict[str, Mapping[str, Any]]:
        """The graphs that have ended, by id; empty where there is none, and nothing but graphs."""
        history = await self._json(phase, call, values)
        if not all(isinstance(entry, Mapping) and "prompt" in entry for entry in history.values()):
            raise ProviderError(f"{self.name} answered {phase} without its history", provider=self.name)
        return history

    async def _json(self, phase: Phase, call: Call, values: Values) -> dict[str, Any]:
        answer = await self._ask(phase, call, values)
        try:
            if answer.status == 200:
                return parse_object(answer.body)
        except Unreadable as error:
            raise self._interpreter.errors.unreadable_call(phase, error.reason, answer) from None
        raise self._interpreter.errors.call_error(phase, answer)

    def _finished(self, ref: str, entry: Mapping[str, Any]) -> ProviderUpdate:
        """What the history says of a graph that has ended."""
        word = pick("status.status_str", entry)
        told = [message for message in _items(pick("status.messages", entry)) if isinstance(message[0], str)]
        events = {message[0]: message[1] for message in told}
        update = ProviderUpdate(
            UpdateStatus.SUCCEEDED,
            Origin.POLL,
            provider_ref=ref,
            upstream_status=word if isinstance(word, str) else "",
        )
        if word == "success" and "execution_error" not in events:
            pictures = tuple(Output(url=url) for url in self._pictures(entry.get("outputs")))
            return replace(update, outputs=pictures, run_s=_run_s(events))
        if "execution_interrupted" in events:
            return replace(update, status=UpdateStatus.CANCELED)
        if word != "error" and "execution_error" not in events:
            self._interpreter.reader.note_unknown(str(word))
            return replace(update, status=UpdateStatus.RUNNING)
        reason = pick("exception_message", events.get("execution_error"))
        excerpt = self._interpreter.errors.redacted(reason) if isinstance(reason, str) else ""
        return replace(update, status=UpdateStatus.FAILED, failure=GENERATION_FAILED, excerpt=excerpt)

    def _pictures(self, outputs: Any) -> Iterator[str]:
        """The addresses of what was saved; previews are of the type `temp` and are not handed out."""
        nodes = outputs.values() if isinstance(outputs, Mapping) else ()
        for node in nodes:
            for picture in _list(pick("images", node)):
                name = pick("filename", picture)
                if pick("type", picture) == "output" and isinstance(name, str):
                    folder = pick("subfolder", picture) or ""
                    query = urlencode({"filename": name, "subfolder": folder, "type": "output"})
                    yield f"{self._composer.base_url}/view?{query}"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _items(value: Any) -> list[list[Any]]:
    """The members of a list that are lists of two or more themselves, such as the items of the queue."""
    return [item for item in _list(value) if isinstance(item, list) and len(item) > 1]


def _reference(item: Any) -> str | None:
    """Our reference in a queue item `[number, id, graph, extra_data, …]`."""
    extra = item[3] if isinstance(item, list) and len(item) > 3 else None
    found = extra.get(REFERENCE_KEY) if isinstance(extra, Mapping) else None
    return found if isinstance(found, str) else None


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _run_s(events: Mapping[str, Any]) -> float | None:
    """Seconds from start to success by the server's own clock, which it notes in milliseconds."""
    started = pick("timestamp", events.get("execution_start"))
    ended = pick("timestamp", events.get("execution_success"))
    if isinstance(started, int | float) and isinstance(ended, int | float) and ended >= started:
        return (ended - started) / 1000
    return None
