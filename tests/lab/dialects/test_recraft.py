"""Recraft: errors as plain text, forms for edits; OpenAI's own client as a peer."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import openai
import pytest

from tests.lab.dialects.forms import FORM_TYPE, form
from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Visitor, picture

pytestmark = pytest.mark.parametrize("name", ["recraft"])
KEY = {"Authorization": "Bearer recraft-test-api-key"}
IMAGE = ("image", picture())


async def sent(
    visitor: Visitor, path: str, fields: Mapping[str, object], files: list[tuple[str, bytes]]
) -> Answered:
    data = form({"prompt": PROMPT, **fields}, files)
    return await visitor.ask(Asked("POST", f"/v1/images/{path}", data=data, headers={**KEY, **FORM_TYPE}))


async def test_the_real_client_of_openai_gets_its_pictures(visitor: Visitor) -> None:
    await visitor.turn(small_pictures=True)
    async with openai.AsyncOpenAI(
        api_key="recraft-test-api-key", base_url=f"{visitor.base}/recraft/v1", max_retries=0, timeout=10
    ) as client:
        answer = await client.images.generate(
            model="recraftv3",
            prompt=PROMPT,
            n=2,
            size="3:2",
            response_format="b64_json",
            extra_body={"style": "realistic_image", "controls": {"colors": [{"rgb": [1, 2, 3]}]}},
        )
        await visitor.turn(refuse="credentials")
        with pytest.raises(openai.AuthenticationError) as raised:
            await client.images.generate(model="recraftv4", prompt=PROMPT)
    assert answer.data is not None
    assert [base64.b64decode(image.b64_json or "")[:4] for image in answer.data] == [b"RIFF"] * 2
    assert (await visitor.item())["size"] == "1536x1024"
    assert raised.value.response.text == "request unauthorized"


async def test_errors_are_plain_text_or_json(visitor: Visitor) -> None:
    for way, kind in (("text", "text/plain"), ("json", "application/json")):
        await visitor.turn(refuse="upstream_fault", refuse_way=way)
        refused = await visitor.submit()
        assert (refused.status, refused.headers["Content-Type"].partition(";")[0]) == (500, kind)


async def test_an_edit_is_a_form(visitor: Visitor) -> None:
    await visitor.turn(small_pictures=True)
    assert (await sent(visitor, "imageToImage", {"strength": 0.4}, [IMAGE])).status == 200
    assert (await visitor.item())["operation"] == "edit"
    assert (await sent(visitor, "inpaint", {}, [IMAGE, ("mask", picture("L"))])).status == 200
    item = await visitor.item()
    assert (item["operation"], len(item["inputs"]), len(item["mask"])) == ("inpaint", 1, 64)


async def test_the_account_tells_the_credits_that_are_left(visitor: Visitor) -> None:
    asked = Asked("GET", "/v1/users/me", headers=KEY)
    before = (await visitor.ask(asked)).body["credits"]
    spent = (await visitor.submit(n=2)).body["credits"]
    assert (await visitor.ask(asked)).body["credits"] == before - spent


@pytest.mark.parametrize(
    ("changes", "status", "told"),
    [
        ({"prompt": None}, 400, "prompt: field required"),
        ({"model": "recraftv9"}, 400, "model is not supported"),
        ({"model": "recraftv4", "style": "icon"}, 400, "style"),
        ({"model": "recraftv3", "size": "1152x896"}, 400, "size"),
        ({"size": "7:5"}, 400, "size"),
        ({"size": "128x128"}, 400, "size"),
        ({"n": 7}, 400, "n"),
        ({"style": "icon", "style_id": "1"}, 400, "style_id"),
        ({"controls": {"colors": [{"rgb": [1]}]}}, 400, "controls.colors.0.rgb"),
        ({"controls": {"light": 1}}, 400, "controls.light"),
        ({"quality": "low"}, 400, "quality"),
    ],
)
async def test_each_mistake_is_told_in_text(
    visitor: Visitor, changes: dict[str, Any], status: int, told: str
) -> None:
    asked = visitor.speaker.submit()
    refused = await visitor.ask(replace(asked, json={**asked.json, **changes}))
    assert (refused.status, refused.body) == (status, None)
    assert told in refused.raw.decode()
    assert await visitor.accepted() == 0


@pytest.mark.parametrize(
    ("path", "fields", "files", "told"),
    [
        ("imageToImage", {}, [IMAGE], "strength"),
        ("imageToImage", {"strength": 0.5}, [], "image"),
        ("imageToImage", {"strength": 0.5}, [IMAGE, ("mask", picture("L"))], "mask"),
        ("inpaint", {}, [IMAGE], "mask"),
    ],
)
async def test_mistakes_of_a_form_are_told(
    visitor: Visitor, path: str, fields: dict[str, object], files: list[tuple[str, bytes]], told: str
) -> None:
    refused = await sent(visitor, path, fields, files)
    assert refused.status == 400
    assert f": {told}:" in refused.raw.decode()
