"""Luma Agents: pictures by uni-1, polls only, a code for every failure."""

from __future__ import annotations

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
from safelight.lab.speech.times import iso_time
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

CREDENTIALS = {"api_key": keys.api_key("luma-agents")}
LIFE_S = 3600.0
MODELS = ("uni-1", "uni-1-max")
SIZES = {
    "3:1": (2048, 688),
    "2:1": (2048, 1024),
    "16:9": (2048, 1152),
    "3:2": (1872, 1248),
    "1:1": (1536, 1536),
    "2:3": (1248, 1872),
    "9:16": (1152, 2048),
    "1:2": (1024, 2048),
    "1:3": (688, 2048),
}
WORDS = {"queued": "queued", "running": "processing", "done": "completed", "failed": "failed"}
MOST_REFERENCES = 9


def _error(name: str, status: int, detail: str, code: str | None = None) -> Way:
    return Way(name, Reply(status, {"detail": detail, **({"code": code} if code else {})}))


def _failure(code: str, reason: str) -> Ending:
    return Ending(code, {"failure_code": code, "failure_reason": reason})


# The bodies of errors are not documented; a text in `detail` is the guess nearest to the older API.
# Whether an error has a code, and where, is not documented.
REFUSALS = {
    "invalid_request": (_error("detail", 400, "Invalid request"), _error("body", 422, "Invalid body")),
    "content_blocked": (_error("moderated", 400, "Moderated", code="content_moderated"),),
    "credentials": (
        _error("missing", 401, "Not authenticated"),
        _error("wrong", 401, "Invalid API key"),
    ),
    "funds": (
        _error("payment", 402, "Insufficient credits"),
        _error("budget", 400, "The budget is exhausted", code="budget_exhausted"),
    ),
    "rate_limited": (_error("none", 429, "Too many requests"),),
    "upstream_fault": (_error("internal", 500, "Internal Server Error"),),
    "not_found": (_error("generation", 404, "Generation not found"),),
}
ENDINGS = {
    "failed": (
        _failure("generation_failed", "The generation failed"),
        _failure("budget_exhausted", "The budget is exhausted"),
        _failure("output_not_found", "The output was not found"),
    ),
    "blocked": (_failure("content_moderated", "The request was moderated"),),
}
OPTIONS = {"style": Option("manga"), "output_format": Option("jpeg"), "web_search": Option(True)}


class LumaAgents(Dialect):
    """Luma Agents' pictures."""

    name = "luma-agents"
    shape = "poll"
    features = Features(edit=True, keeps_size=True, waiting=True, reasons=True, result_life_s=LIFE_S)
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/v1/generations", "submit", "read"),
        Route("GET", "/v1/generations/{id}", "poll", "poll"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS

    async def authenticate(self, call: Call) -> None:
        """`Authorization: Bearer …`"""
        given = call.headers.get("Authorization")
        if given is None:
            raise self.refused("credentials", "missing")
        if given != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """One text."""
        return Reply(422 if fault.kind == "body" else 400, {"detail": f"{fault.name}: {fault.message}"})

    def nowhere(self, call: Call) -> Reply:
        """The shape of all errors."""
        return Reply(404, {"detail": "Not Found"})

    async def read(self, call: Call) -> Submit:
        """POST /generations: an edit has a source."""
        call.only_query(())
        fields = call.fields()
        kind = fields.choice("type", ("image", "image_edit"))
        pictures = []
        if kind == "image_edit":
            pictures.append(await self._picture(fields.inner("source")))
        for at, item in enumerate(fields.many("image_ref", [], most=MOST_REFERENCES)):
            pictures.append(await self._picture(Fields(item, ("image_ref", at))))
        ratio = fields.choice("aspect_ratio", tuple(SIZES), None)
        own = (pictures[0].width, pictures[0].height) if kind == "image_edit" else SIZES["1:1"]
        width, height = SIZES.get(ratio, own)
        if ratio is None and pictures:
            width, height = pictures[0].width, pictures[0].height
        submit = Submit(
            shape="poll",
            prompt=fields.text("prompt", most=6000),
            width=width,
            height=height,
            model=fields.choice("model", MODELS),
            operation="edit" if pictures else "generate",
            format=fields.choice("output_format", ("png", "jpeg"), "png"),
            inputs=tuple(picture.sha256 for picture in pictures),
            details={"type": kind, "style": fields.text("style", None, most=40)},
        )
        fields.flag("web_search", False)
        fields.close()
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """The record."""
        return Reply(201, self.record(view))

    async def poll(self, call: Call) -> Reply:
        """GET one."""
        return Reply(200, self.record(self.look(self.find(call.at["id"]))))

    def record(self, view: View) -> Any:
        """The generation; the addresses in it are fresh at every look."""
        job = view.job
        return {
            "id": job.id,
            "type": job.details["type"],
            "model": job.model,
            "state": view.word(WORDS),
            "created_at": iso_time(job.created_at),
            "output": [{"type": "image", "url": url} for url in view.urls],
            "failure_code": view.told("failure_code"),
            "failure_reason": view.told("failure_reason"),
        }

    async def _picture(self, inner: Fields) -> Picture:
        """Either an address, or base64 with its type."""
        if inner.has("url"):
            source, name, form = inner.text("url"), "url", "url"
        else:
            source, name, form = inner.text("data", most=32 << 20), "data", "base64"
            inner.choice("media_type", ("image/png", "image/jpeg", "image/webp"))
        inner.close()
        return await self.picture(source, (*inner.path, name), forms=(form,))


DIALECT = LumaAgents
