"""A right client of PiAPI, which gets its own secret back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"x-api-key": "piapi-test-api-key"}
PATH = "/api/v1/task"
SECRET = "piapi-test-callback-secret"


class PiApiSpeaker(Speaker):
    """Polls the task by its id; the case of its words does not count."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body: dict[str, Any] = {
            "model": "Qubico/flux1-schnell",
            "task_type": "txt2img",
            "input": {"prompt": prompt, "width": 256, "height": 256, "batch_size": n},
        }
        if callback_url is not None:
            body["config"] = {"webhook_config": {"endpoint": callback_url, "secret": SECRET}}
        return Asked("POST", PATH, body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        body = {
            "model": "Qubico/flux1-dev",
            "task_type": "img2img",
            "input": {"prompt": PROMPT, "image": picture_url, "denoise": 0.5},
        }
        return Asked("POST", PATH, body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"{PATH}/{accepted['data']['task_id']}", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["data"]["status"].lower() in {"completed", "failed"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        output = last.body["data"]["output"]
        return list(output["image_urls"] or filter(None, [output["image_url"]]))

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        return headers.get("x-webhook-secret") == SECRET


SPEAKER = PiApiSpeaker()
