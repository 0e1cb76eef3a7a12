"""A right client of Stability's slow endpoints."""

from __future__ import annotations

import base64
from typing import Any

from tests.lab.dialects.forms import FORM_TYPE, form
from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, picture

KEY = {"Authorization": "Bearer stability-async-test-api-key"}


class StabilityAsyncSpeaker(Speaker):
    """Polls until the status is no longer 202, and takes the JSON."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        data = form({"prompt": prompt, "output_format": "png"}, [("image", picture())])
        path = "/v2beta/stable-image/upscale/creative"
        return Asked("POST", path, data=data, headers={**KEY, **FORM_TYPE})

    def edit(self, picture_url: str) -> Asked:
        data = form({"background_prompt": PROMPT}, [("subject_image", picture())])
        path = "/v2beta/stable-image/edit/replace-background-and-relight"
        return Asked("POST", path, data=data, headers={**KEY, **FORM_TYPE})

    def poll(self, accepted: Any) -> Asked:
        return Asked(
            "GET", f"/v2beta/results/{accepted['id']}", headers={**KEY, "Accept": "application/json"}
        )

    def is_final(self, polled: Answered) -> bool:
        return polled.status != 202

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [base64.b64decode(last.body["result"])] if last.body.get("result") else []


SPEAKER = StabilityAsyncSpeaker()
