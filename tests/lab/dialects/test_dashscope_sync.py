"""DashScope's Qwen-Image: what is its own, and its own client as a witness."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import dashscope
import pytest
from dashscope import MultiModalConversation

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.dashscope_sync import KEY, asked

pytestmark = pytest.mark.parametrize("name", ["dashscope-sync"])
FOX = {"text": "a fox"}
PICTURE = {"image": data_url(picture())}


@pytest.mark.parametrize(
    ("model", "content", "parameters", "where"),
    [
        ("qwen-image-9", [FOX], {}, "model"),
        ("qwen-image-plus", [FOX], {"size": "1024*1024"}, "parameters.size"),
        ("qwen-image-plus", [FOX], {"n": 2}, "parameters.n"),
        ("qwen-image-plus", [PICTURE, FOX], {}, "input.messages.0.content"),
        ("qwen-image-2.0", [FOX], {"size": "4096*4096"}, "parameters.size"),
        ("qwen-image-edit-plus", [FOX], {}, "input.messages.0.content"),
        ("qwen-image-edit-plus", [PICTURE] * 4 + [FOX], {}, "input.messages.0.content"),
        ("qwen-image-edit-plus", [FOX, FOX], {}, "input.messages.0.content.0.image"),
    ],
)
async def test_a_wrong_field_has_one_code(
    visitor: Visitor, model: str, content: list[dict[str, Any]], parameters: dict[str, Any], where: str
) -> None:
    refused = await visitor.ask(asked(model, content, **parameters))
    assert (refused.status, refused.body["code"]) == (400, "InvalidParameter")
    assert refused.body["message"].startswith(where)
    assert await visitor.accepted() == 0


async def test_nothing_is_asynchronous_here(visitor: Visitor) -> None:
    submit = visitor.speaker.submit()
    headers = {**KEY, "X-DashScope-Async": "enable"}
    refused = await visitor.ask(Asked("POST", submit.path, submit.json, headers=headers))
    assert (refused.status, refused.body["code"], await visitor.accepted()) == (403, "AccessDenied", 0)


async def test_every_picture_is_a_part_of_one_message(visitor: Visitor, caller: Caller) -> None:
    content = [{"image": caller.picture_url}, PICTURE, FOX]
    drawn = await visitor.ask(asked("qwen-image-edit-plus", content, n=3))
    [choice] = drawn.body["output"]["choices"]
    assert (choice["finish_reason"], choice["message"]["role"]) == ("stop", "assistant")
    assert [set(part) for part in choice["message"]["content"]] == [{"image"}] * 3
    assert drawn.body["usage"] == {"image_count": 3, "width": 320, "height": 320}
    assert (await visitor.item())["inputs"] == [hashlib.sha256(picture()).hexdigest()] * 2


async def test_a_picture_may_be_inspected_only_when_it_is_drawn(visitor: Visitor) -> None:
    await visitor.turn(ending="blocked", ending_way="output")
    refused = await visitor.submit()
    assert (refused.status, refused.body["code"]) == (400, "DataInspectionFailed")
    assert (await visitor.item())["outcome"] == "blocked"


async def test_its_own_client_gets_its_pictures(
    visitor: Visitor, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashscope, "base_http_api_url", f"{visitor.base}/dashscope-sync/api/v1")
    monkeypatch.setattr(dashscope, "api_key", "dashscope-sync-test-api-key")

    async def call(model: str, content: list[dict[str, Any]], **parameters: Any) -> Any:
        messages = [{"role": "user", "content": content}]
        return await asyncio.to_thread(
            MultiModalConversation.call, model=model, messages=messages, **parameters
        )

    drawn = await call("qwen-image-plus", [FOX], size="1328*1328", negative_prompt="blurry", watermark=False)
    assert drawn.status_code == 200, drawn
    assert drawn.output.choices[0].message.content[0]["image"].startswith(visitor.base)
    edited = await call("qwen-image-edit-plus", [{"image": caller.picture_url}, FOX], n=2)
    assert len(edited.output.choices[0].message.content) == 2
    await visitor.turn(refuse="content_blocked", refuse_way="inspection")
    refused = await call("qwen-image-plus", [FOX])
    assert (refused.status_code, refused.code) == (400, "DataInspectionFailed")
