"""Recraft: OpenAI's shapes with its own fields, and errors as plain text."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.forms import Part
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

CREDENTIALS = {"api_key": keys.api_key("recraft")}
# The vector models draw SVG, which the lab does not.
_FOURTH = {
    "1:1": (1024, 1024),
    "2:1": (1536, 768),
    "1:2": (768, 1536),
    "3:2": (1280, 832),
    "2:3": (832, 1280),
    "4:3": (1216, 896),
    "3:4": (896, 1216),
    "5:4": (1152, 896),
    "4:5": (896, 1152),
    "6:10": (832, 1344),
    "14:10": (1280, 896),
    "10:14": (896, 1280),
    "16:9": (1344, 768),
    "9:16": (768, 1344),
}
# Of the older models the documented list goes on behind these.
_THIRD = {
    "1:1": (1024, 1024),
    "2:1": (2048, 1024),
    "1:2": (1024, 2048),
    "3:2": (1536, 1024),
    "2:3": (1024, 1536),
    "4:3": (1365, 1024),
    "3:4": (1024, 1365),
    "5:4": (1280, 1024),
    "4:5": (1024, 1280),
}
SIZES = {"recraftv2": _THIRD, "recraftv3": _THIRD, "recraftv4": _FOURTH, "recraftv4_1": _FOURTH}
WITH_STYLES = ("recraftv2", "recraftv3")
OPTIONS = {
    "style": Option("digital_illustration", only=WITH_STYLES),
    "style_id": Option("0a1b2c3d", only=WITH_STYLES),
    "negative_prompt": Option("no fog, no rain", only=WITH_STYLES),
    "seed": Option(20_261_129),
}
CREDITS = 100_000
PICTURE_MOST = 5 << 20


def _text(status: int, message: str) -> Reply:
    return Reply(status, message, content_type="text/plain")


# Documented are the text of 401, that 404 is text too, and that an error may be text or JSON. What moderation
# and money look like is not: there is no way of either here, and the other texts only go with a status.
REFUSALS = {
    "invalid_request": (
        Way("text", _text(400, "invalid request: size is not supported")),
        Way("json", Reply(400, {"message": "invalid request: size is not supported"})),
        Way("model", _text(400, "invalid request: model is not supported")),
    ),
    "credentials": (
        Way("missing", _text(401, "request unauthorized")),
        Way("wrong", _text(401, "request unauthorized")),
    ),
    "rate_limited": (Way("none", _text(429, "too many requests")),),
    "upstream_fault": (
        Way("text", _text(500, "internal server error")),
        Way("json", Reply(500, {"message": "internal server error"})),
        Way("unavailable", _text(503, "service unavailable")),
        # The one documented 404: the address is wrong.
        Way("path", _text(404, "404 page not found")),
    ),
}
ENDINGS = {"failed": (Ending("text", reply=_text(500, "internal server error")),)}


class Recraft(Dialect):
    """Recraft's image endpoints."""

    name = "recraft"
    shape = "sync"
    features = Features(edit=True, mask=True, mask_style="white", keeps_size=True, reasons=True, cost=True)
    credentials = CREDENTIALS
    routes = (
        Route("GET", "/v1/users/me", "other", "account"),
        Route("POST", "/v1/images/generations", "submit", "read"),
        Route("POST", "/v1/images/imageToImage", "submit", "read_edit"),
        Route("POST", "/v1/images/inpaint", "submit", "read_inpaint"),
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
        """A line of text."""
        return _text(400, f"invalid request: {fault.name or 'body'}: {fault.message}")

    def nowhere(self, call: Call) -> Reply:
        """Text as well."""
        return _text(404, "404 page not found")

    async def account(self, call: Call) -> Reply:
        """GET /v1/users/me: the credits that are left."""
        spent = sum(job.cost for job in self.jobs())
        return Reply(
            200, {"id": "lab-user", "email": "lab@example.com", "name": "Lab", "credits": CREDITS - spent}
        )

    async def read(self, call: Call) -> Submit:
        """POST /v1/images/generations"""
        fields = call.fields()
        width, height = _read_size(fields, SIZES[self._model(fields)])
        return self._submit(fields, width=width, height=height)

    async def read_edit(self, call: Call) -> Submit:
        """POST /v1/images/imageToImage: a form with a picture."""
        fields, parts = call.form()
        picture = await self._picture(fields, parts, "image", others=())
        fields.number("strength", low=0, high=1)
        width, height = _drawable(picture)
        return self._submit(fields, operation="edit", width=width, height=height, inputs=(picture.sha256,))

    async def read_inpaint(self, call: Call) -> Submit:
        """POST /v1/images/inpaint: a form with a picture and a mask of its size."""
        fields, parts = call.form()
        picture = await self._picture(fields, parts, "image", others=("mask",))
        mask = await self._picture(fields, parts, "mask", others=("image",))
        if (picture.width, picture.height) != (mask.width, mask.height):
            raise fields.fault("picture", "mask", "must have the size of the image")
        width, height = _drawable(picture)
        return self._submit(
            fields,
            operation="inpaint",
            width=width,
            height=height,
            inputs=(picture.sha256,),
            mask=mask.sha256,
        )

    async def drawn(self, call: Call, view: View) -> Reply:
        """Addresses, or the pictures inline."""
        job = view.job
        if job.details["response_format"] == "url":
            items = [{"url": url} for url in view.urls]
        else:
            pictures = await self.pictures(job)
            items = [{"b64_json": base64.b64encode(picture).decode()} for picture in pictures]
        return Reply(200, {"created": int(job.created_at), "credits": job.cost, "data": items})

    def _model(self, fields: Fields) -> str:
        model = fields.raw("model", "recraftv4")
        if model not in SIZES:
            raise self.refused("invalid_request", "model")
        return str(model)

    def _submit(self, fields: Fields, **more: Any) -> Submit:
        model = self._model(fields)
        submit = Submit(
            shape="sync",
            prompt=fields.text("prompt", most=10_000),
            n=fields.whole("n", 1, low=1, high=6),
            model=model,
            format="webp",
            details={"response_format": fields.choice("response_format", ("url", "b64_json"), "url")},
            **more,
        )
        _read_look(fields, has_styles=model in WITH_STYLES)
        fields.close()
        return submit

    async def _picture(
        self, fields: Fields, parts: list[Part], name: str, *, others: tuple[str, ...]
    ) -> Picture:
        for part in parts:
            if part.name not in {name, *others}:
                raise fields.fault("unknown", part.name, "unknown file")
        found = [part for part in parts if part.name == name]
        if len(found) != 1:
            raise fields.fault("missing", name, "one file is required")
        return await self.workshop.inputs.check(found[0].data, (name,), most=PICTURE_MOST)


def _read_size(fields: Fields, sizes: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """One of the model's sizes, or its ratio."""
    size = fields.text("size", "1:1")
    known = {f"{width}x{height}": (width, height) for width, height in sizes.values()} | dict(sizes)
    if size not in known:
        raise fields.fault("value", "size", "is not supported")
    return known[size]


def _read_look(fields: Fields, *, has_styles: bool) -> None:
    if not has_styles:
        for name in ("style", "style_id", "substyle", "negative_prompt"):
            if fields.has(name):
                raise fields.fault("value", name, "is not supported by this model")
    if fields.text("style", None) is not None and fields.has("style_id"):
        raise fields.fault("value", "style_id", "and style exclude each other")
    fields.text("style_id", None)
    fields.text("substyle", None)
    fields.text("negative_prompt", None)
    fields.whole("random_seed", None)
    controls = fields.inner("controls", {})
    for index, color in enumerate(controls.many("colors", [])):
        inner = Fields(color, (*controls.path, "colors", index))
        inner.many("rgb", least=3, most=3)
        inner.close()
    background = controls.inner("background_color", {})
    background.many("rgb", [], most=3)
    background.close()
    controls.whole("artistic_level", None, low=0, high=5)
    controls.flag("no_text", False)
    controls.close()


def _drawable(picture: Picture) -> tuple[int, int]:
    """The picture's size, in the bounds within which the lab draws."""
    return min(max(picture.width, 64), 2048), min(max(picture.height, 64), 2048)


DIALECT = Recraft
