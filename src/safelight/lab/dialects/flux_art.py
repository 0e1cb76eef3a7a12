"""Flux Art: an idempotency key with every submit, points charged at once and given back, polls only."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from safelight.lab.dialects import keys
from safelight.lab.job import Job
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Stream, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.times import iso_time
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

BASE = "/openapi/v1"
MODELS = ("gpt-image-2", "gpt-image-2.5-flare", "gpt-image-2.5-sunburst", "nano-banana-2")
KEY = re.compile(r"[A-Za-z0-9._:-]{8,128}")
RATIO = re.compile(r"([1-9]\d?):([1-9]\d?)")
SIZE = re.compile(r"([1-9]\d{1,3})x([1-9]\d{1,3})")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# What a quality costs is not published for the API; these are numbers to count with.
POINTS = {"low": 2, "medium": 5, "high": 8, "xhigh": 12, "max": 20}
WORDS = {
    "queued": "queued",
    "running": "processing",
    "done": "succeeded",
    "failed": "failed",
    "canceled": "canceled",
}
CREDENTIALS = {"api_key": f"fa_live_{keys.api_key('flux-art')}"}


def _told(status: int, code: str | None, message: str, **headers: str) -> Reply:
    named = {} if code is None else {"code": code}
    return Reply(status, {"error": {**named, "message": message, "details": []}}, headers)


def _no(name: str, status: int, code: str | None, message: str, retry_after: str | None = None) -> Way:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Way(name, _told(status, code, message, **headers))


def _end(name: str, message: str, **more: str) -> Ending:
    return Ending(name, {"error": {**more, "message": message}})


OPTIONS = {"resolution": Option("2k"), "quality": Option("high")}
REFUSALS = {
    "invalid_request": (
        _no("request", 400, "invalid_request", "The request is invalid"),
        _no("media", 400, "invalid_media_url", "A media URL cannot be used"),
        _no("validation", 422, "validation_error", "Validation failed"),
    ),
    # How moderation is coded is not published; these are its usual words under the codes that are.
    "content_blocked": (
        _no("policy", 400, "invalid_request", "The prompt violates the content policy"),
        _no("safety", 422, "validation_error", "Rejected by the safety system"),
    ),
    "credentials": (_no("key", 401, "invalid_api_key", "The API key is missing or invalid"),),
    "funds": (
        _no("points", 402, "insufficient_points", "Not enough points"),
        _no("membership", 402, "membership_required", "This model is prohibited without a membership"),
    ),
    "rate_limited": (_no("seconds", 429, "rate_limit", "Too many requests", "2"),),
    "concurrency_limited": (_no("seconds", 429, "concurrent_limit", "Too many tasks at once", "3"),),
    # All of these ask for the same key and body once more.
    "upstream_fault": (
        _no("internal", 500, "internal_error", "Internal error"),
        _no("unnamed", 503, None, "Service unavailable"),
        _no("in_progress", 409, "idempotency_key_reused", "A request with this key is being processed"),
    ),
    "not_found": (_no("task", 404, "task_not_found", "The task does not exist"),),
}
ENDINGS = {
    "failed": (
        _end("message", "The generation failed"),
        _end("code", "The model did not answer in time", code="generation_timeout"),
        # It happens, though no call of the API cancels.
        Ending("canceled", {"word": "canceled"}),
    ),
    "blocked": (
        _end("code", "The output was withheld", code="content_moderation"),
        _end("message", "The picture violates the content policy"),
    ),
}


class FluxArt(Dialect):
    """Flux Art's OpenAPI for pictures."""

    name = "flux-art"
    shape = "poll"
    features = Features(
        edit=True,
        list=True,
        waiting=True,
        reasons=True,
        silent_ends=("canceled",),
        cost=True,
        gives_back=True,
        key="Idempotency-Key",
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", f"{BASE}/images/generations", "submit", "read"),
        Route("GET", f"{BASE}/tasks/{{id}}", "poll", "poll"),
        Route("GET", f"{BASE}/tasks", "list", "list"),
        Route("GET", f"{BASE}/models", "other", "list_models"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS

    async def authenticate(self, call: Call) -> None:
        """`Authorization: Bearer fa_live_…`"""
        if call.headers.get("Authorization") != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials", "key")

    def fault(self, fault: Fault) -> Reply:
        """A body that is none is a bad request, a field is told in the details."""
        if fault.kind in ("body", "header"):
            return _told(400, "invalid_request", f"The body {fault.message}")
        if fault.kind == "picture":
            return _told(400, "invalid_media_url", f"{fault.name} {fault.message}")
        details = [{"field": fault.name, "message": fault.message}]
        error = {"code": "validation_error", "message": "Validation failed", "details": details}
        return Reply(422, {"error": error})

    def nowhere(self, call: Call) -> Reply:
        """The shape of all errors."""
        return _told(404, "not_found", "There is nothing here")

    async def read(self, call: Call) -> Submit:
        """POST /images/generations: one picture."""
        call.only_query(())
        key = call.headers.get("Idempotency-Key", "")
        if not KEY.fullmatch(key):
            raise self.refused("invalid_request", "request")
        fields = call.fields()
        mode = fields.choice("mode", ("generate", "edit"))
        width, height = _sides(fields)
        submit = Submit(
            shape="poll",
            prompt=_prompt(fields),
            n=fields.whole("count", low=1, high=1),
            width=width,
            height=height,
            model=fields.choice("model", MODELS),
            operation=mode,
            inputs=await self._pictures(fields, is_needed=mode == "edit"),
            key=key,
            fingerprint=hashlib.sha256(json.dumps(call.json(), sort_keys=True).encode()).hexdigest(),
        )
        fields.text("resolution", None, least=1, most=20)
        fields.choice("quality", ("auto", *POINTS), "medium")
        fields.close()
        submit.details = fields.taken
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """The task, and where to look for it."""
        return Reply(201, {"data": self.record(view)}, {"Location": self._address(view.job)})

    async def repeated(self, call: Call, submit: Submit, job: Job) -> Reply | Stream:
        """The same key and body: the first task again, with 200. Another body is a conflict."""
        if submit.fingerprint != job.fingerprint:
            return _told(409, "idempotency_key_reused", "The key was used for another request")
        return Reply(200, {"data": self.record(self.view(job))}, {"Location": self._address(job)})

    async def poll(self, call: Call) -> Reply:
        """GET /tasks/{id}"""
        return Reply(200, {"data": self.record(self.look(self.find(call.at["id"])))})

    async def list(self, call: Call) -> Reply:
        """GET /tasks: how it is paged or filtered is not known, so all come, the latest first."""
        return Reply(200, {"data": [self.record(self.view(job)) for job in self.jobs()[::-1]]})

    async def list_models(self, call: Call) -> Reply:
        """GET /models"""
        return Reply(200, {"data": [{"id": name} for name in MODELS]})

    def record(self, view: View) -> Any:
        """The task; `usage` says what was charged at its creation and what has come back since."""
        job = view.job
        return {
            "id": job.id,
            "status": view.told("word") or view.word(WORDS),
            "model": job.model,
            "output": list(view.urls),
            "error": view.told("error"),
            "usage": _usage(view),
            "created_at": iso_time(job.created_at),
            "completed_at": iso_time(job.finished_at),
        }

    def new_id(self) -> str:
        """With the word for what it is."""
        return f"task_{uuid4().hex}"

    def _address(self, job: Job) -> str:
        return f"{self.workshop.results.base}/{self.name}{BASE}/tasks/{job.id}"

    async def _pictures(self, fields: Fields, *, is_needed: bool) -> tuple[str, ...]:
        """Addresses only, and those of https; the lab takes http from this machine too, where tests serve them."""
        urls = fields.many("image_urls", None if not is_needed else [], least=int(is_needed), most=16) or []
        if is_needed and not urls:
            raise fields.fault("missing", "image_urls", "is required for an edit")
        if urls and not is_needed:
            raise fields.fault("value", "image_urls", "is for edits")
        hashes = []
        for at, url in enumerate(urls):
            parts = urlsplit(url if isinstance(url, str) else "")
            is_near = parts.scheme == "http" and parts.hostname in LOOPBACK
            if parts.scheme != "https" and not is_near:
                raise Fault("picture", ("image_urls", at), "must be a public https URL")
            hashes.append((await self.picture(url, ("image_urls", at), forms=("url",))).sha256)
        return tuple(hashes)


def _prompt(fields: Fields) -> str:
    prompt: str = fields.text("prompt", most=32_000)
    if len("".join(prompt.split())) < 3:
        raise fields.fault("value", "prompt", "must have 3 characters that are not blank")
    return prompt


def _sides(fields: Fields) -> tuple[int, int]:
    """From the size or the ratio; which of them a model knows is behind the provider's login."""
    size, ratio = fields.text("size", None), fields.text("aspect_ratio", None)
    for name, given, form in (("size", size, SIZE), ("aspect_ratio", ratio, RATIO)):
        if given is not None and not form.fullmatch(given):
            raise fields.fault("value", name, "is not one that there is")
    if size is not None:
        width, _, height = size.partition("x")
        return int(width), int(height)
    wide, _, high = (ratio or "1:1").partition(":")
    most = max(int(wide), int(high))
    return 1024 * int(wide) // most, 1024 * int(high) // most


def _usage(view: View) -> dict[str, int]:
    """With the quality `auto` the dearest is charged first, and the rest comes back at the end."""
    quality = view.job.details.get("quality") or "medium"
    charged = POINTS["max" if quality == "auto" else quality]
    if view.is_open:
        given_back = 0
    elif view.phase == "done":
        given_back = charged - POINTS["medium"] if quality == "auto" else 0
    else:
        given_back = charged
    return {"points_charged": charged, "points_refunded": given_back}


DIALECT = FluxArt
