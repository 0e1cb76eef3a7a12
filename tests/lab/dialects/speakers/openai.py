"""A right client of OpenAI's images."""

from __future__ import annotations

import base64

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, data_url, picture

KEY = {"Authorization": "Bearer openai-test-api-key"}


class OpenAISpeaker(Speaker):
    """Draws within the call; edits as JSON."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"model": "gpt-image-2", "prompt": prompt, "n": n, "size": "1024x1024", "quality": "low"}
        return Asked("POST", "/v1/images/generations", body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        body = {
            "model": "gpt-image-2",
            "prompt": PROMPT,
            "images": [{"image_url": picture_url}],
            "mask": {"image_url": data_url(picture("RGBA"))},
        }
        return Asked("POST", "/v1/images/edits", body, headers=KEY)

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [base64.b64decode(item["b64_json"]) for item in last.body["data"]]


SPEAKER = OpenAISpeaker()
