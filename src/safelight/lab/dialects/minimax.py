"""MiniMax: the status is always 200, and a code in the body says how it went; counts are strings."""

from __future__ import annotations

import base64
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

CREDENTIALS = {"api_key": keys.api_key("minimax")}
MODELS = ("image-01", "image-01-live")
RATIOS = {
    "1:1": (1024, 1024),
    "16:9": (1280, 720),
    "4:3": (1152, 864),
    "3:2": (1248, 832),
    "2:3": (832, 1248),
    "3:4": (864, 1152),
    "9:16": (720, 1280),
    "21:9": (1344, 576),
}
PICTURE_MOST = 10 << 20
OPTIONS = {"seed": Option(20_261_129), "prompt_optimizer": Option(True)}


def _base(code: int, message: str) -> dict[str, Any]:
    return {"base_resp": {"status_code": code, "status_msg": message}}


def _error(name: str, code: int, message: str) -> Way:
    return Way(name, Reply(200, _base(code, message)))


# 1004 and 2038 are in the client; the other codes are commonly seen, but not confirmed.
REFUSALS = {
    "invalid_request": (_error("2013", 2013, "invalid params"),),
    "content_blocked": (_error("1026", 1026, "input new_sensitive"),),
    "credentials": (
        _error("missing", 1004, "login fail: the API key is missing"),
        _error("wrong", 2049, "invalid api key"),
        _error("real_name", 2038, "real-name verification is required"),
    ),
    "funds": (_error("1008", 1008, "insufficient balance"),),
    "rate_limited": (_error("none", 1002, "rate limit"),),
    "upstream_fault": (
        _error("1000", 1000, "unknown error"),
        _error("1001", 1001, "timeout"),
        _error("1013", 1013, "internal service error"),
    ),
}
ENDINGS = {
    "failed": (Ending("1013", reply=Reply(200, _base(1013, "internal service error"))),),
    "blocked": (
        Ending("1027", reply=Reply(200, _base(1027, "output new_sensitive"))),
        # Every picture was taken by the filter, in an answer that says success.
        Ending("all_failed"),
    ),
}


class MiniMax(Dialect):
    """MiniMax's image endpoint."""

    name = "minimax"
    shape = "sync"
    features = Features(
        edit=True,
        partial_items=True,
        reasons=True,
        silent_ends=("all_failed",),
        cost=True,
        result_life_s=86_400,
        is_refreshable=False,
    )
    credentials = CREDENTIALS
    routes = (Route("POST", "/v1/image_generation", "submit", "read"),)
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
        """One code for all, and a text."""
        return Reply(200, _base(2013, f"invalid params, {fault.name or 'body'}: {fault.message}"))

    async def read(self, call: Call) -> Submit:
        """POST: text, and perhaps a character to draw."""
        fields = call.fields()
        pictures = await self._pictures(fields)
        width, height = _read_size(fields)
        submit = Submit(
            shape="sync",
            prompt=fields.text("prompt", most=1500),
            n=fields.whole("n", 1, low=1, high=9),
            width=width,
            height=height,
            model=fields.choice("model", MODELS),
            operation="edit" if pictures else "generate",
            format="jpeg",
            inputs=tuple(picture.sha256 for picture in pictures),
            details={"response_format": fields.choice("response_format", ("url", "base64"), "url")},
        )
        fields.whole("seed", None)
        fields.flag("prompt_optimizer", False)
        fields.close()
        return submit

    async def drawn(self, call: Call, view: View) -> Reply:
        """The pictures that came out, and how many did not."""
        job = view.job
        if job.details["response_format"] == "url":
            data: dict[str, Any] = {"image_urls": list(view.urls)}
        else:
            pictures = await self.pictures(job)
            data = {"image_base64": [base64.b64encode(picture).decode() for picture in pictures]}
        counts = {"success_count": str(job.delivered), "failed_count": str(job.n - job.delivered)}
        return Reply(200, {"id": job.id, "data": data, "metadata": counts, **_base(0, "success")})

    async def _pictures(self, fields: Fields) -> list[Picture]:
        pictures = []
        for index, value in enumerate(fields.many("subject_reference", [])):
            subject = Fields(value, ("subject_reference", index))
            subject.choice("type", ("character",))
            source = subject.text("image_file", most=2 * PICTURE_MOST)
            subject.close()
            path = ("subject_reference", index, "image_file")
            pictures.append(await self.picture(source, path, most=PICTURE_MOST))
        return pictures


def _read_size(fields: Fields) -> tuple[int, int]:
    """A ratio, or else both sides."""
    ratio = fields.choice("aspect_ratio", tuple(RATIOS), None)
    if ratio is not None or not (fields.has("width") or fields.has("height")):
        return RATIOS[ratio or "1:1"]
    width, height = fields.whole("width", low=512, high=2048), fields.whole("height", low=512, high=2048)
    if width % 8 or height % 8:
        raise fields.fault("value", "width", "and height must be multiples of 8")
    return width, height


DIALECT = MiniMax
