"""midjourney-proxy: codes in a 200, wishes in the prompt, unsigned callbacks at every change, a list of all."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from random import randrange
from typing import Any

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

CREDENTIALS = {"api_key": keys.api_key("midjourney")}
WORDS = {"running": "IN_PROGRESS", "done": "SUCCESS", "failed": "FAILURE"}
WAITING = ("NOT_START", "SUBMITTED")
SIDE = 1024
TAKEN, IN_LINE = 1, 22
# What a prompt may say after its text: a name and what follows it.
PARAMETERS = {
    "ar": re.compile(r"([1-9]\d{0,3}):([1-9]\d{0,3})"),
    "no": re.compile(r".+"),
    "seed": re.compile(r"\d{1,10}"),
    "stylize": re.compile(r"\d{1,4}"),
    "chaos": re.compile(r"\d{1,3}"),
    "v": re.compile(r"[\d.]+"),
}
VARIANTS = {"unknown_code": "a submit is answered with an id and a code that is not documented"}
OPTIONS = {
    "negative_prompt": Option("no fog, no rain"),
    "seed": Option(20_261_129),
    "stylize": Option(250),
    "chaos": Option(30),
    "version": Option(6.1),
}


def _told(code: int, description: str, result: str | None = None, **properties: Any) -> dict[str, Any]:
    return {"code": code, "description": description, "properties": properties, "result": result}


def _error(name: str, code: int, description: str, **properties: Any) -> Way:
    return Way(name, Reply(200, _told(code, description, **properties)))


REFUSALS = {
    "invalid_request": (
        _error("4", 4, "prompt不能为空"),
        _error("base64", 4, "base64Array格式错误"),
    ),
    "content_blocked": (_error("24", 24, "可能包含敏感词", promptEn="a naked fox", bannedWord="naked"),),
    "credentials": (Way("secret", Reply(401)),),
    "concurrency_limited": (_error("none", 23, "提交失败，队列已满，请稍后尝试"),),
    "upstream_fault": (
        _error("3", 3, "无可用的账号实例"),
        _error("9", 9, "提交失败，系统异常"),
    ),
    "not_found": (Way("empty", Reply(200)), Way("null", Reply(200, b"null"))),
}
ENDINGS = {
    # Discord's title in brackets and its explanation; the proxy's own text for a task that took too long.
    "failed": (
        Ending("timeout", {"reason": "任务超时"}),
        Ending("discord", {"reason": "[Internal error] Something went wrong while drawing"}),
        # Only forks have this word.
        Ending("canceled", {"status": "CANCEL", "reason": "Taken back by its owner"}),
    ),
    "blocked": (
        Ending("banned", {"reason": "[Banned prompt detected] A word in the prompt is not allowed"}),
        Ending("moderator", {"reason": "[Pending mod message] A moderator has written to you"}),
        Ending("filter", {"reason": "[Action needed to continue] Blocked by our AI moderator"}),
    ),
    "invalid_request": (
        Ending("link", {"reason": "[Invalid link] Could not fetch the picture"}),
        Ending("parameter", {"reason": "[Invalid parameter] Unrecognized parameter"}),
    ),
}


class Midjourney(Dialect):
    """One midjourney-proxy."""

    name = "midjourney"
    shape = "callback"
    features = Features(
        edit=True,
        list=True,
        look_up=True,
        progress=True,
        waiting=True,
        reasons=True,
        callback="task",
        notices="changes",
        reference="state",
        is_open=True,
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/mj/submit/imagine", "submit", "read"),
        Route("GET", "/mj/task/list", "list", "list"),
        Route("GET", "/mj/task/queue", "other", "queue"),
        Route("POST", "/mj/task/list-by-condition", "other", "list_some"),
        Route("GET", "/mj/task/{id}/fetch", "poll", "poll"),
    )
    retry_gaps_s = ()  # sent once
    notice_shares = (0.0, 0.5)  # every change, of the progress, too
    refusals = REFUSALS
    endings = ENDINGS
    variants = VARIANTS
    options = OPTIONS

    async def authenticate(self, call: Call) -> None:
        """The header `mj-api-secret`; a proxy without a secret lets everybody in, as does this one."""
        given = call.headers.get("mj-api-secret")
        if given is not None and given != self.credentials["api_key"]:
            raise self.refused("credentials")

    def fault(self, fault: Fault) -> Reply:
        """A code, or the web server's own words for a body that is no JSON."""
        if fault.kind in {"body", "header"}:
            return Reply(400, {"status": 400, "error": "Bad Request", "path": "/mj/submit/imagine"})
        return Reply(200, _told(4, f"{fault.name}: {fault.message}"))

    def nowhere(self, call: Call) -> Reply:
        """The web server's own words."""
        return Reply(404, {"status": 404, "error": "Not Found", "path": call.path})

    async def read(self, call: Call) -> Submit:
        """POST: the prompt with all wishes in it."""
        fields = call.fields()
        prompt = fields.text("prompt", most=6000)
        wishes = _read_parameters(fields, prompt)
        pictures = await self._pictures(fields)
        state = fields.text("state", None, most=500)
        submit = Submit(
            shape="callback" if fields.has("notifyHook") else "poll",
            prompt=prompt,
            reference=state or "",
            callback_url=fields.url("notifyHook", None),
            model="midjourney",
            operation="edit" if pictures else "generate",
            inputs=tuple(picture.sha256 for picture in pictures),
            details={"state": state, **wishes},
        )
        submit.width, submit.height = _sides(wishes.get("ar", "1:1"))
        fields.close()
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """Taken, or taken and in line behind others."""
        job, before = view.job, (view.position or 1) - 1
        if job.fate.variant == "unknown_code":
            return Reply(200, _told(99, "?", job.id))
        if before:
            text = f"排队中，前面还有{before}个任务"
            return Reply(200, _told(IN_LINE, text, job.id, numberOfQueues=before))
        return Reply(200, _told(TAKEN, "提交成功", job.id))

    async def poll(self, call: Call) -> Reply:
        """GET one; one that it does not know is an empty answer."""
        return Reply(200, self.record(self.look(self.find(call.at["id"]))))

    async def list(self, call: Call) -> Reply:
        """GET all that it remembers, in one page."""
        call.only_query(())
        return Reply(200, [self.record(self.view(job)) for job in self.jobs()])

    async def queue(self, call: Call) -> Reply:
        """GET those that wait."""
        waiting = [view for job in self.jobs() if (view := self.view(job)).phase == "queued"]
        return Reply(200, [self.record(view) for view in waiting])

    async def list_some(self, call: Call) -> Reply:
        """POST ids; those that it knows come back."""
        fields = call.fields()
        wanted = fields.many("ids", most=1000)
        fields.close()
        return Reply(200, [self.record(self.view(job)) for job in self.jobs() if job.id in wanted])

    def record(self, view: View) -> Any:
        """The task, the same in polls, lists and callbacks."""
        job = view.job
        word = view.word({**WORDS, "queued": WAITING[job.looks % len(WAITING)]})
        return {
            "id": job.id,
            "action": "IMAGINE",
            "status": view.told("status") or word,
            "prompt": job.prompt,
            "promptEn": job.prompt,
            "description": f"/imagine {job.prompt}",
            "state": job.details["state"],
            "submitTime": int(job.created_at * 1000),
            "startTime": None if view.phase == "queued" else int(job.starts_at * 1000),
            "finishTime": None if view.is_open else int((job.finished_at or time.time()) * 1000),
            "imageUrl": self._picture_url(view),
            "progress": f"{view.progress}%",
            "failReason": view.told("reason"),
            "properties": {},
        }

    def new_id(self) -> str:
        """The time in milliseconds, and three digits."""
        while (found := f"{int(time.time() * 1000)}{randrange(1000):03}") in self.workshop.books.jobs:
            pass
        return found

    def _picture_url(self, view: View) -> str | None:
        """The grid or, while it is being drawn, a preview that nobody should take for it."""
        if view.phase == "running":
            return f"{self.workshop.results.base}/previews/{view.job.id}.webp"
        return view.urls[0] if view.urls else None

    async def _pictures(self, fields: Fields) -> Sequence[Picture]:
        sources = enumerate(fields.many("base64Array", [], most=5))
        return [await self.picture(source, ("base64Array", at), forms=("data",)) for at, source in sources]


def _read_parameters(fields: Fields, prompt: str) -> dict[str, str]:
    """What stands after the text of a prompt, each as `--name value`."""
    text, *parts = re.split(r"(?:^|\s)--", prompt)
    if not text.strip():
        raise fields.fault("value", "prompt", "has no text")
    found: dict[str, str] = {}
    for part in parts:
        name, _, value = part.partition(" ")
        pattern = PARAMETERS.get(name)
        if pattern is None or name in found or not pattern.fullmatch(value.strip()):
            raise fields.fault("value", "prompt", f"--{name} is not understood")
        found[name] = value.strip()
    return found


def _sides(ratio: str) -> tuple[int, int]:
    wide, high = map(int, ratio.split(":"))
    return round(SIDE * (wide / high) ** 0.5), round(SIDE * (high / wide) ** 0.5)


DIALECT = Midjourney
