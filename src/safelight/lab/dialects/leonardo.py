"""Leonardo.Ai: text to picture with an id, and callbacks that belong to the key and repeat its secret."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID, uuid5

from safelight.lab.dialects import keys
from safelight.lab.job import Job
from safelight.lab.signatures import Parcel, StaticToken
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.times import iso_time
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit
from safelight.lab.voice import Notice

USER_ID = "4f1e6a1c-6a0e-4a53-9a43-0c2d0f6a7a11"
CREDITS = 8
SECRETS = keys.callback_secrets("leonardo")
CREDENTIALS = {
    "api_key": keys.api_key("leonardo"),
    "callback_secret": SECRETS[0],
    "next_callback_secret": SECRETS[1],
}
# There is no word for waiting.
WORDS = {"queued": "PENDING", "running": "PENDING", "done": "COMPLETE", "failed": "FAILED"}
CONTRASTS = (1.0, 1.3, 1.8, 2.5, 3, 3.0, 3.5, 4, 4.0, 4.5)
LARGE = 768
PHOENIX = "de7d3faf-762f-48e0-b3b7-9d0ac3a3fcf3"
_NUMBERS = {
    "guidance_scale": (1.0, 20.0),
    "init_strength": (0.1, 0.9),
    "contrastRatio": (0.0, 1.0),
    "photoRealStrength": (0.45, 0.55),
    "promptMagicStrength": (0.1, 1.0),
}
_FLAGS = (
    *("alchemy", "ultra", "public", "tiling", "photoReal", "promptMagic", "expandedDomain"),
    *("enhancePrompt", "fantasyAvatar", "highContrast", "highResolution"),
)


def _error(name: str, status: int, text: str, code: str = "unexpected") -> Way:
    return Way(name, Reply(status, {"error": text, "path": "$", "code": code}))


REFUSALS = {
    "invalid_request": (
        _error("value", 400, "invalid value for num_images"),
        _error("model", 400, "the model does not exist"),
    ),
    # The wordings of moderation and of credits are not documented; these have been reported.
    "content_blocked": (_error("moderated", 400, "content moderation filter: the prompt is not allowed"),),
    "credentials": (
        _error("denied", 401, "Authentication hook unauthorized this request", "access-denied"),
        # The status of the code is not documented.
        _error("denied_400", 400, "Access denied", "access-denied"),
        _error("hook", 500, "Invalid response from authorization hook"),
    ),
    "funds": (_error("tokens", 400, "not enough api tokens to perform this operation"),),
    # What is beyond the key's concurrency waits in the line; too many calls may be refused.
    "rate_limited": (_error("none", 429, "too many requests"),),
    "upstream_fault": (_error("internal", 500, "an unexpected error occurred"),),
    "not_found": (Way("null", Reply(200, {"generations_by_pk": None})),),
}
ENDINGS = {"failed": (Ending("failed"),)}
OPTIONS = {
    "negative_prompt": Option("no fog, no rain"),
    "seed": Option(20_261_129),
    "guidance_scale": Option(4.5),
    "style": Option("CREATIVE"),
}
VARIANTS = {"nsfw": "the pictures are there, and marked as nsfw"}


class Leonardo(Dialect):
    """Leonardo's generations."""

    name = "leonardo"
    shape = "callback"
    features = Features(
        list=True,
        reasons=True,
        silent_ends=("failed",),
        cost=True,
        callback="account",
        notices="end",
        is_signing_optional=True,
    )
    credentials = CREDENTIALS
    routes = (
        Route("GET", "/api/rest/v1/me", "other", "me"),
        Route("POST", "/api/rest/v1/generations", "submit", "read"),
        Route("GET", "/api/rest/v1/generations/user/{user}", "list", "list"),
        Route("GET", "/api/rest/v1/generations/{id}", "poll", "poll"),
    )
    notice_shares = ()  # it tells the end only
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS
    signing = StaticToken("Authorization", keys=SECRETS, template="Bearer {}")

    async def authenticate(self, call: Call) -> None:
        """`Authorization: Bearer …`"""
        if call.headers.get("Authorization") != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials", "denied")

    def fault(self, fault: Fault) -> Reply:
        """One text."""
        text = f"{fault.name or 'body'}: {fault.message}"
        return Reply(400, {"error": text, "path": "$", "code": "unexpected"})

    def nowhere(self, call: Call) -> Reply:
        """The shape of all errors."""
        return Reply(404, {"error": "Endpoint not found", "path": "$", "code": "not-found"})

    async def read(self, call: Call) -> Submit:
        """POST /generations: pictures only by ids that were given before."""
        call.only_query(())
        fields = call.fields()
        sides = [fields.whole(name, side, low=32, high=1536) for name, side in _SIDES]
        for side, (name, _) in zip(sides, _SIDES, strict=True):
            if side % 8:
                raise fields.fault("value", name, "must be a multiple of 8")
        most = 4 if max(sides) > LARGE else 8
        given = [_id(fields, name) for name in ("init_image_id", "init_generation_image_id")]
        callback_url = self.account_callback_url()
        submit = Submit(
            shape="poll" if callback_url is None else "callback",
            prompt=fields.text("prompt", "A majestic cat in the snow", least=1, most=1500),
            n=fields.whole("num_images", 4, low=1, high=most),
            width=sides[0],
            height=sides[1],
            callback_url=callback_url,
            model=str(_id(fields, "modelId") or "b24e16ff-06e3-43eb-8d33-4416c2d75876"),
            operation="edit" if any(given) else "generate",
            format="jpeg",
            details={
                "negative_prompt": fields.text("negative_prompt", None, most=1000),
                "seed": fields.whole("seed", 42, low=0, high=9_999_999_998),
                "presetStyle": fields.text("presetStyle", "DYNAMIC", most=40),
                "public": fields.raw("public", None) is True,
            },
        )
        submit.details["flaws"] = _flaws(fields)
        _take_the_rest(fields)
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """The id and what it costs."""
        job = {"generationId": view.job.id, "apiCreditCost": CREDITS * view.job.n}
        return Reply(200, {"sdGenerationJob": job})

    async def poll(self, call: Call) -> Reply:
        """GET one; what is not there is null."""
        return Reply(200, {"generations_by_pk": self.record(self.look(self.find(call.at["id"])))})

    async def list(self, call: Call) -> Reply:
        """GET the user's, the latest first."""
        if call.at["user"] != USER_ID:
            return Reply(200, {"generations": []})
        call.only_query(("offset", "limit"))
        query = Fields(call.query, ("query",), is_text=True)
        start = query.whole("offset", 0, low=0)
        stop = start + query.whole("limit", 10, low=1, high=100)
        page = self.jobs()[::-1][start:stop]
        return Reply(200, {"generations": [self.record(self.view(job)) for job in page]})

    async def me(self, call: Call) -> Reply:
        """GET the user, whose id the list needs."""
        return Reply(200, {"user_details": [{"user": {"id": USER_ID, "username": "lab"}}]})

    def record(self, view: View) -> Any:
        """The generation as polls and lists show it."""
        job = view.job
        return {
            "id": job.id,
            "status": view.word(WORDS),
            "generated_images": [_image(job, index, url) for index, url in enumerate(view.urls)],
            "prompt": job.prompt,
            "negativePrompt": job.details["negative_prompt"],
            "modelId": job.model,
            "imageWidth": job.width,
            "imageHeight": job.height,
            "seed": job.details["seed"],
            "presetStyle": job.details["presetStyle"],
            "public": job.details["public"],
            "createdAt": iso_time(job.created_at),
            "generation_elements": [],
        }

    def notice(self, job: Job, moment: str) -> Notice | None:
        """The end, two levels down, with the key's own secret beside it."""
        view = self.view(job, moment)
        record = self.record(view)
        images = [image | {"generationId": job.id} for image in record.pop("generated_images")]
        token = self.signing.headers(_NOTHING, job.fate.secret_rotated)["Authorization"]
        key = {"webhookCallbackUrl": job.callback_url}
        key["webhookCallbackApiKey"] = "nobody's" if moment == "forged" else token.removeprefix("Bearer ")
        is_marked = job.fate.variant == "nsfw"
        told = {**record, "images": images, "flagged": is_marked, "nsfw": is_marked, "apiKey": key}
        body = {
            "type": "image_generation.complete",
            "object": "generation",
            "timestamp": int(time.time() * 1000),
            "api_version": "v1",
            "data": {"object": told},
        }
        return self.told(job, body, moment)


_NOTHING = Parcel("", 0, b"", "")
"""A token does not depend on what is sent."""
_SIDES = (("width", 1024), ("height", 768))


def _image(job: Job, index: int, url: str) -> dict[str, Any]:
    return {
        "id": str(uuid5(UUID(job.id), str(index))),
        "url": url,
        "nsfw": job.fate.variant == "nsfw",
        "likeCount": 0,
        "generated_image_variation_generics": [],
    }


def _id(fields: Fields, name: str) -> str | None:
    text: str | None = fields.text(name, None, least=1, most=40)
    try:
        return None if text is None else str(UUID(text))
    except ValueError:
        raise fields.fault("value", name, "must be a UUID") from None


def _flaws(fields: Fields) -> list[str]:
    """What becomes of a picture for which nothing else was asked."""
    is_shown = fields.flag("public", None) is not False
    return ["shown to everybody"] * is_shown + ["without contrast"] * (not fields.has("contrast"))


def _take_the_rest(fields: Fields) -> None:
    fields.choice("contrast", CONTRASTS, None)
    fields.whole("num_inference_steps", None, low=10, high=60)
    fields.choice("transparency", ("disabled", "foreground_only"), None)
    for name, (low, high) in _NUMBERS.items():
        fields.number(name, None, low=low, high=high)
    for name in _FLAGS:
        fields.flag(name, False)
    fields.close()


DIALECT = Leonardo
