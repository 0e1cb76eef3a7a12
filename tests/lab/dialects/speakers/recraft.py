"""A right client of Recraft."""

from __future__ import annotations

from tests.lab.dialects.forms import FORM_TYPE, form
from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, picture

KEY = {"Authorization": "Bearer recraft-test-api-key"}


class RecraftSpeaker(Speaker):
    """Draws within the call; takes addresses."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"prompt": prompt, "model": "recraftv3", "n": n, "size": "1024x1024"}
        return Asked("POST", "/v1/images/generations", body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        data = form({"prompt": PROMPT}, [("image", picture()), ("mask", picture("L"))])
        return Asked("POST", "/v1/images/inpaint", data=data, headers={**KEY, **FORM_TYPE})

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [item["url"] for item in last.body["data"]]


SPEAKER = RecraftSpeaker()
