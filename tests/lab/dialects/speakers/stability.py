"""A right client of Stability's endpoints that draw within the call."""

from __future__ import annotations

import base64

from tests.lab.dialects.forms import FORM_TYPE, form
from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, picture

PATH = "/v2beta/stable-image"
HEADERS = {"Authorization": "Bearer stability-test-api-key", "Accept": "application/json", **FORM_TYPE}


class StabilitySpeaker(Speaker):
    """Asks for JSON."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        data = form({"prompt": prompt, "aspect_ratio": "1:1", "output_format": "png"}, [("none", b"")])
        return Asked("POST", f"{PATH}/generate/core", data=data, headers=HEADERS)

    def edit(self, picture_url: str) -> Asked:
        data = form({"prompt": PROMPT}, [("image", picture()), ("mask", picture("L"))])
        return Asked("POST", f"{PATH}/edit/inpaint", data=data, headers=HEADERS)

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [base64.b64decode(last.body["image"])] if last.body["image"] else []


SPEAKER = StabilitySpeaker()
