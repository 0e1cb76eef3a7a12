"""Replicate: predictions with one record for polls, lists and callbacks; Standard Webhooks; moderation in words."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from datetime import datetime
from secrets import token_hex
from typing import Any
from urllib.parse import urlencode

from safelight.lab.dialects import keys
from safelight.lab.dialects.replicate.endpoints import (
    MODELS,
    OPTIONS,
    Model,
    named,
    read_size,
    read_the_rest,
    version_of,
)
from safelight.lab.dialects.replicate.records import LIFE_S, is_removed, logs_of, output_of
from safelight.lab.dialects.replicate.words import ENDINGS, EVENTS, REFUSALS, VARIANTS, WORDS, problem
from safelight.lab.job import Job
from safelight.lab.signatures import StandardSigned
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.reply import Reply, Stream
from safelight.lab.speech.routes import Route
from safelight.lab.speech.times import iso_time
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit
from safelight.lab.voice import Notice

PAGE = 5
"""Replicate's own holds 100; what reads a list goes by its cursor and never by a number."""
HOLD_MOST_S = 60
SECRETS = keys.standard_secrets("replicate")
CREDENTIALS = {
    "api_key": keys.api_key("replicate"),
    "callback_secret": SECRETS[0],
    "next_callback_secret": SECRETS[1],
}
_WAIT = re.compile(r"wait(?:=(\d+))?")


class Replicate(Dialect):
    """Replicate's predictions."""

    name = "replicate"
    shape = "callback"
    features = Features(
        edit=True,
        mask=True,
        list=True,
        list_shows=("prompt",),
        cancel=True,
        confirms_cancel=True,
        waiting=True,
        reasons=True,
        run_time=True,
        callback="task",
        notices="changes",
        notice_filter=True,
        result_life_s=LIFE_S,
        is_refreshable=False,
        is_signing_optional=True,
    )
    credentials = CREDENTIALS
    routes = (
        Route("GET", "/v1/webhooks/default/secret", "other", "secret"),
        Route("POST", "/v1/predictions", "submit", "read"),
        Route("GET", "/v1/predictions", "list", "list"),
        Route("POST", "/v1/models/{owner}/{model}/predictions", "submit", "read_by_model"),
        Route("GET", "/v1/predictions/{id}", "poll", "poll"),
        Route("POST", "/v1/predictions/{id}/cancel", "cancel", "stop"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS
    signing = StandardSigned(keys=SECRETS)

    async def authenticate(self, call: Call) -> None:
        """`Authorization: Bearer …`"""
        given = call.headers.get("Authorization")
        if given is None:
            raise self.refused("credentials", "missing")
        if given != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """A problem that names the field."""
        fields = [{"type": fault.kind, "field": fault.name, "description": fault.message}]
        detail = f"- {fault.name or 'body'}: {fault.message}\n"
        return problem(422, "Input validation failed", detail, invalid_fields=fields)

    def nowhere(self, call: Call) -> Reply:
        """The same words as for a prediction that is not there."""
        return self.way("not_found").made()

    async def read(self, call: Call) -> Submit:
        """POST /predictions: the version names the model."""
        fields = call.fields()
        name = named(fields.text("version"))
        if name is None:
            raise self.refused("invalid_request", "version")
        return await self._submit(call, fields, name)

    async def read_by_model(self, call: Call) -> Submit:
        """POST /models/{owner}/{model}/predictions: the official models."""
        name = f"{call.at['owner']}/{call.at['model']}"
        if name not in MODELS:
            raise self.refused("not_found")
        return await self._submit(call, call.fields(), name)

    async def _submit(self, call: Call, fields: Fields, name: str) -> Submit:
        call.only_query(())
        model, given = MODELS[name], fields.inner("input")
        callback_url = fields.url("webhook", None)
        events = fields.many("webhook_events_filter", ["output", "completed"], most=len(EVENTS))
        if not set(events) <= set(EVENTS):
            raise fields.fault("value", "webhook_events_filter", f"must be some of {', '.join(EVENTS)}")
        fields.flag("stream", False)
        fields.close()
        pictures, mask = await self._pictures(given, model)
        width, height = read_size(given, model, pictures)
        submit = Submit(
            shape="poll" if callback_url is None else "callback",
            prompt=given.text("prompt"),
            n=given.whole("num_outputs", 1, low=1, high=model.most) if model.most > 1 else 1,
            width=width,
            height=height,
            callback_url=callback_url,
            model=name,
            operation="inpaint" if mask else "edit" if pictures else "generate",
            format=given.choice("output_format", model.formats, model.formats[0]).replace("jpg", "jpeg"),
            inputs=tuple(picture.sha256 for picture in pictures),
            mask=None if mask is None else mask.sha256,
        )
        given.whole("seed", None, low=0)
        hold_s = _hold_s(call)
        submit.details = {"input": read_the_rest(given, model), "events": events, "hold_s": hold_s}
        return submit

    async def answer(self, call: Call, job: Job) -> Reply | Stream:
        """With `Prefer: wait` the answer is held back until the end, or as long as was asked for."""
        if job.details["hold_s"]:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(job.ended.wait(), job.details["hold_s"])
        return self.accepted(call, self.view(job))

    def accepted(self, call: Call, view: View) -> Reply:
        """The record."""
        return Reply(201, self.record(view))

    async def poll(self, call: Call) -> Reply:
        """GET one."""
        return Reply(200, self.record(self.look(self.find(call.at["id"]))))

    async def list(self, call: Call) -> Reply:
        """GET many, the latest first; the next page has an address of its own."""
        call.only_query(("created_after", "created_before", "cursor"))
        after, before = _time(call, "created_after"), _time(call, "created_before")
        found = [
            job
            for job in reversed(self.jobs())
            if (after is None or job.created_at >= after) and (before is None or job.created_at < before)
        ]
        start = _start(found, call.query.get("cursor"))
        page, rest = found[start : start + PAGE], found[start + PAGE :]
        query = {name: value for name, value in call.query.items() if name != "cursor"}
        following = urlencode({**query, "cursor": page[-1].id}) if rest else None
        return Reply(
            200,
            {
                "previous": None,
                "next": f"{self._address()}?{following}" if following else None,
                "results": [self.record(self.view(job)) for job in page],
            },
        )

    async def stop(self, call: Call) -> Reply:
        """POST cancel: the record, whatever became of it."""
        job = self.find(call.at["id"])
        await self.cancel(job)
        return Reply(200, self.record(self.view(job)))

    async def secret(self, call: Call) -> Reply:
        """The secret of the callbacks."""
        rotated = self.workshop.studio.moods.of(self.name).secret_rotated
        return Reply(200, {"key": {"new_only": SECRETS[1]}.get(rotated or "", SECRETS[0])})

    def record(self, view: View) -> Any:
        """The prediction."""
        job = view.job
        is_gone = is_removed(job)
        record: dict[str, Any] = {
            "id": job.id,
            "model": job.model,
            "version": version_of(job.model),
            "input": {} if is_gone else job.details["input"],
            "logs": "" if is_gone else logs_of(view),
            "output": None if is_gone else output_of(view),
            "data_removed": is_gone,
            "error": view.told("error"),
            "source": "api",
            "status": view.word(WORDS),
            "created_at": iso_time(job.created_at),
            "urls": {
                "get": f"{self._address()}/{job.id}",
                "cancel": f"{self._address()}/{job.id}/cancel",
            },
        }
        if view.phase != "queued":
            record["started_at"] = iso_time(job.starts_at)
        if not view.is_open:
            drawn_s = max(0.0, (job.finished_at or job.ends_at) - job.starts_at)
            record["completed_at"] = iso_time(job.finished_at)
            record["metrics"] = {"predict_time": drawn_s, "total_time": drawn_s}
        return record

    def notice(self, job: Job, moment: str) -> Notice | None:
        """The bare record, for the events that were asked for."""
        told = {"start", "output"} if moment == "running" else {"completed"}
        if told.isdisjoint(job.details["events"]):
            return None
        return self.told(job, self.record(self.view(job, moment)), moment)

    def new_id(self) -> str:
        """Letters and digits."""
        return token_hex(13)

    async def _pictures(self, given: Fields, model: Model) -> tuple[Sequence[Picture], Picture | None]:
        pictures = []
        if model.picture and (model.is_picture_required or given.has(model.picture)):
            pictures.append(await self._picture(given.text(model.picture, most=32 << 20), model.picture))
        if model.pictures:
            sources = given.many(model.pictures, [], most=8)
            pictures += [await self._picture(source, model.pictures, at) for at, source in enumerate(sources)]
        mask = None
        if model.mask and given.has(model.mask):
            mask = await self._picture(given.text(model.mask, most=32 << 20), model.mask)
        return pictures, mask

    async def _picture(self, source: object, *steps: str | int) -> Picture:
        return await self.picture(source, ("input", *steps))

    def _address(self) -> str:
        return f"{self.workshop.results.base}/{self.name}/v1/predictions"


def _hold_s(call: Call) -> int:
    match = _WAIT.fullmatch(call.headers.get("Prefer", ""))
    return min(HOLD_MOST_S, int(match[1] or HOLD_MOST_S)) if match else 0


def _time(call: Call, name: str) -> float | None:
    text = call.query.get(name)
    try:
        return None if text is None else datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise Fault("value", ("query", name), "must be a time of ISO 8601") from None


def _start(jobs: list[Job], cursor: str | None) -> int:
    if cursor is None:
        return 0
    known = [index for index, job in enumerate(jobs) if job.id == cursor]
    if not known:
        raise Fault("value", ("query", "cursor"), "is not known")
    return known[0] + 1


DIALECT = Replicate
