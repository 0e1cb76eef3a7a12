"""DashScope, synchronous: one message with the pictures and the prompt, answered with addresses."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from safelight.domain.provider import UpdateStatus
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import JPEG, KEY, PNG, Asker, urls_of

PATH = "/services/aigc/multimodal-generation/generation"
URL = "https://dashscope-result.oss-cn-beijing.aliyuncs.com/1.png?Expires=1"


def answer(*contents: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": list(contents)}
    return {"request_id": "q1", "output": {"choices": [{"finish_reason": "stop", "message": message}]}}


@pytest.fixture
def qwen(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    """Qwen-Image 2.0, which draws and edits."""
    return Asker("dashscope-sync", session, upstream, model="qwen-image-2.0")


async def test_a_submit_is_a_message_and_is_not_asynchronous(qwen: Asker) -> None:
    options = {"negative_prompt": "blur", "prompt_extend": True}
    sent = await qwen.sends(200, answer({"image": URL}), n=2, size="1536x1024", options=options)
    asked = qwen.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", PATH)
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert "x-dashscope-async" not in asked.headers
    assert sent == {
        "model": "qwen-image-2.0",
        "input": {"messages": [{"role": "user", "content": [{"text": "a fox"}]}]},
        "parameters": {"size": "1536*1024", "n": 2, **options},
    }


async def test_the_pictures_of_an_edit_come_before_the_prompt(qwen: Asker) -> None:
    sent = await qwen.sends(200, answer({"image": URL}), operation="edit", images=[PNG, JPEG])
    (message,) = sent["input"]["messages"]
    assert message["content"] == [{"image": PNG.url}, {"image": JPEG.url}, {"text": "a fox"}]


@pytest.mark.parametrize(
    ("contents", "urls"),
    [
        ([{"image": URL}], [URL]),
        ([{"image": URL}, {"text": "here you are"}, {"image": URL}], [URL, URL]),
        ([{"text": "I would rather not"}], []),
    ],
)
async def test_the_answer_carries_the_pictures(qwen: Asker, contents: Any, urls: list[str]) -> None:
    update = await qwen.submits(200, answer(*contents))
    assert (update.status, update.provider_ref, urls_of(update)) == (UpdateStatus.SUCCEEDED, "q1", urls)


async def test_nothing_can_be_asked_afterwards(qwen: Asker) -> None:
    capabilities = qwen.provider.capabilities
    assert (capabilities.is_synchronous, capabilities.can_poll, capabilities.can_cancel) == (
        True,
        False,
        False,
    )
    assert capabilities.submit_timeout_s == 180
