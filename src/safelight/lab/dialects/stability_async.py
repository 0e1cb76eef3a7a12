"""Stability's slow endpoints: a submit has an id, and the status of a poll is the state of the job."""

from __future__ import annotations

import time
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.dialects.stability.endpoints import QUEUED, read_form
from safelight.lab.dialects.stability.words import (
    ENDINGS,
    FILTERED,
    REFUSALS,
    error,
    fault_error,
    picture_reply,
    wants_json,
)
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

CREDENTIALS = {"api_key": keys.api_key("stability-async")}
KEPT_S = 86_400.0
# A poll that is answered with a 500 says nothing about the picture: such an ending would look the same.
_BAD_ENDINGS = {
    "blocked": ENDINGS["blocked"],
    "invalid_request": (
        Ending("bad_request", reply=error(400, "bad_request", "image: cannot be processed")),
    ),
}
OPTIONS = {
    "negative_prompt": Option("no fog, no rain"),
    "seed": Option(20_261_129),
    "output_format": Option("jpeg"),
    "creativity": Option(0.35, only=("stable-image-creative-upscale",)),
}


class StabilityAsync(Dialect):
    """Stability's endpoints that take their time."""

    name = "stability-async"
    shape = "poll"
    features = Features(generate=False, edit=True, keeps_size=True, reasons=True, result_life_s=KEPT_S)
    credentials = CREDENTIALS
    routes = (
        Route("POST", f"/v2beta/stable-image/{{endpoint:{'|'.join(QUEUED)}}}", "submit", "read"),
        Route("GET", "/v2beta/results/{id}", "poll", "poll"),
    )
    refusals = REFUSALS
    endings = _BAD_ENDINGS
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
        return error(404, "not_found", f"{call.path} does not exist")

    async def read(self, call: Call) -> Submit:
        """POST one of the endpoints."""
        name = call.at["endpoint"]
        fields, parts = call.form()
        submit = await read_form(QUEUED[name], fields, parts, self.workshop.inputs, name)
        submit.shape = "poll"
        return submit

    def record(self, view: View) -> Any:
        """The id is all there is."""
        return {"id": view.job.id}

    async def poll(self, call: Call) -> Reply:
        """GET the result: 202 while it is drawn, then the picture, or an error; gone after a day."""
        field = "result" if wants_json(call, default="image/*") else None
        job = self.find(call.at["id"])
        view = self.look(job)
        if view.is_open:
            return Reply(
                202, {"id": job.id, "status": "dreaming" if view.phase == "unknown" else "in-progress"}
            )
        kept_s = KEPT_S if job.fate.expire_result_s is None else job.fate.expire_result_s
        if time.time() >= (job.finished_at or 0) + kept_s:
            raise self.refused("not_found")
        if view.ending is not None and view.ending.reply is not None:
            return view.ending.reply
        is_shown = job.delivered or view.told("is_shown", False)
        return picture_reply(
            await self.workshop.painter.picture(job, 0) if is_shown else b"",
            job.format,
            reason="SUCCESS" if view.phase == "done" else FILTERED,
            seed=job.details["seed"],
            field=field,
        )


DIALECT = StabilityAsync
