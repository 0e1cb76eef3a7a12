"""Kling: an envelope with codes, references of the caller's own, a callback at every change, money as 429."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from random import randrange
from typing import Any
from uuid import uuid4

from safelight.lab.dialects import keys
from safelight.lab.job import Job
from safelight.lab.signatures import StandardSigned
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Stream, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit
from safelight.lab.voice import Notice

MODELS = ("kling-v1", "kling-v1-5", "kling-v2", "kling-v2-new", "kling-v2-1", "kling-v3")
RATIOS = ("16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3", "21:9")
SIDES = {"1k": 1024, "2k": 2048}
WORDS = {"queued": "submitted", "running": "processing", "done": "succeed", "failed": "failed"}
PICTURE_MOST, PICTURE_SIDE, PICTURE_RATIO = 10 << 20, 300, 2.5
CREDENTIALS = {
    "api_key": keys.api_key("kling"),
    "access_key": keys.access_key("kling"),
    "secret_key": keys.secret_key("kling"),
    "callback_secret": keys.standard_secrets("kling")[0],
    "next_callback_secret": keys.standard_secrets("kling")[1],
}


def _error(name: str, status: int, code: int, message: str) -> Way:
    return Way(name, lambda: Reply(status, _envelope(code, message)))


def _envelope(code: int, message: str, **more: Any) -> dict[str, Any]:
    return {"code": code, "message": message, "request_id": str(uuid4()), **more}


REFUSALS = {
    "invalid_request": (
        _error("parameter", 400, 1201, "Invalid parameters"),
        _error("request", 400, 1200, "Invalid request parameters"),
        _error("method", 404, 1202, "The requested method is invalid"),
        _error("model", 404, 1203, "The requested resource does not exist"),
        # What a second use of an external_task_id gets is not documented; it has to be unique.
        _error("duplicate", 400, 1201, "external_task_id already exists"),
    ),
    "content_blocked": (
        _error("policy", 400, 1300, "Trigger platform strategy"),
        _error("content", 400, 1301, "Trigger the content security policy of the platform"),
    ),
    "credentials": (
        _error("failed", 401, 1000, "Authentication failed"),
        _error("empty", 401, 1001, "Authorization is empty"),
        _error("invalid", 401, 1002, "Authorization is invalid"),
        _error("not_yet", 401, 1003, "Authorization is not yet valid"),
        _error("expired", 401, 1004, "Authorization has expired"),
        _error("no_permission", 403, 1103, "Unauthorized access to requested resource"),
        _error("address", 429, 1304, "Trigger the IP whitelisting policy of the platform"),
    ),
    "funds": (
        _error("arrears", 429, 1101, "Account in arrears"),
        _error("pack_used_up", 429, 1102, "Resource pack depleted or expired"),
        _error("account", 429, 1100, "Account exception"),
    ),
    "rate_limited": (_error("none", 429, 1302, "The API request is too fast"),),
    "concurrency_limited": (_error("none", 429, 1303, "parallel task over resource pack limit"),),
    "upstream_fault": (
        _error("internal", 500, 5000, "Server internal error"),
        _error("maintenance", 503, 5001, "Server temporarily unavailable"),
        _error("timeout", 504, 5002, "Server internal timeout"),
        # Only code 0 is a success, whatever the status of the answer.
        _error("in_a_200", 200, 5000, "Server internal error"),
    ),
    "not_found": (_error("task", 404, 1203, "The requested resource does not exist"),),
}
ENDINGS = {
    # In a task there are no codes: only the text tells one from the other.
    "failed": (
        Ending("internal", {"message": "Server internal error, please try again later"}),
        Ending("timeout", {"message": "Task execution timed out"}),
    ),
    "blocked": (
        Ending("risk_control", {"message": "Failure to pass the risk control system"}),
        Ending("content_policy", {"message": "The content triggered the platform's content security policy"}),
    ),
}
VARIANTS = {"newer_word": "a good end is called as the newer API calls it, succeeded"}
OPTIONS = {
    "negative_prompt": Option("no fog, no rain", only=("generate",)),
    "image_reference": Option("subject", only=("edit",)),
    "image_fidelity": Option(0.35, only=("edit",), beside={"image_reference": "subject"}),
    "human_fidelity": Option(0.35, only=("edit",), beside={"image_reference": "subject"}),
    "resolution": Option("2k"),
    "watermark": Option(True),
}


class Kling(Dialect):
    """Kling's images."""

    name = "kling"
    shape = "callback"
    features = Features(
        edit=True,
        list=True,
        look_up=True,
        waiting=True,
        reasons=True,
        cost=True,
        callback="task",
        notices="changes",
        is_signing_optional=True,
        reference="external_task_id",
        result_life_s=30 * 86_400,
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/v1/images/generations", "submit", "read"),
        Route("GET", "/v1/images/generations", "list", "list"),
        Route("GET", "/v1/images/generations/{id}", "poll", "poll"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS
    signing = StandardSigned(keys=keys.standard_secrets("kling"))

    async def authenticate(self, call: Call) -> None:
        """A bearer: the API key, or a JWT of the key pair made for this call."""
        given = call.headers.get("Authorization", "")
        if not given:
            raise self.refused("credentials", "empty")
        token = given.removeprefix("Bearer ")
        if token == given:
            raise self.refused("credentials", "invalid")
        if token != self.credentials["api_key"] and (way := _wrong_with(token)):
            raise self.refused("credentials", way)

    def fault(self, fault: Fault) -> Reply:
        """The envelope, with what is wrong in words."""
        return Reply(400, _envelope(1201, f"{fault.name or 'body'} {fault.message}"))

    def nowhere(self, call: Call) -> Reply:
        """The same envelope."""
        return self.way("invalid_request", "method").made()

    async def read(self, call: Call) -> Submit:
        """POST: one flat object."""
        call.only_query(())
        fields = call.fields()
        if fields.raw("model_name", "kling-v1") not in MODELS:
            raise self.refused("invalid_request", "model")
        picture = await self._picture(fields)
        reference = fields.text("external_task_id", None, least=1, most=500)
        ratio = fields.choice("aspect_ratio", RATIOS, "16:9")
        resolution = fields.choice("resolution", tuple(SIDES), "1k")
        width, height = _sides(ratio, SIDES[resolution])
        submit = Submit(
            shape="callback",
            prompt=fields.text("prompt", most=2500),
            n=fields.whole("n", 1, low=1, high=9),
            width=width,
            height=height,
            reference=reference or "",
            key=reference,
            callback_url=fields.url("callback_url", None),
            model=fields.raw("model_name", "kling-v1"),
            operation="generate" if picture is None else "edit",
            inputs=() if picture is None else (picture.sha256,),
            details={
                "external_task_id": reference,
                "negative_prompt": fields.text("negative_prompt", None, most=2500),
                "aspect_ratio": ratio,
                "resolution": resolution,
            },
        )
        if picture is not None and submit.details["negative_prompt"]:
            raise fields.fault("value", "negative_prompt", "is not supported with an image")
        _take_the_rest(fields, has_picture=picture is not None)
        return submit

    async def repeated(self, call: Call, submit: Submit, job: Job) -> Reply | Stream:
        """An external_task_id is unique: the second one is an error, even of the same body."""
        raise self.refused("invalid_request", "duplicate")

    def accepted(self, call: Call, view: View) -> Reply:
        """The task as it stands, without results."""
        told = ("task_id", "task_status", "task_info", "created_at", "updated_at")
        record = self.record(view)
        return Reply(200, _envelope(0, "SUCCEED", data={name: record[name] for name in told}))

    async def poll(self, call: Call) -> Reply:
        """GET one, by its id or by the caller's."""
        job = self.find_by_reference(call.at["id"]) or self.find(call.at["id"])
        return Reply(200, _envelope(0, "SUCCEED", data=self.record(self.look(job))))

    async def list(self, call: Call) -> Reply:
        """GET many, a page of them, the latest first."""
        call.only_query(("pageNum", "pageSize"))
        query = Fields(call.query, ("query",), is_text=True)
        number = query.whole("pageNum", 1, low=1, high=1000)
        size = query.whole("pageSize", 30, low=1, high=500)
        latest_first = self.jobs()[::-1]
        page = latest_first[(number - 1) * size : number * size]
        return Reply(200, _envelope(0, "SUCCEED", data=[self.record(self.view(job)) for job in page]))

    def record(self, view: View) -> Any:
        """The task object: in the envelope's data for polls, bare in callbacks."""
        job = view.job
        record: dict[str, Any] = {
            "task_id": job.id,
            "task_status": _word(view),
            "task_status_msg": view.told("message", ""),
            "task_info": {"external_task_id": job.details["external_task_id"]},
            "created_at": int(job.created_at * 1000),
            "updated_at": int((job.finished_at or time.time()) * 1000),
        }
        if not view.is_open:
            record["final_unit_deduction"] = str(job.cost)
        if view.phase == "done":
            record["task_result"] = {
                "images": [{"index": index, "url": url} for index, url in enumerate(view.urls)]
            }
        return record

    def notice(self, job: Job, moment: str) -> Notice | None:
        """The bare task object at every change."""
        return self.told(job, self.record(self.view(job, moment)), moment)

    def new_id(self) -> str:
        """A long number."""
        return str(randrange(8 * 10**17, 9 * 10**17))

    async def _picture(self, fields: Fields) -> Picture | None:
        if not fields.has("image"):
            return None
        source = fields.text("image", most=2 * PICTURE_MOST)
        picture = await self.picture(source, ("image",), forms=("url", "base64"), most=PICTURE_MOST)
        low, high = sorted((picture.width, picture.height))
        if low < PICTURE_SIDE or high > low * PICTURE_RATIO:
            raise fields.fault("picture", "image", "is too small, or too long and narrow")
        return picture


def _take_the_rest(fields: Fields, *, has_picture: bool) -> None:
    if fields.choice("image_reference", ("subject", "face"), None) and not has_picture:
        raise fields.fault("value", "image_reference", "needs an image")
    fields.number("image_fidelity", 0.5, low=0, high=1)
    fields.number("human_fidelity", 0.45, low=0, high=1)
    for index, element in enumerate(fields.many("element_list", [])):
        inner = Fields(element, ("element_list", index))
        inner.whole("element_id")
        inner.close()
    watermark = fields.inner("watermark_info", {})
    watermark.flag("enabled", False)
    watermark.close()
    fields.close()


def _sides(ratio: str, side: int) -> tuple[int, int]:
    wide, high = map(int, ratio.split(":"))
    most = max(wide, high)
    return round(side * wide / most), round(side * high / most)


def _wrong_with(token: str) -> str | None:
    """The way in which a JWT is refused, by its signature first; None if it is right."""
    head, _, rest = token.partition(".")
    payload, _, signature = rest.partition(".")
    digest = hmac.digest(CREDENTIALS["secret_key"].encode(), f"{head}.{payload}".encode(), hashlib.sha256)
    try:
        if _decoded(signature) != digest or json.loads(_decoded(head)).get("alg") != "HS256":
            return "failed" if signature else "invalid"
        claims = json.loads(_decoded(payload))
        expires_at, starts_at = float(claims["exp"]), float(claims.get("nbf", 0))
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error):
        return "invalid"
    if claims.get("iss") != CREDENTIALS["access_key"]:
        return "failed"
    if starts_at > time.time():
        return "not_yet"
    return "expired" if expires_at <= time.time() else None


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _word(view: View) -> str:
    is_newer = view.phase == "done" and view.job.fate.variant == "newer_word"
    return "succeeded" if is_newer else str(view.word(WORDS))


DIALECT = Kling
