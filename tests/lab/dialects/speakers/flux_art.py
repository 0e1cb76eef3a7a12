"""A right client of Flux Art: a fresh idempotency key for every submit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer fa_live_flux-art-test-api-key"}
PATH = "/openapi/v1"


def submit(body: Any, key: str | None = None) -> Asked:
    """A submit under a key of its own, or under one that is given."""
    headers = {**KEY, "Idempotency-Key": uuid4().hex if key is None else key}
    return Asked("POST", f"{PATH}/images/generations", body, headers=headers)


class FluxArtSpeaker(Speaker):
    """Polls the task by its id."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        return submit({"model": "gpt-image-2", "mode": "generate", "prompt": prompt, "count": 1})

    def edit(self, picture_url: str) -> Asked:
        body = {"model": "gpt-image-2", "mode": "edit", "prompt": PROMPT, "count": 1}
        return submit({**body, "image_urls": [picture_url]})

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"{PATH}/tasks/{accepted['data']['id']}", headers=KEY)

    def listing(self) -> Asked:
        return Asked("GET", f"{PATH}/tasks", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["data"]["status"] in {"succeeded", "failed", "canceled"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return list(last.body["data"]["output"])

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        return False


SPEAKER = FluxArtSpeaker()
