"""Leonardo.Ai: what is its own. Its client is not installed here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Answered, Asked, Visitor
from tests.lab.dialects.speakers.leonardo import KEY, PATH, USER

pytestmark = pytest.mark.parametrize("name", ["leonardo"])
ID = "11111111-2222-3333-4444-555555555555"


async def submit(visitor: Visitor, **fields: Any) -> Answered:
    """A submit with these fields; the whole answer."""
    return await visitor.ask(Asked("POST", PATH, {"prompt": "a fox", **fields}, headers=KEY))


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"width": 1001}, "width"),
        ({"height": 2048}, "height"),
        ({"num_images": 5}, "num_images"),
        ({"num_images": 9, "width": 512, "height": 512}, "num_images"),
        ({"modelId": "phoenix"}, "modelId"),
        ({"init_image_id": "https://example.org/a.png"}, "init_image_id"),
        ({"contrast": 2}, "contrast"),
        ({"guidance_scale": 30}, "guidance_scale"),
    ],
)
async def test_a_wrong_field_is_named_in_one_text(
    visitor: Visitor, fields: dict[str, Any], where: str
) -> None:
    refused = await submit(visitor, **fields)
    assert (refused.status, refused.body["path"], refused.body["code"]) == (400, "$", "unexpected")
    assert refused.body["error"].startswith(where)
    assert await visitor.accepted() == 0


async def test_smaller_pictures_may_be_more(visitor: Visitor) -> None:
    accepted = await submit(visitor, num_images=8, width=512, height=512)
    assert len(visitor.speaker.pictures(await visitor.finished(accepted))) == 8


async def test_pictures_are_given_by_ids_alone(visitor: Visitor) -> None:
    given = {"init_image_id": ID, "init_strength": 0.5}
    await submit(visitor, **given)
    assert (await visitor.item())["operation"] == "edit"


async def test_an_id_that_nobody_knows_is_null(visitor: Visitor) -> None:
    asked = Asked("GET", f"{PATH}/{ID}", headers=KEY)
    # The words of a poll for what is not there are not documented; GraphQL's are null.
    assert (await visitor.ask(asked)).body == {"generations_by_pk": None}


async def test_a_list_belongs_to_a_user(visitor: Visitor) -> None:
    made = [(await submit(visitor)).body["sdGenerationJob"]["generationId"] for _ in range(3)]
    me = await visitor.ask(Asked("GET", "/api/rest/v1/me", headers=KEY))
    assert me.body["user_details"][0]["user"]["id"] == USER
    page = await visitor.ask(Asked("GET", f"{PATH}/user/{USER}?offset=1&limit=1", headers=KEY))
    assert [one["id"] for one in page.body["generations"]] == [made[1]]
    strangers = await visitor.ask(Asked("GET", f"{PATH}/user/{ID}", headers=KEY))
    assert strangers.body["generations"] == []


@pytest.mark.parametrize("variant", [None, "nsfw"])
async def test_a_callback_is_nested_and_repeats_the_secret(
    visitor: Visitor, caller: Caller, variant: str | None
) -> None:
    await visitor.turn(callback_urls={"leonardo": caller.callback_url}, variant=variant)
    accepted = await submit(visitor, num_images=1)
    await caller.until(lambda: bool(caller.taken))
    headers, raw = caller.taken[0]
    body = json.loads(raw)
    told = body["data"]["object"]
    assert (body["type"], told["status"]) == ("image_generation.complete", "COMPLETE")
    assert told["id"] == accepted.body["sdGenerationJob"]["generationId"]
    assert [image["generationId"] for image in told["images"]] == [told["id"]]
    assert headers["Authorization"] == f"Bearer {told['apiKey']['webhookCallbackApiKey']}"
    assert told["images"][0]["nsfw"] is told["nsfw"] is (variant == "nsfw")


async def test_a_forged_callback_does_not_know_the_secret(visitor: Visitor, caller: Caller) -> None:
    await visitor.turn(callback_urls={"leonardo": caller.callback_url}, callback_forge=1)
    await submit(visitor, num_images=1)
    await caller.until(lambda: len(caller.taken) == 2)
    told = [json.loads(raw)["data"]["object"]["apiKey"]["webhookCallbackApiKey"] for _, raw in caller.taken]
    assert sorted(told) == ["leonardo-test-callback-secret", "nobody's"]


@pytest.mark.parametrize(
    ("fields", "flaws"),
    [
        ({}, ["shown to everybody", "without contrast"]),
        ({"public": False}, ["without contrast"]),
        ({"public": False, "contrast": 3.5}, []),
    ],
)
async def test_what_becomes_of_a_picture_unasked_is_noted(
    visitor: Visitor, fields: dict[str, Any], flaws: list[str]
) -> None:
    await submit(visitor, modelId="de7d3faf-762f-48e0-b3b7-9d0ac3a3fcf3", **fields)
    assert (await visitor.item())["details"]["flaws"] == flaws
