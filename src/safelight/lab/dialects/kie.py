"""Kie.ai: every verdict is a code in a 200, results are JSON as text, a signature spares the callback's body."""

from __future__ import annotations

import json
import time
from typing import Any
from uuid import uuid4

from safelight.lab.dialects import keys
from safelight.lab.job import Job
from safelight.lab.signatures import HmacSigned
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit
from safelight.lab.voice import Notice

SECRETS = keys.callback_secrets("kie")
CREDENTIALS = {
    "api_key": keys.api_key("kie"),
    "callback_secret": SECRETS[0],
    "next_callback_secret": SECRETS[1],
}
RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")
LONG_RATIOS = (*RATIOS, "1:4", "4:1", "1:8", "8:1")
# model: (ratios, most pictures that come along, whether it knows a resolution and a format)
MODELS = {"nano-banana-2": (RATIOS, 0, True), "nano-banana-2-lite": (LONG_RATIOS, 10, False)}
SIDES = {"1K": 1024, "2K": 2048, "4K": 4096}
# Two words for a job that waits: which of them comes when is not documented.
WORDS = {"running": "generating", "done": "success", "failed": "fail"}
WAITING = ("waiting", "queuing")
VARIANTS = {"unknown_code": "a submit is answered with an id and a code that is not documented"}
OPTIONS = {
    "resolution": Option("2K", only=("nano-banana-2",)),
    "output_format": Option("jpg", only=("nano-banana-2",)),
}


def _told(code: int, message: str, data: Any = None) -> dict[str, Any]:
    return {"code": code, "msg": message, "data": data}


def _error(name: str, code: int, message: str, *, status: int = 200) -> Way:
    return Way(name, Reply(status, _told(code, message)))


REFUSALS = {
    "invalid_request": (
        _error("422", 422, "The input does not pass validation"),
        _error("400", 400, "The body is not well formed"),
        _error("404", 404, "There is no such endpoint"),
        _error("451", 451, "An input picture could not be downloaded"),
        _error("status", 422, "The input does not pass validation", status=422),
    ),
    # Moderation has no code of its own: 400 in callbacks of older models, else words.
    "content_blocked": (
        _error("400", 400, "The prompt was flagged as violating content policies"),
        _error("500", 422, "The input was rejected as NSFW"),
    ),
    "credentials": (
        _error("401", 401, "You do not have access permissions"),
        _error("status", 401, "You do not have access permissions", status=401),
    ),
    "funds": (
        _error("402", 402, "The account has too few credits"),
        _error("status", 402, "The account has too few credits", status=402),
    ),
    "rate_limited": (
        _error("none", 429, "Too many calls"),
        Way("seconds", Reply(429, _told(429, "Too many calls"), {"Retry-After": "7"})),
    ),
    "upstream_fault": (
        _error("455", 455, "The service is under maintenance"),
        _error("500", 500, "Server error"),
        _error("501", 501, "The generation has failed"),
        _error("505", 505, "The feature is switched off"),
        _error("status", 500, "Server error", status=500),
    ),
    "not_found": (_error("record", 422, "There is no such record"), _error("404", 404, "Not found")),
}


def _ending(
    name: str, code: int, message: str, *, outer: int = 200, outer_message: str = "success"
) -> Ending:
    # In the answers of some models the envelope repeats why the task has failed.
    values = {"code": str(code), "message": message, "outer": outer, "outer_message": outer_message}
    return Ending(name, values)


ENDINGS = {
    "failed": (
        _ending("500", 500, "Internal error, try again later"),
        _ending("repeated", 501, "The generation has failed", outer=501, outer_message="failed"),
    ),
    "blocked": (
        _ending("400", 400, "Refused"),
        _ending("words", 500, "The picture was flagged by our content policy"),
        _ending(
            "repeated", 501, "Flagged as NSFW", outer=501, outer_message="Flagged by the moderation as NSFW"
        ),
    ),
    "invalid_request": (
        _ending("422", 422, "The ratio is not supported"),
        _ending("repeated", 422, "The ratio is not supported", outer=422, outer_message="failed"),
        _ending("451", 451, "An input picture could not be downloaded"),
    ),
}


class Kie(Dialect):
    """Kie.ai's market of models."""

    name = "kie"
    shape = "callback"
    features = Features(
        edit=True,
        waiting=True,
        reasons=True,
        callback="task",
        notices="end",
        is_signing_optional=True,
        result_life_s=14 * 86_400,
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/api/v1/jobs/createTask", "submit", "read"),
        Route("GET", "/api/v1/jobs/recordInfo", "poll", "poll"),
    )
    notice_shares = ()  # it tells the end only
    refusals = REFUSALS
    endings = ENDINGS
    variants = VARIANTS
    options = OPTIONS
    signing = HmacSigned(
        "X-Webhook-Signature",
        keys=SECRETS,
        encoding="base64",
        message=lambda parcel: f"{parcel.job_id}.{parcel.at}".encode(),
        also=lambda parcel: {"X-Webhook-Timestamp": str(parcel.at)},
    )

    async def authenticate(self, call: Call) -> None:
        """A bearer."""
        if call.headers.get("Authorization") != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials", "401")

    def fault(self, fault: Fault) -> Reply:
        """The envelope, with what is wrong in words."""
        code = {"picture": 451, "body": 400, "header": 400}.get(fault.kind, 422)
        return Reply(200, _told(code, f"{fault.name or 'body'} {fault.message}"))

    def nowhere(self, call: Call) -> Reply:
        """The same envelope."""
        return Reply(404, _told(404, "Not found"))

    async def read(self, call: Call) -> Submit:
        """POST: the model, and its wishes in an object of their own."""
        call.only_query(())
        fields = call.fields()
        model = fields.choice("model", tuple(MODELS))
        callback_url = fields.url("callBackUrl", None)
        wishes = fields.inner("input")
        fields.close()
        ratios, most, has_sizes = MODELS[model]
        ratio = wishes.choice("aspect_ratio", ratios, "1:1")
        resolution = wishes.choice("resolution", tuple(SIDES), None) if has_sizes else None
        form = wishes.choice("output_format", ("png", "jpg"), None) if has_sizes else None
        width, height = _sides(ratio, SIDES[resolution or "1K"])
        pictures = await self._pictures(wishes) if most else []
        submit = Submit(
            shape="poll" if callback_url is None else "callback",
            prompt=wishes.text("prompt", most=20_000),
            width=width,
            height=height,
            callback_url=callback_url,
            model=model,
            operation="edit" if pictures else "generate",
            format="jpeg" if form == "jpg" else "png",
            inputs=tuple(picture.sha256 for picture in pictures),
            details={"aspect_ratio": ratio, "resolution": resolution, "output_format": form},
        )
        wishes.close()
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """Nothing but the id."""
        code = 299 if view.job.fate.variant == "unknown_code" else 200
        return Reply(200, _told(code, "success", {"taskId": view.job.id}))

    async def poll(self, call: Call) -> Reply:
        """GET one, by its id in the query."""
        call.only_query(("taskId",))
        job_id = Fields(call.query, ("query",), is_text=True).text("taskId")
        view = self.look(self.find(job_id, "record"))
        return Reply(200, self._enveloped(view))

    def record(self, view: View) -> Any:
        """The record: the result is JSON within a text, and so is what was asked for."""
        job = view.job
        # Both words for waiting are shown, one after the other.
        words = {**WORDS, "queued": WAITING[job.looks % len(WAITING)]}
        ended_at = None if job.finished_at is None or view.is_open else int(job.finished_at * 1000)
        return {
            "taskId": job.id,
            "model": job.model,
            "state": view.word(words),
            "param": json.dumps({"model": job.model, "input": {"prompt": job.prompt}}),
            "resultJson": json.dumps({"resultUrls": list(view.urls)}) if view.phase == "done" else "",
            "failCode": view.told("code", ""),
            "failMsg": view.told("message", ""),
            "createTime": int(job.created_at * 1000),
            "updateTime": int((job.finished_at or time.time()) * 1000),
            "completeTime": ended_at,
        }

    def notice(self, job: Job, moment: str) -> Notice | None:
        """The same as a poll; what is not documented of the unified interface is said as clients expect it."""
        return self.told(job, self._enveloped(self.view(job, moment)), moment)

    def new_id(self) -> str:
        """A UUID without dashes."""
        return uuid4().hex

    def _enveloped(self, view: View) -> dict[str, Any]:
        return _told(view.told("outer", 200), view.told("outer_message", "success"), self.record(view))

    async def _pictures(self, wishes: Fields) -> list[Picture]:
        found = []
        for at, url in enumerate(wishes.many("image_urls", [], most=10)):
            found.append(await self.picture(url, ("input", "image_urls", at), forms=("url",)))
        return found


def _sides(ratio: str, side: int) -> tuple[int, int]:
    wide, high = map(int, ratio.split(":"))
    return round(side * (wide / high) ** 0.5), round(side * (high / wide) ** 0.5)


DIALECT = Kie
