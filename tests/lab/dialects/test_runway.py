"""Runway: what is its own, and its own client as a witness."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import runwayml

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Answered, Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.runway import KEY, PATH

pytestmark = pytest.mark.parametrize("name", ["runway"])


@pytest.fixture
async def client(visitor: Visitor) -> AsyncIterator[runwayml.AsyncRunwayML]:
    """Runway's own client."""
    async with runwayml.AsyncRunwayML(
        api_key="runway-test-api-key", base_url=f"{visitor.base}/runway", max_retries=0
    ) as client:
        yield client


async def submit(visitor: Visitor, **fields: Any) -> Answered:
    """A submit with these fields; the whole answer."""
    body = {"model": "gen4_image", "promptText": "a fox", "ratio": "1920:1080", **fields}
    return await visitor.ask(Asked("POST", PATH, body, headers=KEY))


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"promptText": ""}, ["promptText"]),
        ({"promptText": "🦊" * 501}, ["promptText"]),
        ({"ratio": "1344:768"}, ["ratio"]),
        ({"model": "gemini_image3_pro"}, ["ratio"]),
        ({"model": "gemini_image3_pro", "ratio": "1344:768", "seed": 7}, ["seed"]),
        ({"model": "gen4_image_turbo"}, ["referenceImages"]),
        ({"referenceImages": [{"uri": data_url(picture())}] * 4}, ["referenceImages"]),
        ({"referenceImages": [{"uri": "data:image/png;base64,AAAA"}]}, ["referenceImages", 0, "uri"]),
        (
            {"contentModeration": {"publicFigureThreshold": "none"}},
            ["contentModeration", "publicFigureThreshold"],
        ),
        ({"outputCount": 4}, ["outputCount"]),
    ],
)
async def test_a_wrong_field_is_an_issue_with_its_path(
    visitor: Visitor, fields: dict[str, Any], where: list[str | int]
) -> None:
    refused = await submit(visitor, **fields)
    [issue] = refused.body["issues"]
    assert (refused.status, issue["path"]) == (400, where)
    assert await visitor.accepted() == 0


async def test_every_call_names_the_version(visitor: Visitor) -> None:
    accepted = await submit(visitor)
    for version in ({}, {"X-Runway-Version": "2020-01-01"}):
        headers = {"Authorization": KEY["Authorization"], **version}
        asked = Asked("GET", f"/v1/tasks/{accepted.body['id']}", headers=headers)
        assert (await visitor.ask(asked)).status == 400


async def test_too_many_tasks_are_throttled_and_not_refused(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    accepted = [await submit(visitor) for _ in range(4)]
    looks = [await visitor.ask(visitor.speaker.poll(one.body)) for one in accepted]
    assert [one.body["status"] for one in looks] == ["PENDING"] + ["THROTTLED"] * 3


async def test_progress_goes_from_zero_to_one(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[0.4, 0.4])
    accepted, seen = await submit(visitor), []
    while not visitor.speaker.is_final(look := await visitor.ask(visitor.speaker.poll(accepted.body))):
        seen += [look.body["progress"]] if look.body["status"] == "RUNNING" else []
    assert seen == sorted(seen)
    assert 0 <= seen[0] < seen[-1] < 1


@pytest.mark.parametrize(
    ("knobs", "status", "cost"),
    [
        ({}, "SUCCEEDED", 8),
        ({"ending": "failed", "ending_way": "internal"}, "FAILED", 0),
        ({"ending": "blocked", "ending_way": "output"}, "FAILED", 8),
    ],
)
async def test_the_end_tells_what_it_costs(
    visitor: Visitor, knobs: dict[str, Any], status: str, cost: int
) -> None:
    await visitor.turn(**knobs)
    last = await visitor.finished(await submit(visitor))
    assert (last.body["status"], last.body["cost"]) == (status, {"credits": cost})


async def test_what_is_deleted_cannot_be_fetched_again(visitor: Visitor) -> None:
    accepted = await submit(visitor)
    await visitor.finished(accepted)
    answers = [await visitor.ask(visitor.speaker.cancel(accepted.body)) for _ in range(2)]
    assert [one.status for one in answers] == [204, 404]
    assert (await visitor.ask(visitor.speaker.poll(accepted.body))).status == 404
    assert (await visitor.item())["outcome"] == "done"


async def test_its_own_client_gets_its_picture(
    visitor: Visitor, caller: Caller, client: runwayml.AsyncRunwayML
) -> None:
    made = await client.text_to_image.create(
        model="gen4_image",
        prompt_text="a @fox",
        ratio="1280:720",
        seed=7,
        reference_images=[{"uri": caller.picture_url, "tag": "fox"}],
    )
    assert made.to_dict()["estimatedCost"] == {"credits": 8}
    await visitor.item()
    task = await client.tasks.retrieve(made.id)
    assert task.status == "SUCCEEDED"
    assert (len(task.output), task.cost.credits) == (1, 8)
    assert (await visitor.item())["inputs"] == [hashlib.sha256(picture()).hexdigest()]


async def test_its_own_client_understands_every_state(
    visitor: Visitor, client: runwayml.AsyncRunwayML
) -> None:
    await visitor.turn(ending="blocked", ending_way="input_text")
    made = await client.text_to_image.create(model="gen4_image", prompt_text="a fox", ratio="720:720")
    await visitor.item()
    task = await client.tasks.retrieve(made.id)
    assert task.status == "FAILED"
    assert task.failure_code == "SAFETY.INPUT.TEXT"
    await visitor.turn(latency_s=[30, 30])
    made = await client.text_to_image.create(model="gen4_image", prompt_text="a fox", ratio="720:720")
    assert (await client.tasks.retrieve(made.id)).status == "PENDING"
    await client.tasks.delete(made.id)
    with pytest.raises(runwayml.NotFoundError):
        await client.tasks.retrieve(made.id)
    await visitor.turn(refuse="rate_limited", refuse_where="submit")
    with pytest.raises(runwayml.RateLimitError):
        await client.text_to_image.create(model="gen4_image", prompt_text="a fox", ratio="720:720")
