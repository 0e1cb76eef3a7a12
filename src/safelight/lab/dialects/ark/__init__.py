"""Ark (Seedream): drawn within the call, as addresses or inline; errors also in answers with 200."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.dialects.ark.words import ENDINGS, OUTPUT_BLOCKED, REFUSALS, VARIANTS, error, told
from safelight.lab.job import Job
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Reply, Stream
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

CREDENTIALS = {"api_key": keys.api_key("ark")}
# Models have names on one site and others on the other; an endpoint of one's own may stand for a model.
MODELS = re.compile(r"((doubao|dola)-)?seed(ream|edit)-[0-9]-[0-9]-([a-z0-9]+-)?[0-9]{6}|ep-[a-z0-9-]+")
# Of these the ratio is chosen by the prompt: here one that nobody has asked for.
ABOUT = {"1K": (1120, 896), "2K": (2240, 1792), "4K": (4480, 3584)}
SIDE_LEAST, SIDE_MOST = 256, 4096
PICTURES_MOST = 15
OPTIONS = {"seed": Option(20_261_129), "watermark": Option(True), "resolution": Option("4K")}
_SIZE = re.compile(r"([0-9]{3,4})x([0-9]{3,4})")


class Ark(Dialect):
    """Ark's image endpoint."""

    name = "ark"
    shape = "sync"
    features = Features(
        edit=True,
        partial_items=True,
        stream=True,
        reasons=True,
        cost=True,
        result_life_s=86_400,
        is_refreshable=False,
    )
    credentials = CREDENTIALS
    routes = (Route("POST", "/api/v3/images/generations", "submit", "read"),)
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS

    async def authenticate(self, call: Call) -> None:
        """A bearer."""
        given = call.headers.get("Authorization")
        if given is None:
            raise self.refused("credentials", "missing")
        if given != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """One of two codes."""
        code = "MissingParameter" if fault.kind == "missing" else "InvalidParameter"
        return error(400, code, f"`{fault.name or 'body'}` {fault.message}.", param=fault.name)

    def nowhere(self, call: Call) -> Reply:
        """The same shape."""
        return error(404, "InvalidAction", f"{call.path} was not found.", kind="NotFound")

    async def read(self, call: Call) -> Submit:
        """POST: text alone, or with one picture or several."""
        fields = call.fields()
        if MODELS.fullmatch(fields.text("model")) is None:
            raise self.refused("invalid_request", "model")
        pictures = await self._pictures(fields)
        width, height = _read_size(fields)
        submit = Submit(
            shape="sync",
            prompt=fields.text("prompt"),
            n=_read_count(fields),
            width=width,
            height=height,
            model=fields.text("model"),
            operation="edit" if pictures else "generate",
            format=fields.choice("output_format", ("jpeg", "png"), "jpeg"),
            inputs=tuple(picture.sha256 for picture in pictures),
            details={
                "response_format": fields.choice("response_format", ("url", "b64_json"), "url"),
                "stream": fields.flag("stream", False),
                "seed": fields.whole("seed", -1, low=-1, high=2**31 - 1),
            },
        )
        if len(pictures) + submit.n > PICTURES_MOST:
            raise fields.fault("value", "image", f"pictures in and out are at most {PICTURES_MOST}")
        _read_the_rest(fields)
        return submit

    async def answer(self, call: Call, job: Job) -> Reply | Stream:
        """A stream where one was asked for."""
        return Stream(self._events(job)) if job.details["stream"] else await super().answer(call, job)

    async def drawn(self, call: Call, view: View) -> Reply:
        """The pictures; those that are missing are told among them, or by one error beside them."""
        job = view.job
        body: dict[str, Any] = {"model": job.model, "created": int(job.created_at)}
        body["data"] = [await self._item(view, index) for index in range(job.delivered)]
        code, lost = view.told("code", OUTPUT_BLOCKED), job.n - job.delivered
        is_beside = view.told("where", "top" if job.fate.variant == "error_beside" else "items") == "top"
        # Nothing at all, without any error, is how an empty success looks.
        if lost and (view.phase != "done" or job.delivered):
            if is_beside:
                body["error"] = told(code)
            else:
                body["data"] += [{"error": told(code)}] * lost
        return Reply(200, body | {"usage": _usage(job)})

    async def _events(self, job: Job) -> AsyncIterator[bytes]:
        await job.ended.wait()
        view = self.view(job)
        if view.ending is not None and view.ending.reply is not None:
            yield _event({"type": "error", **view.ending.reply.body})
        else:
            for index in range(job.n):
                yield await self._told_one(view, index)
            yield _event({"type": "image_generation.completed", "model": job.model, "usage": _usage(job)})
        yield b"data: [DONE]\n\n"

    async def _told_one(self, view: View, index: int) -> bytes:
        job = view.job
        body = {"model": job.model, "created": int(job.created_at), "image_index": index}
        if index < job.delivered:
            item = await self._item(view, index)
            return _event({"type": "image_generation.partial_succeeded", **body, **item})
        failure = told(view.told("code", OUTPUT_BLOCKED))
        return _event({"type": "image_generation.partial_failed", **body, "error": failure})

    async def _item(self, view: View, index: int) -> dict[str, Any]:
        job = view.job
        item: dict[str, Any] = {"size": f"{job.width}x{job.height}", "output_format": job.format}
        if job.details["response_format"] == "url":
            return {"url": view.urls[index], **item}
        picture = await self.workshop.painter.picture(job, index)
        return {"b64_json": base64.b64encode(picture).decode(), **item}

    async def _pictures(self, fields: Fields) -> list[Picture]:
        given = fields.raw("image", [])
        sources = [given] if isinstance(given, str) else fields.many("image", [], most=PICTURES_MOST - 1)
        return [await self.picture(source, ("image", at)) for at, source in enumerate(sources)]


def _read_size(fields: Fields) -> tuple[int, int]:
    size = fields.text("size", "2K")
    if size in ABOUT:
        return ABOUT[size]
    match = _SIZE.fullmatch(size)
    sides = (0, 0) if match is None else (int(match[1]), int(match[2]))
    # The exact bounds differ from model to model and are not in the facts: these hold for all.
    if not all(SIDE_LEAST <= side <= SIDE_MOST for side in sides):
        raise fields.fault("value", "size", "must be 1K, 2K, 4K or like 2048x2048")
    return sides


def _read_count(fields: Fields) -> int:
    """How many pictures: one, or as many as are allowed for a sequence."""
    is_sequence = fields.choice("sequential_image_generation", ("auto", "disabled"), "disabled") == "auto"
    options = fields.inner("sequential_image_generation_options", {})
    most: int = options.whole("max_images", PICTURES_MOST, low=1, high=PICTURES_MOST)
    options.close()
    return most if is_sequence else 1


def _read_the_rest(fields: Fields) -> None:
    fields.number("guidance_scale", 2.5, low=1, high=10)
    fields.flag("watermark", True)
    options = fields.inner("optimize_prompt_options", {})
    options.choice("mode", ("standard", "fast"), "standard")
    options.choice("thinking", ("auto", "enabled", "disabled"), "auto")
    options.close()
    for index, tool in enumerate(fields.many("tools", [])):
        inner = Fields(tool, ("tools", index))
        inner.choice("type", ("web_search",))
        inner.close()
    fields.close()


def _usage(job: Job) -> dict[str, int]:
    tokens = job.width * job.height // 256 * job.delivered
    return {"generated_images": job.delivered, "output_tokens": tokens, "total_tokens": tokens}


def _event(body: dict[str, Any]) -> bytes:
    return f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode()


DIALECT = Ark
