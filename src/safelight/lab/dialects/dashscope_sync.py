"""DashScope (Model Studio), synchronous: Qwen-Image, a conversation that is answered with addresses of pictures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.dialects.dashscope.words import (
    INSPECTED,
    OUTPUT_INSPECTED,
    REFUSALS,
    fault_error,
    said,
)
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Refused, Reply
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

CREDENTIALS = {"api_key": keys.api_key("dashscope-sync")}
LIFE_S = 24 * 3600.0
SIZES = ("1664*928", "1472*1104", "1328*1328", "1104*1472", "928*1664")
_SIZE = re.compile(r"(\d{2,5})\*(\d{2,5})")


@dataclass(frozen=True, slots=True)
class Model:
    """What one model takes: fixed sizes or any in bounds, pictures in, pictures out."""

    sizes: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    n: int = 1


MODELS = {
    "qwen-image": Model(SIZES),
    "qwen-image-plus": Model(SIZES),
    "qwen-image-max": Model(SIZES),
    "qwen-image-2.0": Model(most=3, n=6),
    "qwen-image-2.0-pro": Model(most=3, n=6),
    "qwen-image-edit": Model(least=1, most=3),
    "qwen-image-edit-plus": Model(least=1, most=3, n=6),
    "qwen-image-edit-max": Model(least=1, most=3, n=6),
}
# Nothing can be asked about later.
SYNC_REFUSALS = {name: ways for name, ways in REFUSALS.items() if name != "not_found"}
OPTIONS = {
    "negative_prompt": Option("no fog, no rain"),
    "seed": Option(20_261_129),
    "prompt_extend": Option(False),
    "watermark": Option(True),
}
ENDINGS = {
    "failed": (
        Ending(
            "internal", reply=said(500, code="InternalError.Algo", message="An internal error has occurred.")
        ),
    ),
    "blocked": (
        Ending("input", reply=said(400, code="DataInspectionFailed", message=INSPECTED)),
        Ending("output", reply=said(400, code="DataInspectionFailed", message=OUTPUT_INSPECTED)),
    ),
    "invalid_request": (
        Ending("url", reply=said(400, code="InvalidURL", message="The request URL is invalid.")),
    ),
}


class DashScopeSync(Dialect):
    """Qwen-Image."""

    name = "dashscope-sync"
    shape = "sync"
    features = Features(
        edit=True,
        reasons=True,
        call_id=True,
        partial_items=True,
        result_life_s=LIFE_S,
        is_refreshable=False,
    )
    credentials = CREDENTIALS
    routes = (Route("POST", "/api/v1/services/aigc/multimodal-generation/generation", "submit", "read"),)
    refusals = SYNC_REFUSALS
    endings = ENDINGS
    options = OPTIONS

    async def authenticate(self, call: Call) -> None:
        """`Authorization: Bearer …`"""
        given = call.headers.get("Authorization")
        if given is None:
            raise self.refused("credentials", "missing")
        if given.removeprefix("Bearer ") != self.credentials["api_key"]:
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """A code and a text."""
        return fault_error(fault)

    def nowhere(self, call: Call) -> Reply:
        """The shape of all errors."""
        return said(404, code="InvalidURL", message="The request URL is invalid.")

    async def read(self, call: Call) -> Submit:
        """POST: one message, of pictures and a text."""
        call.only_query(())
        if call.headers.get("X-DashScope-Async") == "enable":
            text = "current user api does not support asynchronous calls."
            raise Refused(said(403, code="AccessDenied", message=text))
        fields = call.fields()
        name = fields.choice("model", tuple(MODELS))
        prompt, pictures = await self._message(fields.inner("input"), MODELS[name])
        parameters = fields.inner("parameters", {})
        width, height = _size(parameters, MODELS[name], pictures)
        submit = Submit(
            shape="sync",
            prompt=prompt,
            n=parameters.whole("n", 1, low=1, high=MODELS[name].n),
            width=width,
            height=height,
            model=name,
            operation="edit" if pictures else "generate",
            inputs=tuple(picture.sha256 for picture in pictures),
        )
        parameters.text("negative_prompt", None, most=500)
        parameters.whole("seed", None, low=0, high=2**31 - 1)
        parameters.flag("prompt_extend", True)
        parameters.flag("watermark", False)
        parameters.close()
        fields.close()
        submit.details = {"parameters": parameters.taken}
        return submit

    async def drawn(self, call: Call, view: View) -> Reply:
        """One choice, whose message has a part for every picture."""
        content = [{"image": url} for url in view.urls]
        message = {"role": "assistant", "content": content}
        usage = {"image_count": len(content), "width": view.job.width, "height": view.job.height}
        return said(200, output={"choices": [{"finish_reason": "stop", "message": message}]}, usage=usage)

    def record(self, view: View) -> Any:
        """There are none: the answer is all."""
        raise NotImplementedError

    async def _message(self, given: Fields, model: Model) -> tuple[str, list[Picture]]:
        (first,) = given.many("messages", least=1, most=1)
        given.close()
        message = Fields(first, (*given.path, "messages", 0))
        message.choice("role", ("user",))
        parts = [
            Fields(part, (*message.path, "content", at))
            for at, part in enumerate(message.many("content", least=1, most=model.most + 1))
        ]
        message.close()
        *before, last = parts
        pictures = [await self._picture(part) for part in before]
        prompt: str = last.text("text", most=800)
        last.close()
        if not model.least <= len(pictures) <= model.most:
            raise message.fault("value", "content", f"needs {model.least} to {model.most} pictures")
        return prompt, pictures

    async def _picture(self, part: Fields) -> Picture:
        source = part.text("image", most=20 << 20)
        part.close()
        return await self.picture(source, (*part.path, "image"), most=10 << 20)


def _size(parameters: Fields, model: Model, pictures: list[Picture]) -> tuple[int, int]:
    text = parameters.choice("size", model.sizes, None) if model.sizes else parameters.text("size", None)
    if text is None:
        return (pictures[0].width, pictures[0].height) if pictures else (1328, 1328)
    match = _SIZE.fullmatch(text)
    if match is None or not 512 * 512 <= int(match[1]) * int(match[2]) <= 2048 * 2048:
        raise parameters.fault("value", "size", "must be like 1024*1024, from 512*512 to 2048*2048")
    return int(match[1]), int(match[2])


DIALECT = DashScopeSync
