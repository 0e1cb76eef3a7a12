"""A right client of APIMart."""

from __future__ import annotations

from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer apimart-test-api-key"}
PATH = "/v1/images/generations"


class ApiMartSpeaker(Speaker):
    """Polls the task whose id stands in a list."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        return Asked(
            "POST", PATH, {"model": "gpt-image-2", "prompt": prompt, "n": n, "size": "1:1"}, headers=KEY
        )

    def edit(self, picture_url: str) -> Asked:
        body = {"model": "gpt-image-2-official", "prompt": PROMPT, "image_urls": [picture_url]}
        return Asked("POST", PATH, body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"/v1/tasks/{accepted['data'][0]['task_id']}?language=en", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["data"]["status"] in {"completed", "failed", "cancelled"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [url for image in last.body["data"]["result"]["images"] for url in image["url"]]


SPEAKER = ApiMartSpeaker()
