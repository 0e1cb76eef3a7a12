"""A right client of fal, with the signature checked as its documentation says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Key fal-test-api-key"}
SEED = hashlib.sha256(b"fal-test-callback-secret").digest()


class FalSpeaker(Speaker):
    """Polls the status, then fetches the response."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        path = "/fal-ai/flux/dev"
        if callback_url is not None:
            path += "?" + urlencode({"fal_webhook": callback_url})
        size = {"width": 64, "height": 64}
        return Asked(
            "POST", path, {"prompt": prompt, "num_images": n, "image_size": size, "seed": 7}, headers=KEY
        )

    def edit(self, picture_url: str) -> Asked:
        body = {
            "prompt": PROMPT,
            "image_url": picture_url,
            "mask_url": picture_url,
            "image_size": {"width": 64, "height": 64},
        }
        return Asked("POST", "/fal-ai/flux-lora/inpainting", body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", accepted["status_url"], headers=KEY)

    def cancel(self, accepted: Any) -> Asked:
        return Asked("PUT", accepted["cancel_url"], headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return bool(polled.body["status"] == "COMPLETED")

    def result(self, accepted: Any) -> Asked:
        return Asked("GET", accepted["response_url"], headers=KEY)

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [image["url"] for image in last.body["images"]]

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        names = ("Request-Id", "User-Id", "Timestamp")
        parts = [headers.get(f"X-Fal-Webhook-{name}", "") for name in names]
        message = "\n".join((*parts, hashlib.sha256(raw).hexdigest())).encode()
        try:
            signature = bytes.fromhex(headers.get("X-Fal-Webhook-Signature", ""))
            Ed25519PrivateKey.from_private_bytes(SEED).public_key().verify(signature, message)
        except (ValueError, InvalidSignature):
            return False
        return True


SPEAKER = FalSpeaker()
