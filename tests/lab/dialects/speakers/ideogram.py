"""A right client of Ideogram, with the signature checked as its documentation says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.lab.dialects.forms import FORM_TYPE, form
from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, picture

KEY = {"Api-Key": "ideogram-test-api-key"}
SEED = hashlib.sha256(b"ideogram-test-callback-secret").digest()


class IdeogramSpeaker(Speaker):
    """Submits a form that is answered with an id, and polls that."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        fields = {"prompt": prompt, "num_images": n, "size": "1024x1024", "async": "true"}
        if callback_url is not None:
            fields["webhook_url"] = callback_url
        return _asked("generate/ideogram-4-5", form(fields))

    def edit(self, picture_url: str) -> Asked:
        files = [("image", picture()), ("mask", picture("L"))]
        return _asked("inpaint/ideogram-3", form({"prompt": PROMPT, "async": "true"}, files))

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"/v2/generations/{accepted['generation_id']}", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["status"] in {"completed", "failed"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [item["url"] for item in last.body["data"] if item["is_image_safe"]]

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        names = ("Generation-Id", "User-Id", "Timestamp")
        parts = [headers.get(f"X-Ideogram-Webhook-{name}", "") for name in names]
        message = "\n".join((*parts, hashlib.sha256(raw).hexdigest())).encode()
        try:
            signature = bytes.fromhex(headers.get("X-Ideogram-Webhook-Signature", ""))
            Ed25519PrivateKey.from_private_bytes(SEED).public_key().verify(signature, message)
        except (ValueError, InvalidSignature):
            return False
        return True


def _asked(endpoint: str, data: bytes) -> Asked:
    return Asked("POST", f"/v2/image/{endpoint}", data=data, headers={**KEY, **FORM_TYPE})


SPEAKER = IdeogramSpeaker()
