"""AUTOMATIC1111's webui: draws within the call, tells one progress for all, and puts a grid first."""

from __future__ import annotations

import base64
import binascii
import json
import time
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.dialects.automatic1111.wishes import (
    SAMPLERS,
    read_checkpoint,
    read_count,
    read_drawing,
    read_flaws,
    read_sides,
    read_the_rest,
)
from safelight.lab.dialects.automatic1111.words import ENDINGS, REFUSALS, VARIANTS, validation
from safelight.lab.job import Job
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Reply
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

# It is run with or without a password; this one lets in who names none, as if it were both.
CREDENTIALS = {"username": keys.access_key("automatic1111"), "password": keys.secret_key("automatic1111")}
PICTURE_MOST = 20 << 20
OPTIONS = {
    "negative_prompt": Option("no fog, no rain"),
    "steps": Option(21),
    "cfg_scale": Option(6.5),
    "sampler_name": Option("Euler a"),
    "seed": Option(20_261_129),
    "denoising_strength": Option(0.35, only=("edit", "inpaint")),
}


class Automatic1111(Dialect):
    """The webui's API."""

    name = "automatic1111"
    shape = "sync"
    features = Features(
        edit=True,
        mask=True,
        mask_style="white",
        progress=True,
        reasons=True,
        is_open=True,
        reference="force_task_id",
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/sdapi/v1/txt2img", "submit", "read"),
        Route("POST", "/sdapi/v1/img2img", "submit", "read_edit"),
        Route("GET", "/sdapi/v1/progress", "other", "progress"),
        Route("POST", "/sdapi/v1/interrupt", "cancel", "interrupt"),
        Route("POST", "/internal/progress", "other", "own_progress", is_open=True),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS

    async def authenticate(self, call: Call) -> None:
        """Basic."""
        header = call.headers.get("Authorization")
        if header is None:
            return
        kind, _, encoded = header.partition(" ")
        if kind.lower() != "basic":
            raise self.refused("credentials", "missing")
        try:
            given = base64.b64decode(encoded, validate=True).decode()
        except (binascii.Error, ValueError):
            given = ""
        if given != f"{self.credentials['username']}:{self.credentials['password']}":
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """A list of what does not fit; a picture is only opened after that."""
        return self.way("invalid_request", "image").made() if fault.kind == "picture" else validation(fault)

    def nowhere(self, call: Call) -> Reply:
        """The framework's own."""
        return Reply(404, {"detail": "Not Found"})

    async def read(self, call: Call) -> Submit:
        """POST txt2img."""
        return self._submit(call.fields(), None)

    async def read_edit(self, call: Call) -> Submit:
        """POST img2img."""
        fields = call.fields()
        if not fields.many("init_images", []):
            raise self.refused("invalid_request", "no_image")
        pictures = [
            await self._picture(source, ("init_images", index))
            for index, source in enumerate(fields.many("init_images"))
        ]
        mask = await self._picture(fields.raw("mask"), ("mask",)) if fields.has("mask") else None
        submit = self._submit(
            fields,
            mask,
            operation="edit" if mask is None else "inpaint",
            inputs=tuple(picture.sha256 for picture in pictures),
        )
        submit.details["flaws"] = read_flaws(fields, pictures[0], has_mask=mask is not None)
        return submit

    async def drawn(self, call: Call, view: View) -> Reply:
        """The pictures, before several of them the grid; what was asked, and what was done as a text."""
        job = view.job
        pictures = await self.pictures(job)
        has_grid = len(pictures) > 1 and job.fate.variant != "no_grid"
        if has_grid:
            pictures.insert(0, await self.workshop.painter.picture(job, job.n))
        images = [base64.b64encode(picture).decode() for picture in pictures]
        asked = {name: value for name, value in job.details.items() if name != "flaws"}
        body = {
            "images": images if job.details["send_images"] else [],
            "parameters": asked | {"prompt": job.prompt, "width": job.width, "height": job.height},
            "info": json.dumps(_info(job, has_grid=has_grid)),
        }
        return Reply(200, body)

    async def progress(self, call: Call) -> Reply:
        """GET progress: of whatever is drawn now."""
        call.only_query(("skip_current_image",))
        job = self._open_job()
        done = 0.0 if job is None else self.view(job).progress / 100
        state = {
            "skipped": False,
            "interrupted": False,
            "job": "" if job is None else "scripts_txt2img",
            "job_count": 0 if job is None else 1,
            "job_timestamp": time.strftime("%Y%m%d%H%M%S", time.gmtime()),
            "job_no": 0,
            "sampling_step": 0 if job is None else int(done * job.details["steps"]),
            "sampling_steps": 0 if job is None else job.details["steps"],
        }
        eta = 0.0 if job is None else max(0.0, job.ends_at - time.time())
        body = {
            "progress": done,
            "eta_relative": eta,
            "state": state,
            "current_image": None,
            "textinfo": None,
        }
        return Reply(200, body)

    async def own_progress(self, call: Call) -> Reply:
        """POST /internal/progress: of one request, by the id that it was given."""
        fields = call.fields()
        job = self.find_by_reference(fields.text("id_task"))
        fields.whole("id_live_preview", -1)
        fields.flag("live_preview", False)
        fields.close()
        status = None if job is None else job.status
        body = {
            "active": status == "running",
            "queued": status == "queued",
            "completed": status not in {None, "running", "queued"},
            "progress": self.view(job).progress / 100 if job is not None and status == "running" else None,
            "eta": None,
            "live_preview": None,
            "id_live_preview": None,
            "textinfo": None,
        }
        return Reply(200, body)

    async def interrupt(self, call: Call) -> Reply:
        """POST interrupt: whatever is drawn now."""
        job = self._open_job()
        if job is not None:
            await self.cancel(job)
        return Reply(200, {})

    def _open_job(self) -> Job | None:
        return next((job for job in self.jobs() if job.finished_at is None), None)

    def _submit(self, fields: Fields, mask: Picture | None, **more: Any) -> Submit:
        sampler = fields.text("sampler_name", None) or fields.text("sampler_index", "Euler")
        if sampler not in SAMPLERS:
            raise self.refused("invalid_request", "sampler")
        if fields.text("script_name", ""):  # the lab has none
            raise self.refused("invalid_request", "script")
        width, height = read_sides(fields)
        submit = Submit(
            shape="sync",
            prompt=fields.text("prompt", ""),
            n=read_count(fields),
            width=width,
            height=height,
            reference=fields.text("force_task_id", ""),
            model=read_checkpoint(fields),
            mask=None if mask is None else mask.sha256,
            details=read_drawing(fields) | {"sampler_name": sampler},
            **more,
        )
        read_the_rest(fields, has_picture=bool(submit.inputs))
        return submit

    async def _picture(self, source: object, path: tuple[str | int, ...]) -> Picture:
        return await self.picture(source, path, forms=("base64", "data"), most=PICTURE_MOST)


def _info(job: Job, *, has_grid: bool) -> dict[str, Any]:
    first = max(job.details["seed"], 0)
    return {
        "prompt": job.prompt,
        "all_prompts": [job.prompt] * job.delivered,
        "seed": first,
        "all_seeds": [first + index for index in range(job.delivered)],
        "width": job.width,
        "height": job.height,
        "sampler_name": job.details["sampler_name"],
        "steps": job.details["steps"],
        "sd_model_name": job.model,
        "index_of_first_image": int(has_grid),
    }


DIALECT = Automatic1111
