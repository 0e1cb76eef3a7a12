"""Black Forest Labs: one picture a task, an address to poll in the answer, moderation as a state, a secret a task."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from safelight.lab.dialects import keys
from safelight.lab.dialects.bfl.endpoints import ENDPOINTS, OPTIONS, Endpoint, read_size, read_the_rest
from safelight.lab.dialects.bfl.words import ENDINGS, REFUSALS, VARIANTS, WORDS, told
from safelight.lab.job import Job
from safelight.lab.signatures import HmacSigned, Scheme, Unsigned
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.reply import Reply
from safelight.lab.speech.routes import Route
from safelight.lab.speech.times import iso_time
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit
from safelight.lab.voice import Notice

LIFE_S = 600.0
CREDITS = 4
SECRETS = keys.callback_secrets("bfl")
CREDENTIALS = {
    "api_key": keys.api_key("bfl"),
    "callback_secret": SECRETS[0],
    "next_callback_secret": SECRETS[1],
}


def _signed_with(secret: str) -> HmacSigned:
    # The header and what is signed are told by the skills repository only.
    return HmacSigned("X-BFL-Signature", keys=(secret, SECRETS[1]), prefix="sha256=")


class Bfl(Dialect):
    """Black Forest Labs' FLUX."""

    name = "bfl"
    shape = "callback"
    features = Features(
        edit=True,
        mask=True,
        callback="task",
        notices="end",
        is_signing_optional=True,
        reasons=True,
        silent_ends=("silent",),
        cost=True,
        result_life_s=LIFE_S,
        is_refreshable=False,
    )
    credentials = CREDENTIALS
    routes = (
        Route("GET", "/v1/get_result", "poll", "poll"),
        Route("GET", "/us1/v1/get_result", "poll", "poll_cluster"),
        Route("POST", "/v1/{model}", "submit", "read"),
    )
    notice_shares = ()  # it tells the end only
    retry_gaps_s = (1.0, 5.0, 30.0)
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS
    signing = _signed_with(SECRETS[0])

    async def authenticate(self, call: Call) -> None:
        """`x-key: …`"""
        given = call.headers.get("x-key")
        if given is None:
            raise self.refused("credentials", "missing")
        if given != self.credentials["api_key"]:
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """A list of details, as validation gives it."""
        kinds = {"missing": "missing", "unknown": "extra_forbidden", "body": "json_invalid"}
        loc = fault.path if fault.path[:1] == ("query",) else ("body", *fault.path)
        kind = kinds.get(fault.kind, "value_error")
        return told(422, [{"loc": list(loc), "msg": fault.message, "type": kind}])

    def nowhere(self, call: Call) -> Reply:
        """As a path that is not there."""
        return told(404, "Not Found")

    async def read(self, call: Call) -> Submit:
        """POST /v1/{model}: the model's own fields, in one flat object."""
        endpoint = ENDPOINTS.get(call.at["model"])
        if endpoint is None:
            raise Fault("value", ("query", "model"), "there is no such endpoint")
        call.only_query(())
        fields = call.fields()
        pictures, mask = await self._pictures(fields, endpoint)
        width, height = read_size(fields, endpoint, pictures)
        callback_url = fields.url("webhook_url", None)
        submit = Submit(
            shape="poll" if callback_url is None else "callback",
            prompt=fields.text("prompt"),
            width=width,
            height=height,
            callback_url=callback_url,
            model=call.at["model"],
            operation="inpaint" if mask else "edit" if pictures else "generate",
            format=fields.choice("output_format", ("jpeg", "png"), "jpeg"),
            inputs=tuple(picture.sha256 for picture in pictures),
            mask=None if mask is None else mask.sha256,
            details={
                "seed": fields.whole("seed", 42, low=0),
                "secret": fields.text("webhook_secret", None, least=1, most=500),
            },
        )
        read_the_rest(fields, endpoint)
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """Either where to poll, or where the callback will go: never both."""
        job = view.job
        body: dict[str, Any] = {"id": job.id, "cost": float(CREDITS)}
        if job.callback_url is None:
            address = f"{self.workshop.results.base}/{self.name}/us1/v1/get_result?id={job.id}"
            return Reply(200, body | {"polling_url": address})
        return Reply(200, body | {"status": "Pending", "webhook_url": job.callback_url})

    async def poll(self, call: Call) -> Reply:
        """GET at the global address, which knows every task but one of another cluster."""
        job = self._find(call)
        if job.fate.variant == "cluster":
            raise self.refused("not_found", "status")
        return Reply(200, self.record(self.look(job)))

    async def poll_cluster(self, call: Call) -> Reply:
        """GET at the address that the submit has named."""
        return Reply(200, self.record(self.look(self._find(call))))

    def record(self, view: View) -> Any:
        """What polls show."""
        record: dict[str, Any] = {
            "id": view.job.id,
            "status": view.told("status", view.word(WORDS)),
            "result": _result(view) if view.phase == "done" else None,
            "progress": None,
            "details": view.told("details"),
            "preview": None,
        }
        if view.told("error") is not None:
            record |= {"error": view.told("error"), "message": view.told("message")}
        return record

    def notice(self, job: Job, moment: str) -> Notice | None:
        """The end in a shape of its own; that of a moderated task is not documented, so it is the poll's."""
        view = self.view(job, moment)
        record = self.record(view)
        body: dict[str, Any] = {"id": job.id, "status": record["status"], "timestamp": iso_time(time.time())}
        if view.phase == "done":
            body["result"] = record["result"]
        elif record["details"] is not None:
            body |= {"result": None, "details": record["details"]}
        else:
            body |= {"error": view.told("error", "unknown"), "message": view.told("message", "")}
        if job.fate.variant == "task_id":
            body["task_id"] = body.pop("id")
        return self.told(job, body, moment)

    def scheme(self, job: Job) -> Scheme:
        """The secret came with the task; without one nothing is signed."""
        secret = job.details["secret"]
        return _signed_with(secret) if secret else Unsigned()

    def new_id(self) -> str:
        """A UUID."""
        return str(uuid4())

    async def _pictures(self, fields: Fields, endpoint: Endpoint) -> tuple[list[Picture], Picture | None]:
        names = [name for name in endpoint.pictures if endpoint.is_picture_required or fields.has(name)]
        pictures = [await self._picture(fields, name) for name in names]
        has_mask = endpoint.mask is not None and fields.has(endpoint.mask)
        return pictures, await self._picture(fields, str(endpoint.mask)) if has_mask else None

    async def _picture(self, fields: Fields, name: str) -> Picture:
        return await self.picture(fields.text(name, most=32 << 20), (name,), forms=("url", "base64"))

    def _find(self, call: Call) -> Job:
        call.only_query(("id",))
        job_id = Fields(call.query, ("query",), is_text=True).text("id")
        job = self.workshop.books.jobs.get(job_id)
        if job is None or job.dialect != self.name:
            raise self.refused("not_found", "status")
        return job


def _result(view: View) -> dict[str, Any]:
    job = view.job
    return {
        "sample": view.urls[0] if view.urls else None,
        "prompt": job.prompt,
        "seed": job.details["seed"],
        "start_time": job.starts_at,
        "end_time": job.finished_at,
        "duration": job.fate.latency_s,
    }


DIALECT = Bfl
