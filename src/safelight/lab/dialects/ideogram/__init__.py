"""Ideogram: at once or with an id, polled or called back under Ed25519; unsafe pictures are billed."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.dialects.ideogram.endpoints import (
    ENDPOINTS,
    Endpoint,
    read_files,
    read_size,
    read_the_rest,
)
from safelight.lab.dialects.ideogram.words import ENDINGS, REFUSALS, WORDS, error
from safelight.lab.job import Job
from safelight.lab.signatures import Ed25519Signed
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.forms import Part
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Reply
from safelight.lab.speech.routes import Route
from safelight.lab.speech.times import iso_time
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit
from safelight.lab.voice import Notice

CREDENTIALS = {"api_key": keys.api_key("ideogram")}
SIGNING = Ed25519Signed(
    {
        "id": "X-Ideogram-Webhook-Generation-Id",
        "user": "X-Ideogram-Webhook-User-Id",
        "timestamp": "X-Ideogram-Webhook-Timestamp",
        "key_id": "X-Ideogram-Webhook-Key-Id",
        "signature": "X-Ideogram-Webhook-Signature",
    },
    seeds=keys.callback_secrets("ideogram"),
    user="lab-user",
)
COST_USD_MICROS = 60_000
OLDER = Endpoint("generate", size="resolution")
OPTIONS = {
    "quality": Option("low"),
    "seed": Option(20_261_129),
    "magic_prompt": Option("off", only=("generate",)),
}


class Ideogram(Dialect):
    """Ideogram's image endpoints of the second generation, and the asynchronous one of the first."""

    name = "ideogram"
    shape = "callback"
    features = Features(
        edit=True,
        mask=True,
        mask_style="black",
        partial_items=True,
        callback="task",
        notices="success",
        keeps_size=True,
        reasons=True,
        silent_ends=("unsafe",),
        cost=True,
        result_life_s=86_400,
        is_refreshable=False,
    )
    credentials = CREDENTIALS
    routes = (
        Route("GET", "/v1/.well-known/jwks.json", "other", "jwks", is_open=True),
        Route("GET", "/{version:v1|v2}/generations/{id}", "poll", "poll"),
        Route("POST", "/v1/ideogram-v4/async/generate", "submit", "read_older"),
        Route("POST", "/v2/image/{endpoint:[a-z-]+/[a-z0-9-]+}", "submit", "read"),
    )
    notice_shares = ()  # it tells the end only
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    signing = SIGNING

    async def authenticate(self, call: Call) -> None:
        """A header of its own."""
        given = call.headers.get("Api-Key")
        if given is None:
            raise self.refused("credentials", "missing")
        if given != self.credentials["api_key"]:
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """A sentence."""
        status = 413 if fault.kind == "picture" and "larger than" in fault.message else 400
        return error(status, f"{fault.name or 'body'}: {fault.message}")

    def nowhere(self, call: Call) -> Reply:
        """The same."""
        return error(404, f"{call.path} does not exist")

    async def read(self, call: Call) -> Submit:
        """POST /v2/image/{action}/{model}: a form, or JSON where no file comes along."""
        endpoint = ENDPOINTS.get(call.at["endpoint"])
        if endpoint is None:
            raise self.refused("invalid_request", "model")
        call.only_query(())
        is_json = call.request.content_type == "application/json"
        fields, parts = (call.fields(), []) if is_json else call.form()
        callback_url = fields.url("webhook_url", None)
        is_async = fields.flag("async", False) or callback_url is not None
        prompt = fields.text("prompt", most=10_000)
        submit = await self._read(endpoint, fields, parts, prompt)
        submit.shape = "sync" if not is_async else "poll" if callback_url is None else "callback"
        submit.model, submit.callback_url = call.at["endpoint"].rpartition("/")[2], callback_url
        return submit

    async def read_older(self, call: Call) -> Submit:
        """POST /v1/ideogram-v4/async/generate: the callback's address is in the query and required."""
        call.only_query(("webhook_url",))
        callback_url = Fields(call.query, ("query",)).url("webhook_url")
        fields, parts = call.form()
        submit = await self._read(OLDER, fields, parts, fields.text("text_prompt", most=10_000))
        submit.shape, submit.model, submit.callback_url = "callback", "ideogram-v4", callback_url
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """The id, and no pictures."""
        return Reply(200, {"generation_id": view.job.id, "seed": view.job.details["seed"]})

    async def drawn(self, call: Call, view: View) -> Reply:
        """The pictures, those that are not safe without an address."""
        body = {"generation_id": view.job.id, "generation_kind": "sampling"}
        return Reply(200, body | self._told(view.job, view.urls))

    async def poll(self, call: Call) -> Reply:
        """GET a generation, by either generation of the API."""
        return Reply(200, self.record(self.look(self.find(call.at["id"]))))

    async def jwks(self, call: Call) -> Reply:
        """The public keys of the callbacks."""
        return Reply(200, SIGNING.jwks(self.workshop.studio.moods.of(self.name).secret_rotated))

    def record(self, view: View) -> Any:
        """The generation; pictures only once it is completed."""
        job = view.job
        status = view.told("status") or view.word(WORDS)
        record: dict[str, Any] = {"generation_id": job.id, "status": status}
        if status == "completed":
            record |= self._told(job, view.urls)
        if reason := view.told("failure_reason"):
            record["failure_reason"] = reason
        return record

    def notice(self, job: Job, moment: str) -> Notice | None:
        """What an answer at once would have been; of failures nothing is told."""
        view = self.view(job, moment)
        if moment != "forged" and self.record(view)["status"] != "completed":
            return None
        # The lie is that no picture was safe.
        return self.told(job, {"generation_id": job.id, **self._told(job, view.urls)}, moment)

    def new_id(self) -> str:
        """Base64 that is safe in addresses."""
        return secrets.token_urlsafe(16)

    async def _read(self, endpoint: Endpoint, fields: Fields, parts: Sequence[Part], prompt: str) -> Submit:
        pictures, mask = await read_files(endpoint, fields, parts, self.workshop.inputs)
        width, height = read_size(endpoint, fields, pictures)
        submit = Submit(
            shape="callback",
            prompt=prompt,
            n=fields.whole("num_images", 1, low=1, high=8),
            width=width,
            height=height,
            operation="inpaint" if mask else "edit" if pictures else endpoint.operation,
            inputs=tuple(picture.sha256 for picture in pictures),
            mask=None if mask is None else mask.sha256,
            details={"seed": fields.whole("seed", 12345, low=0, high=2**31 - 1)},
        )
        read_the_rest(endpoint, fields)
        return submit

    def _told(self, job: Job, urls: Sequence[str]) -> dict[str, Any]:
        is_empty = job.status == "done" and not urls
        lost = [] if is_empty else [""] * (job.n - len(urls))
        items = [
            {
                "url": url,
                "prompt": job.prompt,
                "resolution": f"{job.width}x{job.height}",
                "seed": job.details["seed"] + index,
                "is_image_safe": url != "",
            }
            for index, url in enumerate([*urls, *lost])
        ]
        cost = {"usage_cost_usd_micros": COST_USD_MICROS * job.n}
        return {"created": iso_time(job.created_at), "seed": job.details["seed"], "data": items, **cost}


DIALECT = Ideogram
