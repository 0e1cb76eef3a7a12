"""A right client of Leonardo.Ai; the token of its callbacks is compared as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer leonardo-test-api-key"}
PATH = "/api/rest/v1/generations"
USER = "4f1e6a1c-6a0e-4a53-9a43-0c2d0f6a7a11"
MODEL = "de7d3faf-762f-48e0-b3b7-9d0ac3a3fcf3"


class LeonardoSpeaker(Speaker):
    """Polls the generation by its id."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"prompt": prompt, "modelId": MODEL, "num_images": n, "width": 512, "height": 512}
        return Asked("POST", PATH, body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"{PATH}/{accepted['sdGenerationJob']['generationId']}", headers=KEY)

    def listing(self) -> Asked:
        return Asked("GET", f"{PATH}/user/{USER}?offset=0&limit=10", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["generations_by_pk"]["status"] in {"COMPLETE", "FAILED"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [image["url"] for image in last.body["generations_by_pk"]["generated_images"]]

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        return headers.get("Authorization") == "Bearer leonardo-test-callback-secret"


SPEAKER = LeonardoSpeaker()
