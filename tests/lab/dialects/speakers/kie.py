"""A right client of Kie.ai; the signature is checked as its page says: over the id and the time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer kie-test-api-key"}
PATH = "/api/v1/jobs/createTask"
SECRET = b"kie-test-callback-secret"


class KieSpeaker(Speaker):
    """Polls the record by its id in the query."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body: dict[str, Any] = {"model": "nano-banana-2", "input": {"prompt": prompt, "aspect_ratio": "1:1"}}
        if callback_url is not None:
            body["callBackUrl"] = callback_url
        return Asked("POST", PATH, body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        wishes = {"prompt": PROMPT, "image_urls": [picture_url]}
        return Asked("POST", PATH, {"model": "nano-banana-2-lite", "input": wishes}, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"/api/v1/jobs/recordInfo?taskId={accepted['data']['taskId']}", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["data"]["state"] in {"success", "fail"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return list(json.loads(last.body["data"]["resultJson"])["resultUrls"])

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        moment = headers.get("X-Webhook-Timestamp", "")
        told = f"{json.loads(raw)['data']['taskId']}.{moment}".encode()
        digest = base64.b64encode(hmac.new(SECRET, told, hashlib.sha256).digest()).decode()
        is_fresh = moment.isdecimal() and abs(time.time() - int(moment)) < 300
        return is_fresh and headers.get("X-Webhook-Signature") == digest


SPEAKER = KieSpeaker()
