"""A right client of Luma's Dream Machine, whose callbacks nothing proves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer luma-test-api-key"}
PATH = "/dream-machine/v1/generations"


class LumaSpeaker(Speaker):
    """Polls the generation by its id."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {"model": "photon-flash-1", "prompt": prompt, "aspect_ratio": "1:1"}
        if callback_url is not None:
            body["callback_url"] = callback_url
        return Asked("POST", f"{PATH}/image", body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        body = {
            "model": "photon-1",
            "prompt": PROMPT,
            "modify_image_ref": {"url": picture_url, "weight": 0.5},
            "image_ref": [{"url": picture_url}],
        }
        return Asked("POST", f"{PATH}/image", body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"{PATH}/{accepted['id']}", headers=KEY)

    def listing(self) -> Asked:
        return Asked("GET", f"{PATH}?limit=10&offset=0", headers=KEY)

    def cancel(self, accepted: Any) -> Asked:
        return Asked("DELETE", f"{PATH}/{accepted['id']}", headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["state"] in {"completed", "failed"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        assets = last.body["assets"] or {}
        return [assets["image"]] if assets.get("image") else []

    def is_genuine(self, headers: Mapping[str, str], raw: bytes) -> bool:
        return False


SPEAKER = LumaSpeaker()
