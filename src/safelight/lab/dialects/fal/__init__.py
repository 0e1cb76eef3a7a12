"""fal: a queue with returned addresses, one status for good and bad ends, callbacks signed with Ed25519."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from safelight.lab.dialects import keys
from safelight.lab.dialects.fal.endpoints import MODELS, OPTIONS, read_size, read_the_rest, without_pictures
from safelight.lab.dialects.fal.words import (
    CANCELED,
    ENDINGS,
    REFUSALS,
    VARIANTS,
    WORDS,
    error_text,
    is_black,
    page,
    refusal,
)
from safelight.lab.job import Job
from safelight.lab.signatures import Ed25519Signed
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.reply import Refused, Reply
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit
from safelight.lab.voice import Notice

CREDENTIALS = {"api_key": keys.api_key("fal")}
SIGNING = Ed25519Signed(
    {
        "id": "X-Fal-Webhook-Request-Id",
        "user": "X-Fal-Webhook-User-Id",
        "timestamp": "X-Fal-Webhook-Timestamp",
        "signature": "X-Fal-Webhook-Signature",
    },
    seeds=keys.callback_secrets("fal"),
    user="lab-user",
)


class Fal(Dialect):
    """fal's queue."""

    name = "fal"
    shape = "callback"
    features = Features(
        edit=True,
        mask=True,
        cancel=True,
        confirms_cancel=True,
        position=True,
        waiting=True,
        reasons=True,
        silent_ends=("black",),
        run_time=True,
        callback="task",
        notices="end",
    )
    credentials = CREDENTIALS
    routes = (
        Route("GET", "/.well-known/jwks.json", "other", "jwks", is_open=True),
        Route("GET", "/{owner}/{app}/requests/{id}/status", "poll", "status"),
        Route("GET", "/{owner}/{app}/requests/{id}", "result", "result"),
        Route("PUT", "/{owner}/{app}/requests/{id}/cancel", "cancel", "stop"),
        Route("GET", "/cluster/{owner}/{app}/requests/{id}/status", "poll", "status"),
        Route("GET", "/cluster/{owner}/{app}/requests/{id}", "result", "result"),
        Route("PUT", "/cluster/{owner}/{app}/requests/{id}/cancel", "cancel", "stop"),
        Route("POST", "/{model:.+}", "submit", "read"),
    )
    notice_shares = ()  # it tells the end only
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS
    signing = SIGNING

    async def authenticate(self, call: Call) -> None:
        """`Authorization: Key …`"""
        given = call.headers.get("Authorization")
        if given is None:
            raise self.refused("credentials", "missing")
        if given != f"Key {self.credentials['api_key']}":
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """A list of details, as validation gives it."""
        kinds = {
            "missing": "value_error.missing",
            "unknown": "value_error.extra",
            "type": "type_error",
            "value": "value_error",
            "picture": "image_load_error",
        }
        kind = kinds.get(fault.kind, "value_error.jsondecode")
        loc = fault.path if fault.path[:1] == ("query",) else ("body", *fault.path)
        detail = [{"loc": list(loc), "msg": fault.message, "type": kind, "url": page(kind), "input": None}]
        return refusal({"status": 422, "detail": detail, "type": "bad_request"})

    def nowhere(self, call: Call) -> Reply:
        """Also for addresses built by hand with the model's subpath."""
        return Reply(405 if "/requests/" in call.path else 404, {"detail": "Not Found"})

    async def read(self, call: Call) -> Submit:
        """POST /{model}: the model's own input object."""
        if call.at["model"] not in MODELS:
            raise self.refused("not_found")
        call.only_query(("fal_webhook",))
        model = MODELS[call.at["model"]]
        fields = call.fields()
        prompt = fields.text("prompt")
        pictures = [await self._picture(fields, name) for name in model.pictures if name == "image_url"]
        if "image_urls" in model.pictures:
            urls = fields.many("image_urls", least=1, most=10)
            pictures += [await self.picture(url, ("image_urls", at)) for at, url in enumerate(urls)]
        has_mask = "mask_url" in model.pictures and (model.needs_mask or fields.has("mask_url"))
        mask = await self._picture(fields, "mask_url") if has_mask else None
        width, height = read_size(fields, model, pictures)
        submit = Submit(
            shape="callback" if "fal_webhook" in call.query else "poll",
            prompt=prompt,
            n=fields.whole("num_images", 1, low=1, high=model.most),
            width=width,
            height=height,
            callback_url=_callback_url(call),
            model=call.at["model"],
            operation=model.operation,
            format=fields.choice("output_format", ("jpeg", "png"), "jpeg"),
            inputs=tuple(picture.sha256 for picture in pictures),
            mask=None if mask is None else mask.sha256,
        )
        seed = fields.whole("seed", 42, low=0)
        read_the_rest(fields)
        submit.details = {"seed": seed, "given": without_pictures(fields.taken)}
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """Where to look, where to fetch, where to cancel."""
        return Reply(
            200,
            {
                "status": "IN_QUEUE",
                **self._links(view.job),
                "gateway_request_id": _gateway_id(view.job),
                "queue_position": max(0, (view.position or 1) - 1),
            },
        )

    async def status(self, call: Call) -> Reply:
        """GET status: COMPLETED says nothing about good or bad."""
        call.only_query(("logs",))
        view = self.look(self._find(call))
        body = {"status": view.word(WORDS), **self._links(view.job)}
        logs = [{"message": "drawing", "level": "INFO"}] if call.query.get("logs") == "1" else None
        if view.phase == "queued":
            return Reply(202, body | {"queue_position": max(0, (view.position or 1) - 1)})
        if view.is_open:
            return Reply(202, body | {"logs": logs})
        body |= {"logs": logs, "metrics": {"inference_time": view.job.fate.latency_s}}
        if view.phase != "done" and not is_black(view):
            ending = view.ending or CANCELED
            body |= {"error": error_text(ending)}
            if ending.values.get("has_type", True):
                body |= {"error_type": ending.values["type"]}
        return Reply(200, body)

    async def result(self, call: Call) -> Reply:
        """GET response: the model's output, or its error with its status."""
        view = self.view(self._find(call))
        if view.is_open:
            return Reply(400, {"detail": "Request is still in progress"})
        if view.phase == "done" or is_black(view):
            return Reply(200, self.record(view))
        values = dict((view.ending or CANCELED).values)
        return refusal(values, is_type_in_body=values.get("has_type", True))

    async def stop(self, call: Call) -> Reply:
        """PUT cancel: out of the line at once; what is drawn already is only asked to stop."""
        try:
            job = self._find(call)
        except Refused:
            return Reply(404, {"status": "NOT_FOUND"})
        is_waiting = job.status == "queued"
        if await self.cancel(job):
            word = "OK" if is_waiting else "CANCELLATION_REQUESTED"
            return Reply(200 if is_waiting else 202, {"status": word})
        return Reply(400, {"status": "ALREADY_COMPLETED"})

    async def jwks(self, call: Call) -> Reply:
        """The public keys of the callbacks."""
        return Reply(200, SIGNING.jwks(self.workshop.studio.moods.of(self.name).secret_rotated))

    def record(self, view: View) -> Any:
        """The output of the model."""
        job = view.job
        urls = [f"{self.workshop.results.base}/results/black"] * job.n if is_black(view) else view.urls
        images = [
            {"url": url, "content_type": f"image/{job.format}", "width": job.width, "height": job.height}
            for url in urls
        ]
        if not is_black(view) and job.model.startswith("fal-ai/nano-banana"):
            return {"images": images, "description": ""}
        return {
            "images": images,
            "timings": {"inference": job.fate.latency_s},
            "seed": job.details["seed"],
            "has_nsfw_concepts": [is_black(view)] * len(images),
            "prompt": job.prompt,
        }

    def notice(self, job: Job, moment: str) -> Notice | None:
        """OK with the output, or ERROR with the detail."""
        view = self.view(job, moment)
        body: dict[str, Any] = {"request_id": job.id, "gateway_request_id": _gateway_id(job)}
        if view.phase == "done" or is_black(view):
            body |= {"status": "OK", "payload": self.record(view)}
            if job.fate.variant == "payload_error":
                body |= {"payload": None, "payload_error": "Response payload is not JSON serializable"}
        else:
            ending = view.ending or CANCELED
            payload = {"detail": ending.values["detail"]}
            body |= {"status": "ERROR", "error": error_text(ending), "payload": payload}
        return self.told(job, body, moment)

    async def _picture(self, fields: Fields, name: str) -> Picture:
        return await self.picture(fields.text(name, most=32 << 20), (name,))

    def _find(self, call: Call) -> Job:
        job = self.find(call.at["id"])
        if job.model.split("/")[:2] != [call.at["owner"], call.at["app"]]:
            raise self.refused("not_found")
        if job.fate.variant == "cluster" and not call.path.startswith("/cluster/"):
            raise self.refused("not_found")
        return job

    def _links(self, job: Job) -> dict[str, str]:
        owner, app = job.model.split("/")[:2]
        place = f"{self.name}/cluster" if job.fate.variant == "cluster" else self.name
        address = f"{self.workshop.results.base}/{place}/{owner}/{app}/requests/{job.id}"
        return {
            "request_id": job.id,
            "response_url": address,
            "status_url": f"{address}/status",
            "cancel_url": f"{address}/cancel",
        }


def _callback_url(call: Call) -> str | None:
    url = call.query.get("fal_webhook")
    if url is not None and urlsplit(url).scheme not in {"http", "https"}:
        raise Fault("value", ("query", "fal_webhook"), "must be a URL")
    return url


def _gateway_id(job: Job) -> str:
    return f"{job.id[:-4]}0000" if job.fate.variant == "other_gateway_id" else job.id


DIALECT = Fal
