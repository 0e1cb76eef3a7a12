"""Luma's Dream Machine: pictures by Photon, unsigned callbacks at every change, reasons in words."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.job import Job
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect, Workshop
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Stream, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.times import iso_time
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

PATH = "/dream-machine/v1/generations"
CREDENTIALS = {"api_key": keys.api_key("luma")}
MODELS = ("photon-1", "photon-flash-1")
SIZES = {
    "1:1": (1536, 1536),
    "16:9": (2048, 1152),
    "9:16": (1152, 2048),
    "4:3": (1792, 1344),
    "3:4": (1344, 1792),
    "21:9": (2048, 880),
    "9:21": (880, 2048),
}
WORDS = {"queued": "queued", "running": "dreaming", "done": "completed", "failed": "failed"}
UNKNOWN = "thinking"
"""The word of the lab that nobody has declared: `dreaming` is one of Luma's own."""
HOLD_MOST_S = 60.0


def _error(name: str, status: int, detail: str) -> Way:
    return Way(name, Reply(status, {"detail": detail}))


# The shape and the words of errors are not documented; a text in `detail` is what has been seen.
REFUSALS = {
    "invalid_request": (_error("detail", 400, "Invalid request"), _error("body", 422, "Invalid body")),
    "content_blocked": (_error("moderation", 400, "Prompt not allowed because moderation failed"),),
    "credentials": (
        _error("missing", 403, "Not authenticated"),
        _error("wrong", 401, "Invalid API key"),
    ),
    "funds": (_error("credits", 400, "Insufficient credits"),),
    "rate_limited": (_error("none", 429, "Too many requests"),),
    "upstream_fault": (_error("internal", 500, "Internal Server Error"),),
    "not_found": (_error("generation", 404, "Generation not found"),),
}
ENDINGS = {
    "failed": (
        Ending("internal", {"failure_reason": "Something went wrong, please try again"}),
        Ending("silent", {"failure_reason": None}),
    ),
    "blocked": (
        Ending("prompt", {"failure_reason": "Prompt not allowed because advanced moderation failed"}),
        Ending("image", {"failure_reason": "The generated image did not pass moderation"}),
    ),
}
OPTIONS = {"output_format": Option("png"), "weight": Option(0.35, only=("edit",))}


class Luma(Dialect):
    """Luma's pictures."""

    name = "luma"
    shape = "callback"
    features = Features(
        edit=True,
        list=True,
        list_shows=("prompt", "callback_url"),
        cancel=True,
        waiting=True,
        reasons=True,
        silent_ends=("silent",),
        callback="task",
        notices="changes",
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", f"{PATH}/image", "submit", "read"),
        Route("GET", PATH, "list", "list"),
        Route("GET", f"{PATH}/{{id}}", "poll", "poll"),
        Route("DELETE", f"{PATH}/{{id}}", "cancel", "delete"),
    )
    retry_gaps_s = (0.1, 0.1, 0.1)
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop)
        self._deleted: set[str] = set()

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

    def is_taken(self, status: int) -> bool:
        """By nothing but 200."""
        return status == 200

    async def read(self, call: Call) -> Submit:
        """POST /generations/image: pictures by address only, one comes out."""
        call.only_query(())
        fields = call.fields()
        model = fields.choice("model", MODELS)
        width, height = SIZES[fields.choice("aspect_ratio", tuple(SIZES), "16:9")]
        pictures = await self._pictures(fields)
        submit = Submit(
            shape="callback" if fields.has("callback_url") else "poll",
            prompt=fields.text("prompt", least=3, most=5000),
            width=width,
            height=height,
            callback_url=fields.url("callback_url", None),
            model=model,
            operation="edit" if pictures else "generate",
            format=fields.choice("format", ("jpg", "png"), "jpg").replace("jpg", "jpeg"),
            inputs=tuple(picture.sha256 for picture in pictures),
        )
        hold_s = fields.number("sync_timeout", HOLD_MOST_S, low=0, high=HOLD_MOST_S)
        is_held = fields.flag("sync", False)
        fields.choice("generation_type", ("image",), "image")
        fields.close()
        submit.details = {"request": fields.taken, "hold_s": hold_s if is_held else 0}
        return submit

    async def answer(self, call: Call, job: Job) -> Reply | Stream:
        """With `sync` the answer is held back until the picture is there."""
        if job.details["hold_s"]:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(job.ended.wait(), job.details["hold_s"])
        return Reply(201, self.record(self.view(job)))

    async def poll(self, call: Call) -> Reply:
        """GET one."""
        return Reply(200, self.record(self.look(self._find(call))))

    async def list(self, call: Call) -> Reply:
        """GET many; the order is not documented, here the latest come first."""
        call.only_query(("limit", "offset"))
        query = Fields(call.query, ("query",), is_text=True)
        limit = query.whole("limit", 100, low=1, high=100)
        offset = query.whole("offset", 0, low=0)
        there = [job for job in self.jobs()[::-1] if job.id not in self._deleted]
        page = there[offset : offset + limit]
        return Reply(
            200,
            {
                "generations": [self.record(self.view(job)) for job in page],
                "has_more": len(there) > offset + limit,
                "count": len(page),
                "limit": limit,
                "offset": offset,
            },
        )

    async def delete(self, call: Call) -> Reply:
        """DELETE: it is gone; what becomes of one that is being drawn is not documented, here it ends."""
        job = self._find(call)
        await self.cancel(job)
        self._deleted.add(job.id)
        return Reply(204)

    def record(self, view: View) -> Any:
        """The generation, the same in polls, lists and callbacks, with the whole request in it."""
        job = view.job
        return {
            "id": job.id,
            "generation_type": "image",
            "state": UNKNOWN if view.phase == "unknown" else view.word(WORDS),
            "failure_reason": view.told("failure_reason"),
            "created_at": iso_time(job.created_at),
            "assets": {"image": view.urls[0]} if view.urls else None,
            "model": job.model,
            "request": {"generation_type": "image", **job.details["request"]},
        }

    async def _pictures(self, fields: Fields) -> Sequence[Picture]:
        found = []
        if fields.has("modify_image_ref"):
            found.append(await self._referred(fields.inner("modify_image_ref")))
        for name in ("image_ref", "style_ref"):
            for at, item in enumerate(fields.many(name, [], most=4)):
                found.append(await self._referred(Fields(item, (name, at))))
        character = fields.inner("character_ref", {})
        identity = character.inner("identity0", {})
        urls = identity.many("images", [], most=4)
        identity.close()
        character.close()
        where = (*identity.path, "images")
        found += [await self.picture(url, (*where, at), forms=("url",)) for at, url in enumerate(urls)]
        return found

    async def _referred(self, inner: Fields) -> Picture:
        url = inner.text("url")
        inner.number("weight", 0.85, low=0, high=1)
        inner.close()
        return await self.picture(url, (*inner.path, "url"), forms=("url",))

    def _find(self, call: Call) -> Job:
        if call.at["id"] in self._deleted:
            raise self.refused("not_found")
        return self.find(call.at["id"])


DIALECT = Luma
