"""A right client of Luma Agents."""

from __future__ import annotations

import base64
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, picture

KEY = {"Authorization": "Bearer luma-agents-test-api-key"}
PATH = "/v1/generations"


class LumaAgentsSpeaker(Speaker):
    """Polls the generation by its id."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"model": "uni-1", "type": "image", "prompt": prompt, "aspect_ratio": "1:1"}
        return Asked("POST", PATH, body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        body = {
            "model": "uni-1",
            "type": "image_edit",
            "prompt": PROMPT,
            "source": {"url": picture_url},
            "image_ref": [{"data": base64.b64encode(picture()).decode(), "media_type": "image/png"}],
        }
        return Asked("POST", PATH, body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"{PATH}/{accepted['id']}", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["state"] in {"completed", "failed"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [item["url"] for item in last.body["output"]]


SPEAKER = LumaAgentsSpeaker()
