"""A right client of Replicate; signatures are checked by the scheme's own reference library."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer replicate-test-api-key"}
PATH = "/v1/predictions"
SECRET = "whsec_" + base64.b64encode(hashlib.sha256(b"replicate-test-callback-secret").digest()[:24]).decode()


class ReplicateSpeaker(Speaker):
    """Polls the address that the record names."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body: dict[str, Any] = {
            "version": "black-forest-labs/flux-schnell",
            "input": {"prompt": prompt, "num_outputs": n, "aspect_ratio": "1:1"},
        }
        if callback_url is not None:
            body |= {"webhook": callback_url, "webhook_events_filter": ["start", "completed"]}
        return Asked("POST", PATH, body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        given = {"prompt": PROMPT, "image": picture_url, "mask": picture_url}
        body = {"version": "black-forest-labs/flux-fill-pro", "input": given}
        return Asked("POST", PATH, body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", accepted["urls"]["get"], headers=KEY)

    def listing(self) -> Asked:
        return Asked("GET", PATH, headers=KEY)

    def cancel(self, accepted: Any) -> Asked:
        return Asked("POST", accepted["urls"]["cancel"], headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["status"] in {"succeeded", "failed", "canceled"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        output = last.body["output"]
        return output if isinstance(output, list) else [output] if output else []

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        try:
            Webhook(SECRET).verify(raw, {name.lower(): value for name, value in headers.items()})
        except (WebhookVerificationError, UnicodeError, TypeError, json.JSONDecodeError):
            return False
        return True


SPEAKER = ReplicateSpeaker()
