"""A right client of Volcengine Visual: every call is signed for the upstream's own host, version 4 by hand."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY_PAIR = ("volc-visual-test-access-key", "volc-visual-test-secret-key-of-32-characters")
HOST = "visual.volcengineapi.com"
SUBMIT, GET_RESULT = "CVSync2AsyncSubmitTask", "CVSync2AsyncGetResult"
NAMES = "content-type;host;x-content-sha256;x-date"
MODEL = "jimeng_t2i_v40"


def signature(secret: str, target: tuple[str, str], body: bytes, moment: str) -> str:
    """The signature of a POST to a path with a query; the chain of keys begins with the bare secret."""
    digest = hashlib.sha256(body).hexdigest()
    headers = f"content-type:application/json\nhost:{HOST}\nx-content-sha256:{digest}\nx-date:{moment}\n"
    request = f"POST\n{target[0]}\n{target[1]}\n{headers}\n{NAMES}\n{digest}"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    message = f"HMAC-SHA256\n{moment}\n{moment[:8]}/cn-north-1/cv/request\n{hashed}"
    key = secret.encode()
    for step in (moment[:8], "cn-north-1", "cv", "request"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    return hmac.new(key, message.encode(), hashlib.sha256).hexdigest()


def asked(action: str, body: Any, *, late_s: int = 0, **other: str) -> Asked:
    """One call; `late_s` shifts its time, `other` replaces its parts.

    These are the secret, the key, the version, the signed path, what is sent instead of the body, and headers.
    """
    raw = json.dumps(body).encode()
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - late_s))
    query = f"Action={action}&Version={other.pop('version', '2022-08-31')}"
    target = (other.pop("path", "/"), query)
    proof = signature(other.pop("secret", KEY_PAIR[1]), target, raw, moment)
    key, sent = other.pop("key", KEY_PAIR[0]), other.pop("instead", None)
    headers = {
        "Host": HOST,
        "Content-Type": "application/json",
        "X-Date": moment,
        "X-Content-Sha256": hashlib.sha256(raw).hexdigest(),
        "Authorization": f"HMAC-SHA256 Credential={key}/{moment[:8]}/cn-north-1/cv/request, "
        f"SignedHeaders={NAMES}, Signature={proof}",
        **{name.replace("_", "-"): value for name, value in other.items()},
    }
    kept = {name: value for name, value in headers.items() if value}
    return Asked("POST", f"/?{query}", data=raw if sent is None else sent.encode(), headers=kept)


class VolcVisualSpeaker(Speaker):
    """Polls by POST, with the model again and its wishes as JSON inside JSON."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        return asked(SUBMIT, {"req_key": MODEL, "prompt": prompt, "force_single": n == 1})

    def edit(self, picture_url: str) -> Asked:
        body = {"req_key": MODEL, "prompt": PROMPT, "image_urls": [picture_url], "force_single": True}
        return asked(SUBMIT, body)

    def poll(self, accepted: Any) -> Asked:
        wishes = json.dumps({"return_url": True})
        body = {"req_key": MODEL, "task_id": accepted["data"]["task_id"], "req_json": wishes}
        return asked(GET_RESULT, body)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["code"] != 10000 or polled.body["data"]["status"] in {"done", "expired"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return list(last.body["data"]["image_urls"])

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        return False


SPEAKER = VolcVisualSpeaker()
