"""Stability: always a form in; the picture comes as bytes or in JSON, as the header Accept says."""

from __future__ import annotations

from safelight.lab.dialects import keys
from safelight.lab.dialects.stability.endpoints import ENDPOINTS, OPTIONS, read_form
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
from safelight.lab.speech.reply import Reply
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

CREDENTIALS = {"api_key": keys.api_key("stability")}
_AT_ONCE = {situation: ways for situation, ways in REFUSALS.items() if situation != "not_found"}


class Stability(Dialect):
    """Stability's endpoints that draw within the call."""

    name = "stability"
    shape = "sync"
    features = Features(edit=True, mask=True, mask_style="white", keeps_size=True, reasons=True)
    credentials = CREDENTIALS
    routes = (Route("POST", f"/v2beta/stable-image/{{endpoint:{'|'.join(ENDPOINTS)}}}", "submit", "read"),)
    refusals = _AT_ONCE
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
        return error(404, "not_found", f"{call.path} does not exist")

    async def read(self, call: Call) -> Submit:
        """POST one of the endpoints."""
        name = call.at["endpoint"]
        is_json = wants_json(call, default="image/*")
        fields, parts = call.form()
        submit = await read_form(ENDPOINTS[name], fields, parts, self.workshop.inputs, name)
        submit.details["field"] = "image" if is_json else None
        return submit

    async def drawn(self, call: Call, view: View) -> Reply:
        """The picture; a filtered one may be shown all the same."""
        job = view.job
        is_shown = job.delivered or view.told("is_shown", False)
        return picture_reply(
            await self.workshop.painter.picture(job, 0) if is_shown else b"",
            job.format,
            reason="SUCCESS" if view.phase == "done" else FILTERED,
            seed=job.details["seed"],
            field=job.details["field"],
        )


DIALECT = Stability
