"""A right client of a relay: HMAC-SHA256 of the raw body proves a callback."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer relay-test-api-key"}
PATH = "/v1/images"
SECRET = b"relay-test-callback-secret"


class RelaySpeaker(Speaker):
    """Polls the task by its id."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"model": "gpt-image-2", "prompt": prompt, "n": n, "size": "1024x1024"}
        if callback_url is not None:
            body["callback_url"] = callback_url
        return Asked("POST", f"{PATH}/generations", body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        body = {"model": "gpt-image-2", "prompt": PROMPT, "image_urls": [picture_url]}
        return Asked("POST", f"{PATH}/generations", body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"{PATH}/tasks/{accepted['id']}", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["status"] in {"succeeded", "completed", "failed", "canceled", "cancelled"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        images = last.body["images"]
        return [image.get("url") or base64.b64decode(image["b64_json"]) for image in images]

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        given = {name.lower(): value for name, value in headers.items()}.get("x-signature", "")
        genuine = f"sha256={hmac.new(SECRET, raw, hashlib.sha256).hexdigest()}"
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), genuine.encode())


SPEAKER = RelaySpeaker()
