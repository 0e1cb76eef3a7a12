"""A right client of Gemini's image models."""

from __future__ import annotations

import base64
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, picture

KEY = {"x-goog-api-key": "gemini-test-api-key"}
PATH = "/v1beta/models/gemini-2.5-flash-image:generateContent"


class GeminiSpeaker(Speaker):
    """Looks through all parts of all candidates."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        return _asked({"text": prompt})

    def edit(self, picture_url: str) -> Asked:
        data = base64.b64encode(picture()).decode()
        return _asked({"text": PROMPT}, {"inlineData": {"mimeType": "image/png", "data": data}})

    def pictures(self, last: Answered) -> list[str | bytes]:
        parts = [
            part
            for candidate in last.body.get("candidates", [])
            for part in candidate.get("content", {}).get("parts", [])
        ]
        return [base64.b64decode(part["inlineData"]["data"]) for part in parts if "inlineData" in part]


def _asked(*parts: Any) -> Asked:
    body = {
        "contents": [{"role": "user", "parts": list(parts)}],
        "generationConfig": {
            "responseModalities": ["TEXT", "IMAGE"],
            "imageConfig": {"aspectRatio": "1:1", "imageSize": "1K"},
        },
    }
    return Asked("POST", PATH, body, headers=KEY)


SPEAKER = GeminiSpeaker()
