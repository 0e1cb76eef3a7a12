"""A right client of Kling; signatures are checked by the scheme's own reference library."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, picture

KEY = {"Authorization": "Bearer kling-test-api-key"}
PATH = "/v1/images/generations"
SECRET = "whsec_" + base64.b64encode(hashlib.sha256(b"kling-test-callback-secret").digest()[:24]).decode()


class KlingSpeaker(Speaker):
    """Polls the task by its id."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"model_name": "kling-v2-1", "prompt": prompt, "n": n, "aspect_ratio": "1:1"}
        if callback_url is not None:
            body["callback_url"] = callback_url
        return Asked("POST", PATH, body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        image = base64.b64encode(picture()).decode() if picture_url.endswith("picture.png") else picture_url
        return Asked(
            "POST", PATH, {"model_name": "kling-v2-1", "prompt": PROMPT, "image": image}, headers=KEY
        )

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"{PATH}/{accepted['data']['task_id']}", headers=KEY)

    def listing(self) -> Asked:
        return Asked("GET", f"{PATH}?pageNum=1&pageSize=10", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["data"]["task_status"] in {"succeed", "failed"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [image["url"] for image in last.body["data"]["task_result"]["images"]]

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        try:
            Webhook(SECRET).verify(raw, {name.lower(): value for name, value in headers.items()})
        except (WebhookVerificationError, UnicodeError, TypeError, json.JSONDecodeError):
            return False
        return True


SPEAKER = KlingSpeaker()
