"""A relay: the upstream that the template of a declaration is written for; an id, callbacks, and the words of many."""

from __future__ import annotations

from base64 import b64encode
from typing import Any
from uuid import uuid4

from safelight.lab.dialects import keys
from safelight.lab.signatures import HmacSigned
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.times import http_date
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

PATH = "/v1/images"
MODEL = "gpt-image-2"
SIZES = {"1024x1024": (1024, 1024), "1536x1024": (1536, 1024), "1024x1536": (1024, 1536)}
MOST_PICTURES = 4
# It passes on the words of whoever draws: which one ends a task differs from task to task, the others at every look.
WORDS = {
    "queued": ("queued", "pending", "submitted"),
    "running": ("running", "processing", "in_progress"),
    "done": ("succeeded", "completed"),
    "failed": ("failed",),
    "unknown": ("dreaming",),
}
CREDENTIALS = {
    "api_key": keys.api_key("relay"),
    "callback_secret": keys.callback_secrets("relay")[0],
    "next_callback_secret": keys.callback_secrets("relay")[1],
}


def _told(status: int, code: str, message: str, **headers: str) -> Reply:
    return Reply(status, {"error": {"code": code, "message": message}}, headers)


def _no(name: str, status: int, code: str, message: str) -> Way:
    return Way(name, _told(status, code, message))


def _end(name: str, code: str, message: str) -> Ending:
    return Ending(name, {"error": {"code": code, "message": message}})


BLOCKED = ("content_policy_violation", "moderation_blocked", "content_blocked")
VARIANTS = {"inline": "Polls have the pictures as base64 in place of addresses."}
OPTIONS = {"seed": Option(20_261_129)}
REFUSALS = {
    "invalid_request": (
        _no("request", 400, "invalid_request", "The request is invalid"),
        _no("validation", 422, "validation_error", "A field is invalid"),
    ),
    "content_blocked": tuple(_no(code, 400, code, "The content is not allowed") for code in BLOCKED),
    "credentials": (
        _no("key", 401, "invalid_api_key", "The API key is wrong"),
        _no("permission", 403, "permission_denied", "The API key may not do this"),
    ),
    "funds": (
        _no("payment", 402, "payment_required", "The account is empty"),
        _no("quota", 429, "insufficient_quota", "The quota is used up"),
        _no("credits", 400, "insufficient_credits", "There are not enough credits"),
        _no("balance", 403, "insufficient_balance", "The balance is too low"),
    ),
    "rate_limited": (
        Way("seconds", _told(429, "rate_limit_exceeded", "Too many requests", **{"Retry-After": "2"})),
        Way("date", lambda: _told(429, "rate_limit_exceeded", "Slow down", **{"Retry-After": http_date()})),
        _no("none", 429, "rate_limit_exceeded", "Too many requests"),
    ),
    "concurrency_limited": (
        _no("tasks", 400, "too_many_tasks", "Too many tasks at once"),
        _no("limit", 403, "concurrency_limit_exceeded", "Too many tasks at once"),
    ),
    "upstream_fault": (
        _no("server", 500, "server_error", "The server has failed"),
        _no("internal", 502, "internal_error", "Whoever draws has failed"),
        _no("overloaded", 503, "overloaded", "Too much to do"),
    ),
    "not_found": (_no("task", 404, "not_found", "There is no such task"),),
}
ENDINGS = {
    "failed": (
        _end("failed", "generation_failed", "The generation has failed"),
        Ending("canceled", {"word": "canceled"}),
        Ending("cancelled", {"word": "cancelled"}),
    ),
    "blocked": tuple(_end(code, code, "The content is not allowed") for code in BLOCKED),
    "invalid_request": (
        _end("request", "invalid_request", "The picture cannot be used"),
        _end("error", "invalid_request_error", "The prompt cannot be used"),
    ),
}


class Relay(Dialect):
    """One relay for all."""

    name = "relay"
    shape = "callback"
    features = Features(
        edit=True,
        progress=True,
        waiting=True,
        reasons=True,
        silent_ends=("canceled", "cancelled"),
        partial_items=True,
        callback="task",
        notices="changes",
        is_signing_optional=True,
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", f"{PATH}/generations", "submit", "read"),
        Route("GET", f"{PATH}/tasks/{{id}}", "poll", "poll"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS
    signing = HmacSigned("X-Signature", keys=keys.callback_secrets("relay"), prefix="sha256=")

    async def authenticate(self, call: Call) -> None:
        """`Authorization: Bearer …`"""
        if call.headers.get("Authorization") != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials", "key")

    def fault(self, fault: Fault) -> Reply:
        """The field in words."""
        if fault.kind in ("body", "header"):
            return _told(400, "invalid_request", f"The body {fault.message}")
        return _told(422, "validation_error", f"{fault.name} {fault.message}")

    def nowhere(self, call: Call) -> Reply:
        """The shape of all errors."""
        return _told(404, "not_found", "There is nothing here")

    async def read(self, call: Call) -> Submit:
        """POST: pictures make it an edit."""
        call.only_query(())
        fields = call.fields()
        pictures = [
            await self.picture(source, ("image_urls", at))
            for at, source in enumerate(fields.many("image_urls", [], most=MOST_PICTURES))
        ]
        width, height = SIZES[fields.choice("size", tuple(SIZES), "1024x1024")]
        submit = Submit(
            shape="callback",
            prompt=fields.text("prompt", most=4000),
            n=fields.whole("n", 1, low=1, high=4),
            width=width,
            height=height,
            callback_url=fields.url("callback_url", None),
            model=fields.choice("model", (MODEL,)),
            operation="edit" if pictures else "generate",
            inputs=tuple(picture.sha256 for picture in pictures),
        )
        fields.whole("seed", None, low=0)
        fields.close()
        submit.details = fields.taken
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """The id and the word."""
        return Reply(200, {"id": view.job.id, "status": _word(view)})

    async def poll(self, call: Call) -> Reply:
        """GET /tasks/{id}"""
        job = self.find(call.at["id"])
        view = self.look(job)
        record = self.record(view)
        if view.urls and job.fate.variant == "inline":
            record["images"] = [{"b64_json": b64encode(raw).decode()} for raw in await self.pictures(job)]
        return Reply(200, record)

    def record(self, view: View) -> Any:
        """The task; callbacks, which have to be short, always have addresses."""
        return {
            "id": view.job.id,
            "status": _word(view),
            "progress": view.progress,
            "images": [{"url": url} for url in view.urls],
            "error": view.told("error"),
        }

    def new_id(self) -> str:
        """Letters and digits behind a word."""
        return f"img_{uuid4().hex}"


def _word(view: View) -> str:
    told: str | None = view.told("word")
    spellings: tuple[str, ...] = view.word(WORDS)
    turn = view.job.place + (view.job.looks if view.is_open else 0)
    return told or spellings[turn % len(spellings)]


DIALECT = Relay
