"""Runway: a version in every call, ratios by the model, a cost after failures, one verb to cancel and delete."""

from __future__ import annotations

from typing import Any

from safelight.lab.dialects import keys
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect, Workshop
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.times import iso_time
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

CREDENTIALS = {"api_key": keys.api_key("runway")}
VERSION = "2024-11-06"
LIFE_S = 24 * 3600.0
ACTIVE = 1
"""So many may wait for their turn; what is beyond is throttled."""
PICTURE_MOST = 5 << 20
_GEN4 = (
    *("1024:1024", "1080:1080", "1168:880", "1360:768", "1440:1080", "1080:1440", "1808:768", "1920:1080"),
    *("1080:1920", "2112:912", "1280:720", "720:1280", "720:720", "960:720", "720:960", "1680:720"),
)
_GEMINI_25 = (
    *("1344:768", "768:1344", "1024:1024", "1184:864", "864:1184", "1536:672"),
    *("832:1248", "1248:832", "896:1152", "1152:896"),
)
_GEMINI_3 = (
    *_GEMINI_25,
    *("2048:2048", "1696:2528", "2528:1696", "1792:2400", "2400:1792", "1856:2304", "2304:1856"),
    *("1536:2752", "2752:1536", "3168:1344", "4096:4096", "3392:5056", "5056:3392", "3584:4800"),
    *("4800:3584", "3712:4608", "4608:3712", "3072:5504", "5504:3072", "6336:2688"),
)
MODELS: dict[str, dict[str, Any]] = {
    # least and most pictures, characters of the prompt, credits of one picture, how many may be asked for
    "gen4_image": {"ratios": _GEN4, "pictures": (0, 3), "chars": 1000, "credits": 8, "counts": ()},
    "gen4_image_turbo": {"ratios": _GEN4, "pictures": (1, 3), "chars": 1000, "credits": 2, "counts": ()},
    "gemini_2.5_flash": {
        "ratios": _GEMINI_25,
        "pictures": (0, 3),
        "chars": 32_000,
        "credits": 5,
        "counts": (),
    },
    "gemini_image3_pro": {
        "ratios": _GEMINI_3,
        "pictures": (0, 14),
        "chars": 32_000,
        "credits": 20,
        "counts": (1, 4),
    },
}
WORDS = {
    "queued": "PENDING",
    "running": "RUNNING",
    "done": "SUCCEEDED",
    "failed": "FAILED",
    "canceled": "CANCELLED",
}


def _error(name: str, status: int, text: str, **more: Any) -> Way:
    return Way(name, Reply(status, {"error": text, **more}))


def _failure(name: str, code: str | None, text: str, *, is_billed: bool = False) -> Ending:
    return Ending(name, {"failure": text, "failureCode": code}, is_billed=is_billed)


REFUSALS = {
    "invalid_request": (
        _error("body", 400, "Validation of body failed", issues=[]),
        _error("version", 400, "The X-Runway-Version header is missing or unknown"),
    ),
    "credentials": (
        _error("missing", 401, "You did not provide an API key."),
        _error("wrong", 401, "The API key is invalid."),
    ),
    # Not documented, and reported so.
    "funds": (_error("credits", 400, "You do not have enough credits to run this task."),),
    # The body is not documented; being over the concurrency is a state and no error.
    "rate_limited": (_error("none", 429, "Too many requests."),),
    "upstream_fault": (
        _error("internal", 500, "An internal error occurred."),
        _error("unavailable", 503, "The service is not available."),
    ),
    "not_found": (_error("task", 404, "The task was not found."),),
}
ENDINGS = {
    "failed": (
        _failure("bad_output", "INTERNAL.BAD_OUTPUT.CODE01", "The output was unusable."),
        _failure("preprocessing", "INPUT_PREPROCESSING.INTERNAL", "An internal error occurred."),
        _failure("third_party", "THIRD_PARTY.UNAVAILABLE", "A third party is not available."),
        _failure("internal", "INTERNAL", "An internal error occurred."),
        _failure("no_code", None, "An unknown error occurred."),
        # A task that could not be paid back wholly tells what remains charged.
        _failure("billed", "INTERNAL", "An internal error occurred.", is_billed=True),
        # Taken back by somebody with the same account.
        Ending("cancelled", {"word": "CANCELLED"}),
    ),
    "blocked": (
        _failure("input_text", "SAFETY.INPUT.TEXT", "The prompt did not pass moderation."),
        _failure("input_image", "SAFETY.INPUT.IMAGE", "A picture did not pass moderation."),
        _failure("output", "SAFETY.OUTPUT.IMAGE", "The output did not pass moderation.", is_billed=True),
        _failure("preprocessing", "INPUT_PREPROCESSING.SAFETY.TEXT", "The prompt did not pass moderation."),
    ),
    "invalid_request": (_failure("asset", "ASSET.INVALID", "A picture could not be read."),),
}
OPTIONS = {"seed": Option(20_261_129, only=("gen4_image", "gen4_image_turbo"))}


class Runway(Dialect):
    """Runway's text to image."""

    name = "runway"
    shape = "poll"
    features = Features(
        edit=True,
        cancel=True,
        silent_ends=("cancelled",),
        progress=True,
        waiting=True,
        reasons=True,
        cost=True,
        result_life_s=LIFE_S,
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/v1/text_to_image", "submit", "read"),
        Route("GET", "/v1/tasks/{id}", "poll", "poll"),
        Route("DELETE", "/v1/tasks/{id}", "cancel", "delete"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop)
        self._deleted: set[str] = set()

    async def authenticate(self, call: Call) -> None:
        """A bearer, and the version of the API."""
        given = call.headers.get("Authorization")
        if given is None:
            raise self.refused("credentials", "missing")
        if given != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials", "wrong")
        if call.headers.get("X-Runway-Version") != VERSION:
            raise self.refused("invalid_request", "version")

    def fault(self, fault: Fault) -> Reply:
        """A text, and what is wrong where."""
        issues = [{"code": fault.kind, "path": list(fault.path), "message": fault.message}]
        return Reply(400, {"error": "Validation of body failed", "issues": issues})

    def nowhere(self, call: Call) -> Reply:
        """The shape of all errors."""
        return Reply(404, {"error": "Not found"})

    async def read(self, call: Call) -> Submit:
        """POST /v1/text_to_image: an edit is a prompt with pictures to refer to."""
        call.only_query(())
        fields = call.fields()
        name = fields.choice("model", tuple(MODELS))
        model = MODELS[name]
        prompt = fields.text("promptText")
        if len(prompt.encode("utf-16-le")) // 2 > model["chars"]:
            raise fields.fault("value", "promptText", f"has more than {model['chars']} characters")
        width, height = map(int, fields.choice("ratio", model["ratios"]).split(":"))
        pictures = await self._pictures(fields, *model["pictures"])
        submit = Submit(
            shape="poll",
            prompt=prompt,
            n=fields.choice("outputCount", model["counts"], 1) if model["counts"] else 1,
            width=width,
            height=height,
            model=name,
            operation="edit" if pictures else "generate",
            inputs=tuple(picture.sha256 for picture in pictures),
            details={"ratio": f"{width}:{height}"},
        )
        if name.startswith("gen4"):
            submit.details["seed"] = fields.whole("seed", None, low=0, high=2**32 - 1)
            moderation = fields.inner("contentModeration", {})
            moderation.choice("publicFigureThreshold", ("auto", "low"), "auto")
            moderation.close()
        fields.close()
        return submit

    def accepted(self, call: Call, view: View) -> Reply:
        """The id, and the most that it may cost."""
        return Reply(200, {"id": view.job.id, "estimatedCost": {"credits": _credits(view, view.job.n)}})

    async def poll(self, call: Call) -> Reply:
        """GET one; what was deleted is gone."""
        if call.at["id"] in self._deleted:
            raise self.refused("not_found")
        return Reply(200, self.record(self.look(self.find(call.at["id"]))))

    async def delete(self, call: Call) -> Reply:
        """DELETE: cancels what is open and deletes what is not; either way it cannot be fetched again."""
        if call.at["id"] in self._deleted:
            raise self.refused("not_found")
        job = self.find(call.at["id"])
        await self.cancel(job)
        self._deleted.add(job.id)
        return Reply(204)

    def record(self, view: View) -> Any:
        """The task; each state has members of its own."""
        word = view.told("word") or view.word(WORDS)
        if view.phase == "queued" and (view.position or 0) > ACTIVE:
            word = "THROTTLED"
        record: dict[str, Any] = {
            "id": view.job.id,
            "status": word,
            "createdAt": iso_time(view.job.created_at),
        }
        if view.is_open:
            record["estimatedCost"] = {"credits": _credits(view, view.job.n)}
        else:
            record["cost"] = {"credits": _credits(view, view.job.cost)}
        if view.phase == "running":
            record["progress"] = view.progress / 100
        elif view.phase == "done":
            record["output"] = list(view.urls)
        elif word == "FAILED":
            record["failure"] = view.told("failure", "An unknown error occurred.")
            if code := view.told("failureCode"):
                record["failureCode"] = code
        return record

    async def _pictures(self, fields: Fields, least: int, most: int) -> list[Picture]:
        is_given = least > 0 or fields.has("referenceImages")
        given = fields.many("referenceImages", least=least, most=most) if is_given else ()
        pictures = []
        for at, item in enumerate(given):
            inner = Fields(item, ("referenceImages", at))
            uri = inner.text("uri", most=2 * PICTURE_MOST)
            inner.text("tag", None, least=3, most=16)
            inner.close()
            pictures.append(await self.picture(uri, (*inner.path, "uri"), most=PICTURE_MOST))
        return pictures


def _credits(view: View, count: int) -> int:
    return int(MODELS[view.job.model]["credits"]) * count


DIALECT = Runway
