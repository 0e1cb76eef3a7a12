"""A right client of DashScope's synchronous Qwen-Image."""

from __future__ import annotations

from typing import Any

from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker

KEY = {"Authorization": "Bearer dashscope-sync-test-api-key"}
PATH = "/api/v1/services/aigc/multimodal-generation/generation"


def asked(model: str, content: list[dict[str, Any]], **parameters: Any) -> Asked:
    """A call with one message."""
    messages = [{"role": "user", "content": content}]
    body = {"model": model, "input": {"messages": messages}, "parameters": parameters}
    return Asked("POST", PATH, body, headers=KEY)


class DashScopeSyncSpeaker(Speaker):
    """Has the addresses at once."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        return asked("qwen-image-2.0", [{"text": prompt}], size="512*512", n=n)

    def edit(self, picture_url: str) -> Asked:
        return asked("qwen-image-edit-plus", [{"image": picture_url}, {"text": PROMPT}])

    def pictures(self, last: Answered) -> list[str | bytes]:
        [choice] = last.body["output"]["choices"]
        return [part["image"] for part in choice["message"]["content"]]


SPEAKER = DashScopeSyncSpeaker()
