"""A right client of Black Forest Labs, with the signature checked as its skills repository says."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, picture

KEY = {"x-key": "bfl-test-api-key"}
SECRET = "bfl-test-callback-secret"


class BflSpeaker(Speaker):
    """Polls the address in the answer or, with a callback, that of the reference."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body: dict[str, Any] = {"prompt": prompt, "width": 256, "height": 256, "seed": 7}
        if callback_url is not None:
            body |= {"webhook_url": callback_url, "webhook_secret": SECRET}
        return Asked("POST", "/v1/flux-2-pro", body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        mask = base64.b64encode(picture("L")).decode()
        body = {"prompt": PROMPT, "image": picture_url, "mask": mask}
        return Asked("POST", "/v1/flux-pro-1.0-fill", body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        address = accepted.get("polling_url", f"/v1/get_result?id={accepted['id']}")
        return Asked("GET", address, headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["status"] in {"Ready", "Error", "Request Moderated", "Content Moderated"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        sample = last.body["result"]["sample"]
        return [sample] if sample else []

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        digest = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()
        return headers.get("X-BFL-Signature") == f"sha256={digest}"


SPEAKER = BflSpeaker()
