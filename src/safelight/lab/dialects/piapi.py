"""PiAPI: a model and a task type, one record for all of them, the caller's own secret back in a header."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from safelight.lab.dialects import keys
from safelight.lab.job import Job
from safelight.lab.signatures import Scheme, StaticToken, Unsigned
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.times import iso_time
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit
from safelight.lab.voice import Notice

SECRETS = keys.callback_secrets("piapi")
CREDENTIALS = {
    "api_key": keys.api_key("piapi"),
    "callback_secret": SECRETS[0],
    "next_callback_secret": SECRETS[1],
}
# model: most pictures of one task
MODELS = {"Qubico/flux1-schnell": 4, "Qubico/flux1-dev": 1}
TASK_TYPES = {"txt2img": "generate", "img2img": "edit"}
PIXELS_MOST = 1024 * 1024
POINTS = 20_000
WORDS = {"running": "processing", "done": "completed", "failed": "failed"}
WAITING = ("pending", "staged")
VARIANTS = {"unknown_code": "a submit is answered with an id and a code that is not documented"}
OPTIONS = {
    "negative_prompt": Option("no fog, no rain"),
    "guidance_scale": Option(2.5),
    "denoise": Option(0.4, only=("edit",)),
}


def _signed_with(secret: str) -> StaticToken:
    # That the secret comes back as it is, and in which header, is told by the provider's own page only.
    return StaticToken("x-webhook-secret", keys=(secret, SECRETS[1]))


def _told(code: int, message: str, *, detail: str = "") -> dict[str, Any]:
    data = {"error": {"code": code, "message": detail}} if detail else None
    return {"code": code, "message": message, "data": data}


def _error(name: str, code: int, message: str, *, status: int = 200, detail: str = "") -> Way:
    return Way(name, Reply(status, _told(code, message, detail=detail)))


# Codes of errors are not documented: each is told once by its status and once by a code in a 200.
REFUSALS = {
    "invalid_request": (
        _error("400", 400, "invalid request", status=400),
        _error("400_in_200", 400, "invalid request", detail="width is too large"),
        _error("404_in_200", 404, "there is no such model"),
        _error("422_in_200", 422, "invalid task type"),
    ),
    "content_blocked": (
        _error("400", 400, "the prompt holds NSFW words", status=400),
        _error("in_200", 400, "failed", detail="the prompt was stopped by moderation"),
    ),
    "credentials": (
        _error("401", 401, "Invalid API key", status=401),
        _error("401_in_200", 401, "Invalid API key"),
        _error("403_in_200", 403, "The key may not use this model"),
    ),
    "funds": (
        _error("402", 402, "payment required", status=402),
        _error("402_in_200", 402, "payment required"),
        _error("words", 400, "failed", status=400, detail="insufficient credits"),
        _error("words_in_200", 500, "insufficient balance"),
    ),
    "rate_limited": (
        _error("none", 429, "too many requests", status=429),
        _error("none_in_200", 429, "too many requests"),
    ),
    "upstream_fault": (_error("500", 500, "internal server error", status=500),),
    "not_found": (
        _error("404", 404, "task not found", status=404),
        _error("404_in_200", 404, "task not found"),
    ),
}
ENDINGS = {
    "failed": (Ending("error", {"code": 10_000, "message": "the worker has stopped"}),),
    "blocked": (Ending("nsfw", {"code": 10_001, "message": "NSFW content was found in the picture"}),),
}


class PiApi(Dialect):
    """PiAPI's unified tasks."""

    name = "piapi"
    shape = "callback"
    features = Features(
        edit=True,
        keeps_size=True,
        partial_items=True,
        waiting=True,
        reasons=True,
        cost=True,
        callback="task",
        notices="end",
        is_signing_optional=True,
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/api/v1/task", "submit", "read"),
        Route("GET", "/api/v1/task/{id}", "poll", "poll"),
    )
    notice_shares = ()  # it tells the end only
    refusals = REFUSALS
    endings = ENDINGS
    variants = VARIANTS
    options = OPTIONS
    signing = _signed_with(SECRETS[0])

    async def authenticate(self, call: Call) -> None:
        """`x-api-key: …`"""
        if call.headers.get("x-api-key") != self.credentials["api_key"]:
            raise self.refused("credentials", "401")

    def fault(self, fault: Fault) -> Reply:
        """The envelope, with what is wrong beside the data."""
        detail = f"{fault.name or 'body'}: {fault.message}"
        return Reply(400, _told(400, "invalid request", detail=detail))

    def nowhere(self, call: Call) -> Reply:
        """The same envelope."""
        return Reply(404, _told(404, "not found"))

    async def read(self, call: Call) -> Submit:
        """POST: what is drawn, and where to call."""
        call.only_query(())
        fields = call.fields()
        model = fields.choice("model", tuple(MODELS))
        operation = TASK_TYPES[fields.choice("task_type", tuple(TASK_TYPES))]
        callback_url, secret = _read_config(fields)
        wishes = fields.inner("input")
        fields.close()
        picture = await self._picture(wishes) if operation == "edit" else None
        width, height = _read_size(wishes, picture)
        submit = Submit(
            shape="poll" if callback_url is None else "callback",
            prompt=wishes.text("prompt", most=10_000),
            n=wishes.whole("batch_size", 1, low=1, high=MODELS[model]),
            width=width,
            height=height,
            callback_url=callback_url,
            model=model,
            operation=operation,
            inputs=() if picture is None else (picture.sha256,),
            details={
                "negative_prompt": wishes.text("negative_prompt", None, most=10_000),
                "guidance_scale": wishes.number("guidance_scale", None, low=1.5, high=5),
                "denoise": wishes.number("denoise", None, low=0, high=1) if picture else None,
                "secret": secret,
            },
        )
        wishes.close()
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """The record, whose state is still empty."""
        code = 299 if view.job.fate.variant == "unknown_code" else 200
        record = self.record(view) | {"status": ""}
        return Reply(200, {"code": code, "data": record, "message": "success"})

    async def poll(self, call: Call) -> Reply:
        """GET one."""
        call.only_query(())
        record = self.record(self.look(self.find(call.at["id"])))
        return Reply(200, {"code": 200, "data": record, "message": "success"})

    def record(self, view: View) -> Any:
        """The record, the same in every answer and callback."""
        job = view.job
        word = view.word({**WORDS, "queued": WAITING[job.looks // 2 % len(WAITING)]})
        return {
            "task_id": job.id,
            "model": job.model,
            "task_type": next(word for word, means in TASK_TYPES.items() if means == job.operation),
            # Written with and without a capital: here both, one after the other.
            "status": word.capitalize() if job.looks % 2 else word,
            "config": {"service_mode": "public"},
            "input": {"prompt": job.prompt},
            "output": _output(view),
            "meta": {
                "created_at": iso_time(job.created_at),
                "started_at": iso_time(job.starts_at),
                "ended_at": iso_time(job.finished_at),
                "usage": {"type": "point", "frozen": 0, "consume": POINTS * job.cost},
            },
            "error": {"code": view.told("code", 0), "message": view.told("message", "")},
        }

    def notice(self, job: Job, moment: str) -> Notice | None:
        """The record beside the time; what exactly comes is told by the provider's own page only."""
        body = {"timestamp": int(time.time()), "data": self.record(self.view(job, moment))}
        return self.told(job, body, moment)

    def scheme(self, job: Job) -> Scheme:
        """The secret came with the task; without one nothing proves the callback."""
        secret = job.details["secret"]
        return _signed_with(secret) if secret else Unsigned()

    def new_id(self) -> str:
        """A UUID."""
        return str(uuid4())

    async def _picture(self, wishes: Fields) -> Picture:
        source = wishes.text("image", most=32 << 20)
        return await self.picture(source, ("input", "image"), forms=("url",))


def _read_config(fields: Fields) -> tuple[str | None, str | None]:
    config = fields.inner("config", {})
    config.choice("service_mode", ("public", "private", ""), "")
    callback = config.inner("webhook_config", {})
    url = callback.url("endpoint", None)
    secret = callback.text("secret", None, most=500)
    callback.close()
    config.close()
    return url, secret or None


def _read_size(wishes: Fields, picture: Picture | None) -> tuple[int, int]:
    if picture is not None:
        return picture.width, picture.height
    width, height = wishes.whole("width", 1024, low=64), wishes.whole("height", 1024, low=64)
    if width * height > PIXELS_MOST:
        raise wishes.fault("value", "width", f"times height must not be more than {PIXELS_MOST}")
    return width, height


def _output(view: View) -> dict[str, Any] | None:
    """One picture has a field of its own, several have a list."""
    if view.phase != "done":
        return None
    urls = list(view.urls)
    return {"image_url": urls[0] if urls else "", "image_urls": urls if view.job.n > 1 else None}


DIALECT = PiApi
