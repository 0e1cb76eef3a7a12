"""A right client of AUTOMATIC1111's webui."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, picture

USER = b"automatic1111-test-access-key:automatic1111-test-secret-key-of-32-characters"
KEY = {"Authorization": f"Basic {base64.b64encode(USER).decode()}"}


class Automatic1111Speaker(Speaker):
    """Draws within the call; passes over the grid."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"prompt": prompt, "width": 64, "height": 64, "steps": 20, "batch_size": n, "seed": 7}
        return Asked("POST", "/sdapi/v1/txt2img", body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        body: dict[str, Any] = {
            "prompt": PROMPT,
            "width": 64,
            "height": 64,
            "init_images": [base64.b64encode(picture()).decode()],
            "mask": base64.b64encode(picture("L")).decode(),
            "denoising_strength": 0.5,
        }
        return Asked("POST", "/sdapi/v1/img2img", body, headers=KEY)

    def pictures(self, last: Answered) -> list[str | bytes]:
        first = json.loads(last.body["info"])["index_of_first_image"]
        return [base64.b64decode(image) for image in last.body["images"][first:]]


SPEAKER = Automatic1111Speaker()
