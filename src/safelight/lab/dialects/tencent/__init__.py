"""Tencent Hunyuan: one address, the action in a header, every call signed, every answer with status 200."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from random import randrange
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.dialects.tencent.words import (
    CLARITIES,
    CODES,
    ENDINGS,
    ILLEGAL_PICTURE,
    MESSAGES,
    OPTIONS,
    REFUSALS,
    RESOLUTIONS,
    VARIANTS,
    WITH_PICTURE,
    envelope,
    refusal,
)
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.reply import Reply
from safelight.lab.speech.routes import Route
from safelight.lab.speech.signed_calls import is_signed, read_proof
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

ALGORITHM = "TC3-HMAC-SHA256"
VERSION, REGION = "2023-09-01", "ap-guangzhou"
SUBMIT, QUERY = "SubmitHunyuanImageJob", "QueryHunyuanImageJob"
SIGNED = frozenset({"content-type", "host"})
CLOCKS_DIFFER_S = 300
PICTURE_CHARS, PICTURE_SIDE = 8 << 20, 5000
CREDENTIALS = {"access_key": keys.access_key("tencent"), "secret_key": keys.secret_key("tencent")}
CODES_OF_FAULTS = {
    "missing": "MissingParameter",
    "unknown": "UnknownParameter",
    "body": "InvalidParameter.InvalidParameter",
    "picture": "InvalidParameterValue.ImageRequestError",
}


def _does(action: str) -> Callable[[Call], bool]:
    return lambda call: call.headers.get("X-TC-Action") == action


class Tencent(Dialect):
    """The image jobs of Hunyuan."""

    name = "tencent"
    shape = "poll"
    features = Features(
        edit=True,
        partial_items=True,
        waiting=True,
        reasons=True,
        silent_ends=("every_picture",),
        result_life_s=3600,
        is_refreshable=False,
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/", "submit", "read", when=_does(SUBMIT)),
        Route("POST", "/", "poll", "poll", when=_does(QUERY)),
        Route("POST", "/", "other", "act"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS

    async def authenticate(self, call: Call) -> None:
        """A signature over the whole call; then the headers that say what is called."""
        proof = read_proof(call, ALGORITHM)
        moment = call.headers.get("X-TC-Timestamp", "")
        if proof is None or not moment.isascii() or not moment.isdecimal() or len(moment) > 11:
            raise self.refused("credentials", "signature")
        if proof.access_key != self.credentials["access_key"]:
            raise self.refused("credentials", "key")
        if abs(time.time() - int(moment)) > CLOCKS_DIFFER_S:
            raise self.refused("credentials", "expired")
        day = datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%d")
        secret = f"TC3{self.credentials['secret_key']}"
        if (
            proof.scope != f"{day}/hunyuan/tc3_request"
            or not set(proof.headers) >= SIGNED
            or not is_signed(call, proof, algorithm=ALGORITHM, secret=secret, moment=moment)
        ):
            raise self.refused("credentials", "signature")
        _check_target(call)

    def fault(self, fault: Fault) -> Reply:
        """A code for the kind, and the parameter in words."""
        code = CODES_OF_FAULTS.get(fault.kind, "InvalidParameterValue.ParameterValueError")
        return refusal(code, f"{fault.name or 'The body'} {fault.message}.")

    def nowhere(self, call: Call) -> Reply:
        """There is one path only."""
        return refusal("InvalidParameter", "There is nothing at this path.")

    async def act(self, call: Call) -> Reply:
        """An action that this product does not have."""
        action = call.headers.get("X-TC-Action")
        if action is None:
            return self.way("invalid_request", "missing").made()
        return refusal("InvalidAction", "There is no such action.")

    async def read(self, call: Call) -> Submit:
        """SubmitHunyuanImageJob."""
        call.only_query(())
        fields = call.fields()
        picture = await self._picture(fields)
        resolutions = tuple(RESOLUTIONS) if picture is None else WITH_PICTURE
        width, height = RESOLUTIONS[fields.choice("Resolution", resolutions, _usual(picture))]
        more = CLARITIES.get(fields.choice("Clarity", tuple(CLARITIES), None), 1)
        submit = Submit(
            shape="poll",
            prompt=fields.text("Prompt", most=1024),
            n=fields.whole("Num", 1, low=1, high=4),
            width=width * more,
            height=height * more,
            model="hunyuan",
            operation="generate" if picture is None else "edit",
            inputs=() if picture is None else (picture.sha256,),
        )
        _take_the_rest(fields)
        submit.details = fields.taken
        self._check_jobs()
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """The id, and nothing else."""
        return Reply(200, envelope(JobId=view.job.id))

    async def poll(self, call: Call) -> Reply:
        """QueryHunyuanImageJob."""
        call.only_query(())
        fields = call.fields()
        job_id = fields.text("JobId")
        fields.close()
        return Reply(200, envelope(**self.record(self.look(self.find(job_id)))))

    def record(self, view: View) -> Any:
        """The state as a number in a text, and a word about each picture."""
        state = view.told("state", view.phase)
        missing = view.job.n - len(view.urls) if state == "done" else 0
        gaps = [""] * missing if view.job.fate.variant == "gaps" else []
        return {
            "JobStatusCode": CODES.get(state, CODES["failed"]),
            "JobStatusMsg": MESSAGES.get(state, MESSAGES["failed"]),
            "JobErrorCode": view.told("code", ""),
            "JobErrorMsg": view.told("message", ""),
            "ResultImage": [*view.urls, *gaps],
            "ResultDetails": ["Success"] * len(view.urls) + [ILLEGAL_PICTURE] * missing,
            "RevisedPrompt": [view.job.prompt] * view.job.n if state == "done" else [],
        }

    def new_id(self) -> str:
        """The account's number, a time and a number, with dashes."""
        return f"1300000000-{int(time.time())}-{randrange(10**9):09}"

    def _check_jobs(self) -> None:
        is_limited = self.workshop.studio.moods.of(self.name).variant == "one_job"
        if is_limited and any(job.finished_at is None for job in self.jobs()):
            raise self.refused("concurrency_limited", "jobs")

    async def _picture(self, fields: Fields) -> Picture | None:
        if not fields.has("ContentImage"):
            return None
        inner = fields.inner("ContentImage")
        name, form = ("ImageUrl", "url") if inner.has("ImageUrl") else ("ImageBase64", "base64")
        source = inner.text(name, most=PICTURE_CHARS)
        inner.close()
        picture = await self.picture(source, (*inner.path, name), forms=(form,))
        if picture.format not in ("PNG", "JPEG") or max(picture.width, picture.height) >= PICTURE_SIDE:
            raise inner.fault("picture", name, "must be PNG or JPEG with less than 5000 pixels a side")
        return picture


def _check_target(call: Call) -> None:
    """Raise Fault unless version and region are there and are those of the product."""
    for name, wanted in (("X-TC-Version", VERSION), ("X-TC-Region", REGION)):
        given = call.headers.get(name)
        if given is None:
            raise Fault("missing", (name,), "is missing")
        if given != wanted:
            raise Fault("value", (name,), "is not one of this product")


def _usual(picture: Picture | None) -> str:
    """What is made where nothing is said: with a picture, what is nearest to its shape."""
    if picture is None:
        return "1024:1024"
    shape = picture.width / picture.height
    return min(WITH_PICTURE, key=lambda word: abs(RESOLUTIONS[word][0] / RESOLUTIONS[word][1] - shape))


def _take_the_rest(fields: Fields) -> None:
    fields.text("NegativePrompt", None, most=1024)
    fields.text("Style", None, most=20)
    fields.choice("Revise", (0, 1), 1)
    fields.whole("Seed", None, low=1)
    fields.whole("LogoAdd", 1)
    logo = fields.inner("LogoParam", {})
    logo.url("LogoUrl", None)
    logo.text("LogoImage", None)
    place = logo.inner("LogoRect", {})
    for name in ("X", "Y", "Width", "Height"):
        place.whole(name, None, low=0)
    place.close()
    logo.close()
    fields.close()


DIALECT = Tencent
