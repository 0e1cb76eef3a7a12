"""Gemini: one call with parts in and parts out; blocks come with the status 200."""

from __future__ import annotations

import base64
import re
from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.dialects.gemini.words import ENDINGS, REFUSALS, bad_field, error
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

CREDENTIALS = {"api_key": keys.api_key("gemini")}
MODELS = re.compile(r"gemini-[0-9][a-z0-9.-]*-image(-preview)?")
SCALES = {"1K": 1, "2K": 2, "4K": 4}
RATIOS = {
    # The sides of the smallest size.
    "1:1": (1024, 1024),
    "2:3": (832, 1248),
    "3:2": (1248, 832),
    "3:4": (864, 1184),
    "4:3": (1184, 864),
    "9:16": (768, 1344),
    "16:9": (1344, 768),
    "21:9": (1536, 672),
}
MODALITIES = ("TEXT", "IMAGE")
OPTIONS = {"seed": Option(20_261_129), "image_size": Option("2K")}
TYPES = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP"}
CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT", "CIVIC_INTEGRITY")
THRESHOLDS = ("BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF")
INLINE_MOST = 20 << 20
_UNDERSCORED = re.compile(r"_([a-z])")


class Gemini(Dialect):
    """Gemini's image models."""

    name = "gemini"
    shape = "sync"
    features = Features(edit=True, reasons=True, cost=True)
    credentials = CREDENTIALS
    routes = (
        # Documented as v1beta; the client of version 3 calls v1.
        Route("POST", "/{version:v1|v1beta}/models/{model}:generateContent", "submit", "read"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS

    async def authenticate(self, call: Call) -> None:
        """A header of its own."""
        given = call.headers.get("x-goog-api-key")
        if given is None:
            raise self.refused("credentials", "missing")
        if given != self.credentials["api_key"]:
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """The error object with the field's violation."""
        if fault.kind in {"body", "header"}:
            return error(400, "INVALID_ARGUMENT", f"Invalid JSON payload received. {fault.message}")
        unknown = f'Unknown name "{fault.path[-1]}": Cannot find field.' if fault.kind == "unknown" else ""
        return bad_field(fault.name, unknown or fault.message)

    def nowhere(self, call: Call) -> Reply:
        """The same shape."""
        return error(404, "NOT_FOUND", f"{call.path} was not found.")

    async def read(self, call: Call) -> Submit:
        """POST: the last words and pictures of a conversation."""
        if MODELS.fullmatch(call.at["model"]) is None:
            raise self.refused("invalid_request", "model")
        fields = Fields(_camel(call.json()))
        texts: list[str] = []
        pictures: list[Picture] = []
        for index, content in enumerate(fields.many("contents", least=1)):
            await self._read_content(Fields(content, ("contents", index)), texts, pictures)
        if not texts:
            raise fields.fault("missing", "contents", "has no text")
        _read_safety(fields)
        width, height, modalities = _read_config(fields.inner("generationConfig", {}), pictures)
        fields.close()
        return Submit(
            shape="sync",
            prompt="\n".join(texts),
            width=width,
            height=height,
            model=call.at["model"],
            operation="edit" if pictures else "generate",
            inputs=tuple(picture.sha256 for picture in pictures),
            details={
                "modalities": modalities,
                "flaws": ["accompanied by words"] if "TEXT" in modalities else [],
            },
        )

    async def drawn(self, call: Call, view: View) -> Reply:
        """One candidate; before the picture comes a text, if texts are wanted."""
        job = view.job
        has_text = "TEXT" in job.details["modalities"] or not job.delivered
        parts: list[Any] = [{"text": "Here is your picture."}] if has_text else []
        for picture in await self.pictures(job):
            data = base64.b64encode(picture).decode()
            parts.append({"inlineData": {"mimeType": f"image/{job.format}", "data": data}})
        candidate: dict[str, Any] = {"finishReason": view.told("finish", "STOP"), "index": 0}
        if finish := view.told("finish"):
            candidate["finishMessage"] = f"The picture is held back: {finish}."
        if view.phase == "done":
            candidate["content"] = {"parts": parts, "role": "model"}
        return Reply(200, {"candidates": [candidate], **_told_of(job)})

    async def _read_content(self, content: Fields, texts: list[str], pictures: list[Picture]) -> None:
        content.choice("role", ("user", "model"), "user")
        for index, value in enumerate(content.many("parts", least=1)):
            part = Fields(value, (*content.path, "parts", index))
            kinds = [kind for kind in ("text", "inlineData", "fileData") if part.has(kind)]
            if len(kinds) != 1:
                raise part.fault("value", "data", "must be exactly one of text, inlineData, fileData")
            if kinds == ["text"]:
                texts.append(part.text("text"))
            elif kinds == ["inlineData"]:
                pictures.append(await self._picture(part.inner("inlineData")))
            else:
                # Files are uploaded by another API, which the lab does not have.
                raise self.refused("credentials", "denied")
            part.close()
        content.close()

    async def _picture(self, blob: Fields) -> Picture:
        kind = blob.choice("mimeType", tuple(TYPES))
        # Both alphabets of base64 are taken.
        data = blob.text("data", most=2 * INLINE_MOST).translate(str.maketrans("-_", "+/"))
        path = (*blob.path, "data")
        picture = await self.picture(data, path, forms=("base64",), most=INLINE_MOST)
        if picture.format != TYPES[kind]:
            raise Fault("picture", path, f"is {picture.format}, not {kind}")
        blob.close()
        return picture


def _camel(value: Any) -> Any:
    """The names as documented; the underscored ones, which its own client mixes in, are the same."""
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {_UNDERSCORED.sub(lambda hit: hit[1].upper(), name): _camel(item) for name, item in value.items()}


def _read_config(config: Fields, pictures: list[Picture]) -> tuple[int, int, list[str]]:
    modalities = config.many("responseModalities", ["TEXT", "IMAGE"], least=1)
    if "IMAGE" not in modalities or not set(modalities) <= set(MODALITIES):
        raise config.fault("value", "responseModalities", "must be IMAGE, or TEXT and IMAGE")
    config.choice("candidateCount", (1,), 1)
    config.whole("seed", None, low=-(2**31), high=2**31 - 1)
    config.number("temperature", 1, low=0, high=2)
    config.number("topP", 0.95, low=0, high=1)
    image = config.inner("imageConfig", {})
    ratio = image.choice("aspectRatio", tuple(RATIOS), None)
    scale = SCALES[image.choice("imageSize", tuple(SCALES), "1K")]
    image.close()
    config.close()
    width, height = RATIOS[ratio or _nearest(pictures)]
    return width * scale, height * scale, modalities


def _nearest(pictures: list[Picture]) -> str:
    """The ratio of the first picture that came along, as near as there is one."""
    if not pictures:
        return "1:1"
    wanted = pictures[0].width / pictures[0].height
    return min(RATIOS, key=lambda ratio: abs(RATIOS[ratio][0] / RATIOS[ratio][1] - wanted))


def _read_safety(fields: Fields) -> None:
    for index, value in enumerate(fields.many("safetySettings", [])):
        setting = Fields(value, ("safetySettings", index))
        setting.choice("category", tuple(f"HARM_CATEGORY_{name}" for name in CATEGORIES))
        setting.choice("threshold", THRESHOLDS)
        setting.close()


def _told_of(job: Job) -> dict[str, Any]:
    words, drawn = len(job.prompt) // 4 + 1, 1290 * job.delivered
    usage = {"promptTokenCount": words, "candidatesTokenCount": drawn, "totalTokenCount": words + drawn}
    return {"usageMetadata": usage, "modelVersion": job.model, "responseId": job.id}


DIALECT = Gemini
