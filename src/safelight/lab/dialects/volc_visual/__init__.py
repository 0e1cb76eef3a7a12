"""Volcengine Visual (Jimeng): signed calls, a poll that is a POST, the first verdict in the outer code."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from math import isqrt
from random import randrange
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.dialects.volc_visual.words import (
    ENDINGS,
    GOOD,
    OPTIONS,
    REFUSALS,
    VARIANTS,
    WORDS,
    envelope,
    refusal,
    turned_away,
)
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.reply import Reply
from safelight.lab.speech.routes import Route
from safelight.lab.speech.signed_calls import Proof, is_signed, read_proof
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

ALGORITHM = "HMAC-SHA256"
VERSION = "2022-08-31"
SUBMIT, GET_RESULT = "CVSync2AsyncSubmitTask", "CVSync2AsyncGetResult"
REMEMBERED_S, RESULT_LIFE_S = 12 * 3600, 24 * 3600
# How far X-Date may be from now is not documented.
CLOCKS_DIFFER_S = 900
SIGNED = frozenset({"host", "x-date"})
MODEL = "jimeng_t2i_v40"
MOST_PICTURES = 10
LEAST_AREA, MOST_AREA = 1024 * 1024, 4096 * 4096
CREDENTIALS = {"access_key": keys.access_key("volc-visual"), "secret_key": keys.secret_key("volc-visual")}


def _does(action: str) -> Callable[[Call], bool]:
    return lambda call: (call.query.get("Action"), call.query.get("Version")) == (action, VERSION)


class VolcVisual(Dialect):
    """Jimeng's pictures at Volcengine's visual service."""

    name = "volc-visual"
    shape = "poll"
    # Cancelling exists (CVCancelTask), but what it answers is not known.
    features = Features(
        edit=True, waiting=True, reasons=True, silent_ends=("expired",), result_life_s=RESULT_LIFE_S
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/", "submit", "read", when=_does(SUBMIT)),
        Route("POST", "/", "poll", "poll", when=_does(GET_RESULT)),
        Route("POST", "/", "other", "act"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS

    async def authenticate(self, call: Call) -> None:
        """A signature over the whole call."""
        if "Authorization" not in call.headers:
            raise self.refused("credentials", "token")
        proof = read_proof(call, ALGORITHM)
        if proof is None:
            raise self.refused("credentials", "authorization")
        if proof.access_key != self.credentials["access_key"]:
            raise self.refused("credentials", "access_key")
        moment = call.headers.get("X-Date", "")
        if abs(time.time() - _read_date(moment)) > CLOCKS_DIFFER_S:
            raise self.refused("credentials", "timestamp")
        if not self._is_proved(call, proof, moment):
            raise self.refused("credentials", "signature")

    def fault(self, fault: Fault) -> Reply:
        """One number for all mistakes, and a text."""
        return refusal(400, 50200, f"{fault.name or 'body'} {fault.message}")

    def nowhere(self, call: Call) -> Reply:
        """There is one path only."""
        return turned_away(404, "InvalidActionOrVersion", 100008, "There is nothing at this path.")

    async def act(self, call: Call) -> Reply:
        """An action that this service does not have in this version."""
        return turned_away(404, "InvalidActionOrVersion", 100008, "Could not find operation for version.")

    async def read(self, call: Call) -> Submit:
        """CVSync2AsyncSubmitTask."""
        call.only_query(("Action", "Version"))
        fields = call.fields()
        pictures = await self._pictures(fields)
        width, height = _sides(fields)
        submit = Submit(
            shape="poll",
            prompt=fields.text("prompt", most=800),
            # Left to itself the model decides how many pictures it makes.
            n=1 if fields.flag("force_single", False) else 2,
            width=width,
            height=height,
            model=fields.choice("req_key", (MODEL,)),
            operation="edit" if pictures else "generate",
            inputs=tuple(pictures),
        )
        fields.number("scale", 0.5, low=0, high=1)
        fields.number("min_ratio", 1 / 16, low=1 / 16, high=16)
        fields.number("max_ratio", 16, low=1 / 16, high=16)
        fields.whole("seed", -1, low=-1, high=2**31 - 1)
        fields.flag("use_pre_llm", True)
        fields.close()
        submit.details = fields.taken
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """The id, and nothing else."""
        return Reply(200, envelope(GOOD, {"task_id": view.job.id}, "Success"))

    async def poll(self, call: Call) -> Reply:
        """CVSync2AsyncGetResult; an id that is not known is no error but a state."""
        call.only_query(("Action", "Version"))
        fields = call.fields()
        model, job_id = fields.text("req_key"), fields.text("task_id")
        is_by_url = _wishes(fields.text("req_json", "{}", least=2))
        fields.close()
        job = self.find(job_id, "state")
        if job.model != model:
            raise self.refused("not_found", "state")
        view = self.look(job)
        if code := view.told("code"):
            return Reply(view.told("http"), envelope(code, view.told("data"), view.told("message")))
        data = self.record(view)
        if view.phase == "done" and (not is_by_url or job.fate.variant == "inline"):
            texts = [base64.b64encode(raw).decode() for raw in await self.pictures(job)]
            data |= {"image_urls": None, "binary_data_base64": texts}
        return Reply(200, envelope(GOOD, data, "Success"))

    def record(self, view: View) -> Any:
        """The state; addresses where they were asked for."""
        is_over = view.phase == "done"
        is_forgotten = view.job.finished_at is not None and time.time() > view.job.created_at + REMEMBERED_S
        return {
            "status": "expired" if is_forgotten else view.word(WORDS),
            "image_urls": list(view.urls) if is_over else None,
            "binary_data_base64": [] if is_over else None,
        }

    def new_id(self) -> str:
        """A long number."""
        return str(randrange(7 * 10**18, 8 * 10**18))

    def _is_proved(self, call: Call, proof: Proof, moment: str) -> bool:
        is_whole = set(proof.headers) >= SIGNED and proof.scope == f"{moment[:8]}/cn-north-1/cv/request"
        secret = self.credentials["secret_key"]
        return is_whole and is_signed(call, proof, algorithm=ALGORITHM, secret=secret, moment=moment)

    async def _pictures(self, fields: Fields) -> list[str]:
        """The hashes of those that came by address, then of those that came as base64."""
        hashes = []
        for name, form in (("image_urls", "url"), ("binary_data_base64", "base64")):
            for at, source in enumerate(fields.many(name, [], most=MOST_PICTURES)):
                hashes.append((await self.picture(source, (name, at), forms=(form,))).sha256)
        if len(hashes) > MOST_PICTURES:
            raise fields.fault("value", "image_urls", f"must not be more than {MOST_PICTURES}")
        return hashes


def _sides(fields: Fields) -> tuple[int, int]:
    """By width and height, or by an area."""
    width, height = fields.whole("width", None, low=1), fields.whole("height", None, low=1)
    if (width is None) != (height is None):
        raise fields.fault("missing", "width" if width is None else "height", "must be given with the other")
    area = fields.whole("size", 2048 * 2048, low=LEAST_AREA, high=MOST_AREA)
    if width is None:
        return isqrt(area), isqrt(area)
    if not LEAST_AREA <= width * height <= MOST_AREA:
        raise fields.fault("value", "width", "makes an area that is too small or too large")
    return width, height


def _wishes(text: str) -> bool:
    """Whether addresses are wanted; the wishes are JSON inside JSON."""
    try:
        wishes = Fields(json.loads(text), ("req_json",))
    except ValueError:
        raise Fault("type", ("req_json",), "is not JSON") from None
    is_by_url: bool = wishes.flag("return_url", False)
    wishes.raw("logo_info", None)
    wishes.close()
    return is_by_url


def _read_date(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


DIALECT = VolcVisual
