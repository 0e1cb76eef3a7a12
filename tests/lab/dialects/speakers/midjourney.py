"""A right client of midjourney-proxy, whose callbacks nothing proves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, data_url, picture

KEY = {"mj-api-secret": "midjourney-test-api-key"}
PATH = "/mj/submit/imagine"


class MidjourneySpeaker(Speaker):
    """Polls the task by the id that is the result of its submit."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"prompt": prompt, "base64Array": []}
        if callback_url is not None:
            body["notifyHook"] = callback_url
        return Asked("POST", PATH, body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        source = data_url(picture()) if picture_url.endswith("picture.png") else picture_url
        return Asked("POST", PATH, {"prompt": PROMPT, "base64Array": [source]}, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"/mj/task/{accepted['result']}/fetch", headers=KEY)

    def listing(self) -> Asked:
        return Asked("GET", "/mj/task/list", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["status"] in {"SUCCESS", "FAILURE", "CANCEL"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        url = last.body["imageUrl"]
        return [url] if url else []

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        return False


SPEAKER = MidjourneySpeaker()
