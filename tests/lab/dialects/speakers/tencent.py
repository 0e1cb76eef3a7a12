"""A right client of Tencent Hunyuan: every call is signed for the upstream's own host, TC3-HMAC-SHA256 by hand."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY_PAIR = ("tencent-test-access-key", "tencent-test-secret-key-of-32-characters")
HOST = "hunyuan.tencentcloudapi.com"
TYPE = "application/json; charset=utf-8"
SUBMIT, QUERY = "SubmitHunyuanImageJob", "QueryHunyuanImageJob"


def signature(secret: str, body: bytes, moment: int, path: str) -> str:
    """The signature of a POST."""
    day = time.strftime("%Y-%m-%d", time.gmtime(moment))
    digest = hashlib.sha256(body).hexdigest()
    request = f"POST\n{path}\n\ncontent-type:{TYPE}\nhost:{HOST}\n\ncontent-type;host\n{digest}"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    message = f"TC3-HMAC-SHA256\n{moment}\n{day}/hunyuan/tc3_request\n{hashed}"
    key = f"TC3{secret}".encode()
    for step in (day, "hunyuan", "tc3_request"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    return hmac.new(key, message.encode(), hashlib.sha256).hexdigest()


def asked(action: str, body: Any, *, late_s: int = 0, stamp_late_s: int = 0, **other: str) -> Asked:
    """One call; `late_s` shifts its time, `stamp_late_s` the one it says, `other` replaces its parts.

    These are the secret, the key, the signed path, what is sent instead of the body, and headers by their names.
    """
    raw, moment = json.dumps(body).encode(), int(time.time()) - late_s
    day = time.strftime("%Y-%m-%d", time.gmtime(moment))
    proof = signature(other.pop("secret", KEY_PAIR[1]), raw, moment, other.pop("path", "/"))
    key, sent = other.pop("key", KEY_PAIR[0]), other.pop("instead", None)
    headers = {
        "Host": HOST,
        "Content-Type": TYPE,
        "X-TC-Action": action,
        "X-TC-Version": "2023-09-01",
        "X-TC-Region": "ap-guangzhou",
        "X-TC-Timestamp": str(moment - stamp_late_s),
        "Authorization": f"TC3-HMAC-SHA256 Credential={key}/{day}/hunyuan/tc3_request, "
        f"SignedHeaders=content-type;host, Signature={proof}",
        **{name.replace("_", "-"): value for name, value in other.items()},
    }
    kept = {name: value for name, value in headers.items() if value}
    return Asked("POST", "/", data=raw if sent is None else sent.encode(), headers=kept)


class TencentSpeaker(Speaker):
    """Asks for the job by its id, with another action."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        return asked(SUBMIT, {"Prompt": prompt, "Num": n, "Resolution": "768:768"})

    def edit(self, picture_url: str) -> Asked:
        return asked(SUBMIT, {"Prompt": PROMPT, "ContentImage": {"ImageUrl": picture_url}})

    def poll(self, accepted: Any) -> Asked:
        return asked(QUERY, {"JobId": accepted["Response"]["JobId"]})

    def is_final(self, polled: Answered) -> bool:
        return polled.body["Response"]["JobStatusCode"] in {"4", "5"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return list(last.body["Response"]["ResultImage"])

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        return False


SPEAKER = TencentSpeaker()
