"""A right client of MiniMax's images."""

from __future__ import annotations

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer minimax-test-api-key"}
PATH = "/v1/image_generation"


class MiniMaxSpeaker(Speaker):
    """Draws within the call; takes addresses."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"model": "image-01", "prompt": prompt, "n": n, "aspect_ratio": "1:1"}
        return Asked("POST", PATH, body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        subject = {"type": "character", "image_file": picture_url}
        body = {"model": "image-01", "prompt": PROMPT, "subject_reference": [subject]}
        return Asked("POST", PATH, body, headers=KEY)

    def pictures(self, last: Answered) -> list[str | bytes]:
        return list(last.body["data"]["image_urls"])


SPEAKER = MiniMaxSpeaker()
