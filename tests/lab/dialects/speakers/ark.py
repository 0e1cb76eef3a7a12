"""A right client of Ark's images."""

from __future__ import annotations

from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer ark-test-api-key"}


class ArkSpeaker(Speaker):
    """Draws within the call; takes the items that have an address."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        several: dict[str, Any] = {
            "sequential_image_generation": "auto",
            "sequential_image_generation_options": {"max_images": n},
        }
        return _asked(prompt=prompt, **(several if n > 1 else {}))

    def edit(self, picture_url: str) -> Asked:
        return _asked(prompt=PROMPT, image=[picture_url])

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [item["url"] for item in last.body["data"] if "url" in item]


def _asked(**fields: Any) -> Asked:
    body = {"model": "doubao-seedream-4-0-250828", "size": "1024x1024", "response_format": "url", **fields}
    return Asked("POST", "/api/v3/images/generations", body, headers=KEY)


SPEAKER = ArkSpeaker()
