"""OpenAI's own client, unchanged, gets its pictures: from every kind of model, in every form."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from typing import Any

import pytest
from PIL import Image

from tests.api.pictures import data_url, png
from tests.api.shop import SHOE, Shop, small

MODELS = ("lab-sync", "lab-poll", "lab-callback")


def opened(b64_json: str | None) -> Image.Image:
    assert b64_json is not None
    image = Image.open(io.BytesIO(base64.b64decode(b64_json, validate=True)))
    image.load()
    return image


@pytest.mark.parametrize("model", MODELS)
async def test_a_prompt_becomes_pictures_at_once(shop: Shop, model: str) -> None:
    async with shop.working(), shop.client() as client:
        answer = await client.images.generate(model=model, n=2, **small())
    assert answer.data is not None
    assert [opened(image.b64_json).size for image in answer.data] == [(64, 64), (64, 64)]
    assert answer.data[0].b64_json != answer.data[1].b64_json
    assert [image.url for image in answer.data] == [None, None]
    assert (answer.size, answer.output_format) == ("64x64", "png")
    assert answer.created > 1_700_000_000
    assert len(await shop.tasks()) == 1


@pytest.mark.parametrize("model", MODELS)
async def test_pictures_and_a_mask_become_a_picture(shop: Shop, model: str) -> None:
    files = [("first.png", png(shade=10)), ("second.png", png(shade=200))]
    async with shop.working(), shop.client() as client:
        answer = await client.images.edit(
            model=model,
            image=files,
            mask=("mask.png", png(shade=255)),
            extra_body={"metadata": {"order": "7"}, "priority": 3},
            **small(),
        )
    assert answer.data is not None
    assert opened(answer.data[0].b64_json).size == (64, 64)
    (task,) = await shop.world.rows("SELECT operation, images, mask, metadata, priority FROM tasks")
    assert (task["operation"], json.loads(task["metadata"]), task["priority"]) == ("edit", {"order": "7"}, 3)
    stored = {row["id"]: row["sha256"] for row in await shop.world.rows("SELECT id, sha256 FROM uploads")}
    assert len(stored) == 3
    assert [*task["images"], task["mask"]] == [*dict.fromkeys([*task["images"], task["mask"]])]
    assert set(stored) == {*task["images"], task["mask"]}


async def test_the_synchronous_client_gets_links_if_it_asks_for_them(shop: Shop) -> None:
    async with shop.working():
        answer = await shop.in_thread(
            lambda client: client.images.generate(model="lab-sync", response_format="url", **small())
        )
    assert answer.data is not None
    assert answer.data[0].b64_json is None
    url = answer.data[0].url
    assert url is not None
    assert url.startswith(f"{shop.door.url}/v1/assets/")
    picture = await shop.door.ask("GET", url)
    assert (picture.status, picture.headers["Content-Type"]) == (200, "image/png")


async def test_the_synchronous_client_edits_a_single_file(shop: Shop) -> None:
    async with shop.working():
        answer = await shop.in_thread(
            lambda client: client.images.edit(model="lab-sync", image=png(), n=2, **small())
        )
    assert answer.data is not None
    assert len(answer.data) == 2


async def test_a_model_and_a_size_may_be_left_out(shop: Shop) -> None:
    async with shop.working(), shop.client() as client:
        answer = await client.images.generate(prompt=SHOE, size="auto")
    assert answer.data is not None
    assert opened(answer.data[0].b64_json).size == (1024, 1024)
    assert (await shop.world.rows("SELECT model FROM tasks"))[0]["model"] == "lab-callback"


@pytest.mark.parametrize("form", ["data", "upload"])
async def test_an_edit_in_json_names_its_pictures(shop: Shop, form: str) -> None:
    first: dict[str, Any] = {"image_url": data_url(png())}
    if form == "upload":
        first = {"file_id": (await shop.door.upload(png())).json["id"]}
    body = {
        "model": "lab-sync",
        "images": [first, {"image_url": data_url(png(shade=1))}],
        "mask": first,
        **small(),
    }
    async with shop.working():
        answer = await shop.door.request("POST", "/v1/images/edits", json=body)
    assert answer.status == 200, answer.body
    assert opened(answer.json["data"][0]["b64_json"]).size == (64, 64)
    (task,) = await shop.world.rows("SELECT images, mask FROM tasks")
    assert (len(task["images"]), task["mask"]) == (2, task["images"][0])


async def test_models_are_listed_for_openais_client_too(shop: Shop) -> None:
    async with shop.client() as client:
        models = [model async for model in await client.models.list()]
    assert {(model.id, model.object, model.owned_by) for model in models} == {
        (name, "model", "safelight") for name in MODELS
    }


async def test_two_hundred_are_held_at_once_and_all_get_their_picture(shop: Shop) -> None:
    async with shop.client(max_retries=0, timeout=60) as client:
        asked = [
            asyncio.create_task(client.images.generate(model="lab-callback", **small())) for _ in range(200)
        ]
        await shop.until(lambda: shop.held == 200, timeout_s=120)
        async with shop.working():
            answers = await asyncio.gather(*asked)
    assert [len(answer.data or ()) for answer in answers] == [1] * 200
    assert len(await shop.tasks()) == 200
    assert shop.held == 0
