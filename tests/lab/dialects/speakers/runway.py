"""A right client of Runway."""

from __future__ import annotations

from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer runway-test-api-key", "X-Runway-Version": "2024-11-06"}
PATH = "/v1/text_to_image"


class RunwaySpeaker(Speaker):
    """Polls the task by its id."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"model": "gen4_image", "promptText": prompt, "ratio": "720:720", "seed": 7}
        return Asked("POST", PATH, body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        body = {
            "model": "gen4_image_turbo",
            "promptText": PROMPT,
            "ratio": "720:720",
            "referenceImages": [{"uri": picture_url, "tag": "fox"}],
        }
        return Asked("POST", PATH, body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"/v1/tasks/{accepted['id']}", headers=KEY)

    def cancel(self, accepted: Any) -> Asked:
        return Asked("DELETE", f"/v1/tasks/{accepted['id']}", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["status"] in {"SUCCEEDED", "FAILED", "CANCELLED"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return list(last.body["output"])


SPEAKER = RunwaySpeaker()
