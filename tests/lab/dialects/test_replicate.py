"""Replicate: what is its own, and its own client as a witness."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from replicate.client import Client
from replicate.exceptions import ReplicateError
from replicate.webhook import WebhookValidationError

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Answered, Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.replicate import KEY, PATH

pytestmark = pytest.mark.parametrize("name", ["replicate"])
SCHNELL = "black-forest-labs/flux-schnell"


@pytest.fixture
async def client(visitor: Visitor) -> AsyncIterator[Client]:
    """Replicate's own client."""
    client = Client("replicate-test-api-key", base_url=f"{visitor.base}/replicate")
    client.poll_interval = 0.02
    yield client
    await client._async_client.aclose()


async def submit(visitor: Visitor, given: dict[str, Any], **fields: Any) -> Answered:
    """A submit with this input; the whole answer."""
    body = {"version": SCHNELL, **fields, "input": {"prompt": "a fox", **given}}
    return await visitor.ask(Asked("POST", PATH, body, headers=KEY))


@pytest.mark.parametrize(
    ("given", "fields", "where"),
    [
        ({"prompt": None}, {}, "input.prompt"),
        ({"num_outputs": 5}, {}, "input.num_outputs"),
        ({"aspect_ratio": "7:1"}, {}, "input.aspect_ratio"),
        ({"guidance": 3}, {}, "input.guidance"),
        ({}, {"webhook_events_filter": ["finished"]}, "webhook_events_filter"),
        ({"input_images": ["not a picture"]}, {"version": "black-forest-labs/flux-2-pro"}, "input_images.0"),
    ],
)
async def test_a_wrong_field_is_a_problem_that_names_it(
    visitor: Visitor, given: dict[str, Any], fields: dict[str, Any], where: str
) -> None:
    refused = await submit(visitor, given, **fields)
    problem = json.loads(refused.raw)
    assert (refused.status, problem["status"]) == (422, 422)
    assert where in problem["detail"]
    assert refused.headers["Content-Type"].startswith("application/problem+json")
    assert await visitor.accepted() == 0


@pytest.mark.parametrize("version", [f"{SCHNELL}:{'0' * 64}", "nobody/nothing", "0" * 64])
async def test_a_version_that_nobody_has_is_refused(visitor: Visitor, version: str) -> None:
    refused = await submit(visitor, {}, version=version)
    assert (refused.status, json.loads(refused.raw)["title"]) == (422, "Invalid version or not permitted")


async def test_a_version_is_named_in_three_ways(visitor: Visitor) -> None:
    first = (await submit(visitor, {})).body["version"]
    for version in (first, f"{SCHNELL}:{first}"):
        assert (await submit(visitor, {}, version=version)).body["model"] == SCHNELL


@pytest.mark.parametrize(
    ("model", "given", "is_list"),
    [
        ("flux-schnell", {}, True),
        ("flux-1.1-pro", {}, False),
        ("flux-2-pro", {"input_images": [data_url(picture())] * 2}, False),
    ],
)
async def test_output_is_a_list_or_one_address_as_the_model_likes(
    visitor: Visitor, model: str, given: dict[str, Any], is_list: bool
) -> None:
    last = await visitor.finished(await submit(visitor, given, version=f"black-forest-labs/{model}"))
    assert isinstance(last.body["output"], list) is is_list
    pictures = given.get("input_images", [])
    assert (await visitor.item())["inputs"] == [hashlib.sha256(picture()).hexdigest()] * len(pictures)


async def test_a_list_is_read_by_time_and_by_the_address_of_the_next_page(visitor: Visitor) -> None:
    since = datetime.now(UTC)
    made = [(await submit(visitor, {})).body["id"] for _ in range(7)]
    window = {"created_after": since.isoformat(), "created_before": datetime.now(UTC).isoformat()}
    first = await visitor.ask(Asked("GET", f"{PATH}?{urlencode(window)}", headers=KEY))
    second = await visitor.ask(Asked("GET", first.body["next"], headers=KEY))
    assert [one["id"] for one in first.body["results"] + second.body["results"]] == made[::-1]
    assert (len(first.body["results"]), second.body["next"]) == (5, None)
    early = {"created_before": (since - timedelta(hours=1)).isoformat()}
    assert (await visitor.ask(Asked("GET", f"{PATH}?{urlencode(early)}", headers=KEY))).body["results"] == []


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (None, ["processing", "succeeded"]),
        (["start"], ["processing"]),
        (["output"], ["processing"]),
        (["completed"], ["succeeded"]),
    ],
)
async def test_only_the_events_that_were_asked_for_are_told(
    visitor: Visitor, caller: Caller, events: list[str] | None, words: list[str]
) -> None:
    await submit(visitor, {}, webhook=caller.callback_url, webhook_events_filter=events)
    await visitor.item(is_told=True)
    await caller.until(lambda: bool(caller.taken))
    assert [json.loads(raw)["status"] for _, raw in caller.taken] == words


async def test_what_is_an_hour_old_has_no_data_any_more(visitor: Visitor) -> None:
    await visitor.turn(variant="data_removed")
    last = await visitor.finished(await submit(visitor, {}))
    assert (last.body["status"], last.body["data_removed"]) == ("succeeded", True)
    assert (last.body["output"], last.body["input"]) == (None, {})


async def test_moderation_is_told_in_words_only(visitor: Visitor) -> None:
    await visitor.turn(ending="blocked", ending_way="sensitive")
    last = await visitor.finished(await submit(visitor, {}))
    assert last.body["status"] == "failed"
    assert "(E005)" in last.body["error"]


async def test_an_answer_may_be_held_back_until_the_end(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[0.2, 0.2])
    body = {"version": SCHNELL, "input": {"prompt": "a fox"}}
    for prefer, word in (("wait=5", "succeeded"), ("", "starting")):
        held = await visitor.ask(Asked("POST", PATH, body, headers={**KEY, "Prefer": prefer}))
        assert (held.status, held.body["status"]) == (201, word)


async def test_its_own_client_gets_its_pictures(client: Client, caller: Caller) -> None:
    made = await client.predictions.async_create(
        model=SCHNELL, input={"prompt": "a fox", "num_outputs": 2}, webhook=caller.callback_url
    )
    await made.async_wait()
    assert (made.status, len(made.output or [])) == ("succeeded", 2)
    assert made.progress is not None
    assert made.progress.percentage == 1.0
    page = await client.predictions.async_list()
    assert [one.id for one in page] == [made.id]
    await caller.until(lambda: bool(caller.taken))
    headers, raw = caller.taken[-1]
    secret = await client.webhooks.default.async_secret()
    client.webhooks.validate(headers=headers, body=raw.decode(), secret=secret, tolerance=300)
    with pytest.raises(WebhookValidationError):
        client.webhooks.validate(headers=headers, body=f"{raw.decode()} ", secret=secret)


async def test_its_own_client_cancels_and_understands_problems(visitor: Visitor, client: Client) -> None:
    await visitor.turn(latency_s=[30, 30])
    made = await client.predictions.async_create(version=SCHNELL, input={"prompt": "a fox"})
    await made.async_cancel()
    assert made.status == "canceled"
    await visitor.turn(refuse="funds", refuse_way="credit")
    with pytest.raises(ReplicateError) as refused:
        await client.predictions.async_create(version=SCHNELL, input={"prompt": "a fox"})
    assert (refused.value.status, refused.value.title) == (402, "Insufficient credit")
