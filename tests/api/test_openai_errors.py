"""Every refusal and every failure is an exception that OpenAI's client knows."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from safelight.api.parts import ApiParts
from safelight.lifecycle.accept import Accept
from tests.api.door import Caller, Door, running_door
from tests.api.pictures import png
from tests.api.shop import Shop, small

ASYNC = {"Prefer": "respond-async"}


def client_of(door: Door, caller: Caller | None = None, **options: Any) -> openai.AsyncOpenAI:
    key = (caller or door.caller).key
    return openai.AsyncOpenAI(base_url=f"{door.url}/v1", api_key=key, **{"max_retries": 0, **options})


@pytest.fixture
async def client(door: Door) -> AsyncIterator[openai.AsyncOpenAI]:
    async with client_of(door) as made:
        yield made


def told(error: openai.APIStatusError) -> tuple[str | None, str | None, str | None]:
    assert error.request_id
    assert isinstance(error.body, dict)
    assert error.body.keys() == {"message", "type", "param", "code"}
    return error.type, error.code, error.param


async def test_a_wrong_key_is_an_authentication_error(door: Door) -> None:
    async with openai.AsyncOpenAI(base_url=f"{door.url}/v1", api_key="sk-nonsense") as client:
        with pytest.raises(openai.AuthenticationError) as error:
            await client.images.generate(prompt="x")
    assert told(error.value) == ("invalid_request_error", "invalid_api_key", None)
    assert error.value.response.headers["www-authenticate"] == "Bearer"


async def test_an_unknown_model_is_not_found(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as error:
        await client.images.generate(prompt="x", model="gpt-image-2")
    assert told(error.value) == ("invalid_request_error", "model_not_found", "model")


@pytest.mark.parametrize(
    ("given", "param", "code"),
    [
        ({"prompt": " "}, "prompt", "invalid_value"),
        ({"n": 9}, "n", "invalid_value"),
        ({"size": "8x8"}, "size", "invalid_value"),
        ({"model": "poster", "quality": "high"}, "quality", "invalid_value"),
        ({"model": "poster", "extra_body": {"options": {"steps": 3}}}, "options.steps", "invalid_value"),
        ({"model": "retouch"}, "model", "invalid_value"),
        ({"stream": True}, "stream", "invalid_value"),
        ({"partial_images": 2}, "partial_images", "invalid_value"),
        ({"extra_body": {"colour": "red"}}, "colour", "unknown_parameter"),
        ({"extra_body": {"priority": 11}}, "priority", "invalid_value"),
    ],
)
async def test_a_field_that_does_not_fit_is_a_bad_request_that_names_it(
    door: Door, client: openai.AsyncOpenAI, given: dict[str, Any], param: str, code: str
) -> None:
    rows = await door.rows()
    with pytest.raises(openai.BadRequestError) as error:
        await client.images.generate(**{"prompt": "x", **given})
    assert told(error.value) == ("invalid_request_error", code, param)
    assert param in error.value.message
    assert await door.rows() == rows


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"image": [png(), b"no picture"]}, "image[1]"),
        ({"image": [png(), png(), png()]}, "image"),
        ({"image": png(), "model": "poster"}, "model"),
        ({"image": png(), "mask": png(), "model": "retouch"}, "mask"),
        ({"image": png(), "mask": png(side=8)}, "mask"),
        ({"image": png(), "n": 9}, "n"),
        ({"image": png(), "markup": png()}, "markup"),
        ({"image": png(), "model": "retouch", "quality": "high"}, "quality"),
    ],
)
async def test_a_picture_that_does_not_fit_is_a_bad_request_that_names_it(
    client: openai.AsyncOpenAI, given: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as error:
        await client.images.edit(**{"prompt": "x", **given})
    assert told(error.value) == ("invalid_request_error", "invalid_value", param)


async def test_a_picture_in_json_is_named_as_it_was_sent(door: Door) -> None:
    body = {"prompt": "x", "images": [{"image_url": "http://x.example/a.png"}]}
    answer = await door.request("POST", "/v1/images/edits", json=body)
    assert (answer.status, answer.json["error"]["param"]) == (400, "images[0].image_url")


async def test_what_asks_for_nothing_is_accepted_of_every_model(client: openai.AsyncOpenAI) -> None:
    answer = await client.images.generate(
        prompt="x",
        model="poster",
        size="auto",
        quality="auto",
        background="auto",
        moderation="low",
        output_format="png",
        stream=False,
        user="u-1",
        extra_headers=ASYNC,
    )
    assert answer.data is None


async def test_too_few_credits_are_a_quota_that_is_used_up_and_not_tried_again(
    door: Door,
) -> None:
    poor = await door.new_caller(granted=0)
    async with client_of(door, poor, max_retries=3) as poor_client:
        with pytest.raises(openai.RateLimitError) as error:
            await asyncio.wait_for(poor_client.images.generate(prompt="x"), timeout=60)
    assert told(error.value) == ("insufficient_quota", "insufficient_quota", None)
    assert error.value.response.headers["x-should-retry"] == "false"
    assert error.value.request.headers["x-stainless-retry-count"] == "0"


async def test_too_many_open_tasks_are_a_rate_limit_with_its_wait(parts: ApiParts) -> None:
    settings = parts.settings.model_copy(update={"max_open_tasks": 1})
    few = dataclasses.replace(parts, settings=settings, accept=Accept(parts.database, settings))
    async with running_door(few) as door, client_of(door) as client:
        await client.images.generate(prompt="x", extra_headers=ASYNC)
        with pytest.raises(openai.RateLimitError) as error:
            await client.images.generate(prompt="y", extra_headers=ASYNC)
    assert told(error.value) == ("requests", "rate_limit_exceeded", None)
    assert int(error.value.response.headers["retry-after"]) >= 1


async def test_a_key_that_was_used_for_another_body_is_refused(client: openai.AsyncOpenAI) -> None:
    headers = {**ASYNC, "Idempotency-Key": "order-1"}
    await client.images.generate(prompt="x", extra_headers=headers)
    with pytest.raises(openai.UnprocessableEntityError) as error:
        await client.images.generate(prompt="y", extra_headers=headers)
    assert told(error.value) == ("invalid_request_error", "idempotency_key_reused", None)


async def test_a_task_that_is_canceled_meanwhile_is_a_conflict(
    door: Door, client: openai.AsyncOpenAI
) -> None:
    asked = asyncio.create_task(client.images.generate(prompt="x"))
    tasks: list[Any] = []
    while not tasks:
        await asyncio.sleep(0.02)
        tasks = (await door.request("GET", "/v1/tasks")).json["data"]
    await door.request("POST", f"/v1/tasks/{tasks[0]['id']}/cancel")
    with pytest.raises(openai.ConflictError) as error:
        await asked
    assert told(error.value) == ("invalid_request_error", "task_canceled", None)
    assert error.value.response.headers["content-location"] == f"/v1/images/tasks/{tasks[0]['id']}"


async def test_a_database_that_is_gone_is_a_server_error(door: Door, client: openai.AsyncOpenAI) -> None:
    await client.images.generate(prompt="x", extra_headers=ASYNC)
    await door.database.close()
    with pytest.raises(openai.InternalServerError) as error:
        await client.images.generate(prompt="x")
    assert told(error.value) == ("server_error", "server_error", None)
    await door.database.open()


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "generations", 405), ("POST", "variations", 404)]
)
async def test_an_address_that_is_not_there_answers_in_the_same_words(
    door: Door, method: str, path: str, status: int
) -> None:
    answer = await door.request(method, f"/v1/images/{path}")
    assert answer.status == status
    assert answer.json["error"].keys() == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("text/plain", b"{}", 415),
        ("application/json", b"[]", 400),
        ("application/json", b"x" * 1_100_000, 413),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(
    door: Door, content_type: str, body: bytes, status: int
) -> None:
    headers = {"Content-Type": content_type}
    answer = await door.request("POST", "/v1/images/generations", data=body, headers=headers)
    assert (answer.status, answer.json["error"]["type"]) == (status, "invalid_request_error")


async def test_a_blocked_prompt_is_a_bad_request_of_the_user(shop: Shop) -> None:
    async with shop.working(), shop.client(max_retries=2) as client:
        with pytest.raises(openai.BadRequestError) as error:
            await client.images.generate(
                model="lab-sync", extra_body={"options": {"lab": {"moderate": 1.0}}}, **small()
            )
    assert told(error.value) == ("image_generation_user_error", "moderation_blocked", None)
    assert len(await shop.tasks()) == 1


async def test_a_fault_upstream_is_a_server_error_that_is_not_tried_again(shop: Shop) -> None:
    async with shop.working(), shop.client(max_retries=2) as client:
        lab = {"options": {"lab": {"fail": 1.0}}}
        asked = asyncio.create_task(client.images.generate(model="lab-sync", extra_body=lab, **small()))
        while not asked.done():
            await shop.world.pass_time(seconds=60)
            await asyncio.sleep(0.2)
        with pytest.raises(openai.InternalServerError) as error:
            await asked
    assert (error.value.status_code, *told(error.value)) == (502, "server_error", "server_error", None)
    (task_id,) = await shop.tasks()
    shown = await shop.door.request("GET", f"/v1/images/tasks/{task_id}")
    assert (shown.status, shown.json["status"]) == (200, "failed")
    assert shown.json["error"] == json.loads(error.value.response.content)["error"]
    assert shown.json["credits"] == {"held": 0, "captured": 0, "released": 1}
