"""OpenAI's images: drawn within the call, inline, or as a stream; edits as a form or as JSON."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.dialects.openai.parameters import (
    INPUT_BYTES,
    INPUTS_MOST,
    MASK_BYTES,
    MODELS,
    Model,
    check_mask,
    read_look,
    read_size,
    read_stream,
)
from safelight.lab.dialects.openai.streaming import events, usage
from safelight.lab.dialects.openai.words import ENDINGS, REFUSALS, error, fault_error
from safelight.lab.job import Job
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields, Path
from safelight.lab.speech.forms import Part
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Reply, Stream
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

CREDENTIALS = {"api_key": keys.api_key("openai")}
PICTURE_PARTS = {"image", "image[]"}
OPTIONS = {
    "quality": Option("high"),
    "background": Option("transparent"),
    "output_format": Option("webp"),
    "output_compression": Option(70, beside={"output_format": "jpeg"}),
}


def _is_json(call: Call) -> bool:
    return call.request.content_type == "application/json"


class OpenAI(Dialect):
    """OpenAI's image endpoints."""

    name = "openai"
    shape = "sync"
    features = Features(edit=True, mask=True, mask_style="clear", stream=True, reasons=True, cost=True)
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/v1/images/generations", "submit", "read"),
        Route("POST", "/v1/images/edits", "submit", "read_edit_json", when=_is_json),
        Route("POST", "/v1/images/edits", "submit", "read_edit_form"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS

    async def authenticate(self, call: Call) -> None:
        """A bearer."""
        given = call.headers.get("Authorization")
        if given is None:
            raise self.refused("credentials", "missing")
        if given != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """The error object."""
        return fault_error(fault)

    def nowhere(self, call: Call) -> Reply:
        """The same."""
        return error(404, f"Invalid URL ({call.method} {call.path})")

    async def read(self, call: Call) -> Submit:
        """POST /v1/images/generations"""
        fields = call.fields()
        model = self._model(fields)
        fields.choice("moderation", ("auto", "low"), "auto")
        return _submit(fields, model)

    async def read_edit_json(self, call: Call) -> Submit:
        """POST /v1/images/edits with pictures by address, data URL or file id."""
        fields = call.fields()
        model = self._model(fields)
        items = fields.many("images", least=1, most=INPUTS_MOST)
        pictures = [
            await self._linked(item, ("images", index), INPUT_BYTES) for index, item in enumerate(items)
        ]
        given = fields.raw("mask", None)
        mask = None if given is None else await self._linked(given, ("mask",), MASK_BYTES)
        return _edit(fields, model, pictures, mask)

    async def read_edit_form(self, call: Call) -> Submit:
        """POST /v1/images/edits with files."""
        fields, parts = call.form()
        model = self._model(fields)
        for part in parts:
            if part.name not in {*PICTURE_PARTS, "mask"}:
                raise fields.fault("unknown", part.name, "unknown parameter")
        pictures = [await self._filed(part) for part in parts if part.name in PICTURE_PARTS]
        masks = [await self._filed(part, MASK_BYTES) for part in parts if part.name == "mask"]
        if not pictures:
            raise fields.fault("missing", "image", "field required")
        if len(pictures) > INPUTS_MOST or len(masks) > 1:
            raise fields.fault("value", "image", f"at most {INPUTS_MOST} images and one mask")
        return _edit(fields, model, pictures, masks[0] if masks else None)

    async def answer(self, call: Call, job: Job) -> Reply | Stream:
        """A stream where one was asked for."""
        if job.details["partial_images"] is None:
            return await super().answer(call, job)
        ending = self.ending(job.fate.outcome, job.fate.ending_way)
        headers = {"x-request-id": f"req_{job.id}"}
        return Stream(events(job, self.workshop.painter, ending), headers)

    async def drawn(self, call: Call, view: View) -> Reply:
        """The pictures inline; these models never give addresses."""
        job = view.job
        pictures = await self.pictures(job)
        body = {
            "created": int(job.created_at),
            "data": [{"b64_json": base64.b64encode(picture).decode()} for picture in pictures],
            "size": f"{job.width}x{job.height}",
            **job.details["look"],
            "usage": usage(job, len(pictures)),
        }
        return Reply(200, body, {"x-request-id": f"req_{job.id}"})

    def _model(self, fields: Fields) -> Model:
        name = fields.text("model")
        if name not in MODELS:
            raise self.refused("invalid_request", "model")
        return MODELS[name]

    async def _linked(self, value: object, path: Path, most: int) -> Picture:
        item = Fields(value, path)
        if item.has("file_id"):
            raise item.fault("value", "file_id", "there is no such file")
        source = item.text("image_url", most=2 * most)
        picture = await self.picture(source, (*path, "image_url"), most=most)
        item.close()
        return picture

    async def _filed(self, part: Part, most: int = INPUT_BYTES) -> Picture:
        picture = await self.workshop.inputs.check(part.data, (part.name,), most=most)
        if picture.format not in {"PNG", "WEBP", "JPEG"}:
            raise Fault("picture", (part.name,), "must be png, webp or jpg")
        return picture


def _submit(fields: Fields, model: Model, **more: Any) -> Submit:
    width, height = read_size(fields, model)
    look = read_look(fields, model)
    submit = Submit(
        shape="sync",
        prompt=fields.text("prompt", most=32_000),
        n=fields.whole("n", 1, low=1, high=10),
        width=width,
        height=height,
        model=fields.text("model"),
        format=look["output_format"],
        details={"look": look, "partial_images": read_stream(fields)},
        **more,
    )
    fields.close()
    return submit


def _edit(fields: Fields, model: Model, pictures: Sequence[Picture], mask: Picture | None) -> Submit:
    if mask is not None:
        check_mask(fields, mask, pictures[0])
    if fields.has("input_fidelity") and not model.fidelities:
        raise fields.fault("unknown", "input_fidelity", "not supported by this model")
    fields.choice("input_fidelity", model.fidelities, None)
    return _submit(
        fields,
        model,
        operation="edit" if mask is None else "inpaint",
        inputs=tuple(picture.sha256 for picture in pictures),
        mask=None if mask is None else mask.sha256,
    )


DIALECT = OpenAI
