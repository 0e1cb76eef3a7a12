"""APIMart: OpenAI's paths with tasks behind them, a list around the id, lists of lists around the pictures."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from safelight.lab.dialects import keys
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

LIFE_S = 86_400.0
PRICE = 0.006
CREDENTIALS = {"api_key": keys.api_key("apimart")}
RATIOS = ("1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5", "2:1", "1:2", "21:9", "9:21")
MODELS = ("gpt-image-2", "gpt-image-2-official")
SIDES = {"1k": 1024, "2k": 2048, "4k": 4096}
QUALITIES = ("low", "medium", "high", "auto")
LANGUAGES = ("zh", "en", "ko", "ja")
# Three words stand for waiting: the answer to the submit has the first, polls have been seen with both.
WORDS = {"running": "processing", "done": "completed", "failed": "failed"}
WAITING = ("submitted", "pending")
VARIANTS = {
    "one_record": "a submit is answered with one record in the place of a list",
    "unknown_code": "a submit is answered with an id and a code that is not documented",
}
OPTIONS = {
    "resolution": Option("2k"),
    "quality": Option("high"),
}


def _told(code: int, message: str) -> dict[str, Any]:
    kind = {401: "authentication_error", 402: "payment_required", 429: "rate_limit_error"}.get(code)
    return {"error": {"code": code, "message": message, "type": kind or "invalid_request_error"}}


def _error(name: str, code: int, message: str, *, status: int = 200) -> Way:
    body = _told(code, message) if status != 200 else {"code": code, "msg": message, "data": None}
    return Way(name, Reply(status, body))


# Errors are not documented well: each is told once by its status and once by a code in a 200.
REFUSALS = {
    "invalid_request": (
        _error("400", 400, "size is not supported", status=400),
        _error("422", 422, "n is not supported", status=422),
        _error("400_in_200", 400, "size is not supported"),
        _error("404_in_200", 404, "there is no such model"),
        _error("422_in_200", 422, "n is not supported"),
    ),
    "content_blocked": (
        _error("400", 400, "The prompt violates our safety rules", status=400),
        _error("400_in_200", 400, "The prompt was stopped by content moderation"),
    ),
    "credentials": (
        _error("401", 401, "The key is missing or wrong", status=401),
        _error("403", 403, "The key may not use this model", status=403),
        _error("401_in_200", 401, "The key is missing or wrong"),
        _error("403_in_200", 403, "The key may not use this model"),
    ),
    "funds": (
        _error("402", 402, "The balance is too low", status=402),
        _error("402_in_200", 402, "The balance is too low"),
    ),
    "rate_limited": (
        _error("none", 429, "Too many calls", status=429),
        _error("none_in_200", 429, "Too many calls"),
    ),
    "upstream_fault": (
        _error("500", 500, "Internal server error", status=500),
        _error("503", 503, "No channel is available", status=503),
    ),
    "not_found": (
        _error("404", 404, "There is no such task", status=404),
        _error("404_in_200", 404, "There is no such task"),
    ),
}
ENDINGS = {
    "failed": (
        Ending("error", {"code": 500, "en": "The channel behind has failed", "zh": "上游通道失败"}),
        Ending(
            "cancelled",
            {"status": "cancelled", "code": 499, "en": "Taken back by its owner", "zh": "任务已取消"},
        ),
    ),
    "blocked": (
        Ending("policy", {"code": 400, "en": "The picture violates the content policy", "zh": "内容违规"}),
    ),
}


class ApiMart(Dialect):
    """APIMart's pictures."""

    name = "apimart"
    shape = "poll"  # its callbacks are not documented
    features = Features(
        edit=True,
        progress=True,
        waiting=True,
        reasons=True,
        cost=True,
        run_time=True,
        result_life_s=LIFE_S,
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/v1/images/generations", "submit", "read"),
        Route("GET", "/v1/tasks/{id}", "poll", "poll"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    variants = VARIANTS
    options = OPTIONS

    async def authenticate(self, call: Call) -> None:
        """A bearer."""
        if call.headers.get("Authorization") != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials", "401")

    def fault(self, fault: Fault) -> Reply:
        """An error as OpenAI words it, with a number as its code."""
        return Reply(400, _told(400, f"{fault.name or 'body'}: {fault.message}"))

    def nowhere(self, call: Call) -> Reply:
        """The same shape."""
        return Reply(404, _told(404, "Not found"))

    async def read(self, call: Call) -> Submit:
        """POST: the field `size` takes a ratio."""
        call.only_query(())
        fields = call.fields()
        model = fields.choice("model", MODELS)
        ratio = fields.choice("size", RATIOS, "1:1")
        resolution = fields.choice("resolution", tuple(SIDES), "1k")
        # Documented for the official model; that the other one refuses it is not.
        quality = fields.choice("quality", QUALITIES, "auto")
        width, height = _sides(ratio, SIDES[resolution])
        pictures = await self._pictures(fields)
        submit = Submit(
            shape="poll",
            prompt=fields.text("prompt", most=32_000),
            n=fields.whole("n", 1, low=1, high=1),
            width=width,
            height=height,
            model=model,
            operation="edit" if pictures else "generate",
            inputs=tuple(picture.sha256 for picture in pictures),
            details={"size": ratio, "resolution": resolution, "quality": quality},
        )
        fields.close()
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """A list of one task."""
        task = {"status": WAITING[0], "task_id": view.job.id}
        code = 299 if view.job.fate.variant == "unknown_code" else 200
        return Reply(200, {"code": code, "data": task if view.job.fate.variant == "one_record" else [task]})

    async def poll(self, call: Call) -> Reply:
        """GET one, in a language; which one it is without being asked is not documented: here Chinese."""
        call.only_query(("language",))
        language = Fields(call.query, ("query",), is_text=True).choice("language", LANGUAGES, "zh")
        view = self.look(self.find(call.at["id"]))
        record = self.record(view)
        if view.ending is not None:
            message = view.told(language, view.told("en"))
            record["error"] = {"code": view.told("code"), "message": message}
        return Reply(200, {"code": 200, "data": record})

    def record(self, view: View) -> Any:
        """The task."""
        job = view.job
        is_over = not view.is_open
        words = {**WORDS, "queued": WAITING[job.looks % len(WAITING)]}
        record: dict[str, Any] = {
            # In documented examples this is not the id that was asked for.
            "id": f"task-unified-{job.id[-12:]}",
            "status": view.told("status") or view.word(words),
            "progress": view.progress,
            "created": int(job.created_at),
            "estimated_time": 60,
        }
        if is_over:
            record |= {"completed": int(job.finished_at or time.time()), "actual_time": job.fate.latency_s}
        if view.phase == "done":
            record |= {"cost": PRICE, "result": {"images": [_image(view, url) for url in view.urls]}}
        return record

    def new_id(self) -> str:
        """A word and a number."""
        return f"task_{uuid4().hex}"

    async def _pictures(self, fields: Fields) -> list[Picture]:
        sources = enumerate(fields.many("image_urls", [], most=16))
        return [await self.picture(source, ("image_urls", at)) for at, source in sources]


def _image(view: View, url: str) -> dict[str, Any]:
    return {"url": [url], "expires_at": int((view.job.finished_at or time.time()) + LIFE_S)}


def _sides(ratio: str, side: int) -> tuple[int, int]:
    wide, high = map(int, ratio.split(":"))
    return round(side * (wide / high) ** 0.5), round(side * (high / wide) ** 0.5)


DIALECT = ApiMart
