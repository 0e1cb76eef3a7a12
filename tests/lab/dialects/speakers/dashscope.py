"""A right client of DashScope's asynchronous tasks."""

from __future__ import annotations

from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

BEARER = {"Authorization": "Bearer dashscope-test-api-key"}
KEY = {**BEARER, "X-DashScope-Async": "enable"}
SERVICES = "/api/v1/services/aigc"
TASKS = "/api/v1/tasks"


class DashScopeSpeaker(Speaker):
    """Polls the task by its id."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        body = {
            "model": "wan2.2-t2i-flash",
            "input": {"prompt": prompt},
            "parameters": {"size": "512*512", "n": n, "seed": 7},
        }
        return Asked("POST", f"{SERVICES}/text2image/image-synthesis", body, headers=KEY)

    def edit(self, picture_url: str) -> Asked:
        body = {
            "model": "wanx2.1-imageedit",
            "input": {
                "function": "description_edit_with_mask",
                "prompt": PROMPT,
                "base_image_url": picture_url,
                "mask_image_url": picture_url,
            },
            "parameters": {"n": 1},
        }
        return Asked("POST", f"{SERVICES}/image2image/image-synthesis", body, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"{TASKS}/{accepted['output']['task_id']}", headers=BEARER)

    def listing(self) -> Asked:
        return Asked("GET", f"{TASKS}?page_no=1&page_size=10", headers=BEARER)

    def cancel(self, accepted: Any) -> Asked:
        return Asked("POST", f"{TASKS}/{accepted['output']['task_id']}/cancel", headers=BEARER)

    def is_final(self, polled: Answered) -> bool:
        return polled.body["output"]["task_status"] in {"SUCCEEDED", "FAILED", "CANCELED", "UNKNOWN"}

    def pictures(self, last: Answered) -> list[str | bytes]:
        return [result["url"] for result in last.body["output"]["results"] if "url" in result]


SPEAKER = DashScopeSpeaker()
