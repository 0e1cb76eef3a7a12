"""APIMart: a list around the id, lists around the addresses, ratios in a field called size."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.apimart import KEY, PATH

pytestmark = pytest.mark.parametrize("name", ["apimart"])


async def submit(visitor: Visitor, **fields: Any) -> Any:
    """A submit with these fields; the whole answer."""
    body = {"model": "gpt-image-2", "prompt": "a fox", **fields}
    return await visitor.ask(Asked("POST", PATH, body, headers=KEY))


async def test_a_submit_is_answered_with_a_list_of_one_task(visitor: Visitor) -> None:
    submitted = await submit(visitor, size="21:9", resolution="2k")
    [task] = submitted.body["data"]
    assert (submitted.body["code"], task["status"]) == (200, "submitted")
    item = await visitor.item()
    assert item["ids"] == [task["task_id"]]
    wide, high = map(int, item["size"].split("x"))
    assert abs(wide / high - 21 / 9) < 0.02


async def test_some_models_answer_with_one_record(visitor: Visitor) -> None:
    await visitor.turn(variant="one_record")
    submitted = await submit(visitor)
    assert submitted.body["data"]["task_id"] == (await visitor.item())["ids"][0]


async def test_every_picture_has_a_list_of_addresses_and_its_end(visitor: Visitor) -> None:
    submitted = await submit(visitor)
    record = (await visitor.finished(submitted)).body["data"]
    [image] = record["result"]["images"]
    assert len(image["url"]) == 1
    assert image["expires_at"] > record["completed"] + 86_000
    assert (record["progress"], record["cost"]) == (100, 0.006)
    assert record["id"] != submitted.body["data"][0]["task_id"]


async def test_pictures_come_by_address_and_as_data_urls(visitor: Visitor, caller: Caller) -> None:
    for source in (caller.picture_url, data_url(picture())):
        await submit(visitor, image_urls=[source, source])
        item = await visitor.item()
        assert (item["operation"], len(item["inputs"])) == ("edit", 2)


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "dall-e"},
        {"prompt": " "},
        {"size": "1024x1024"},
        {"n": 2},
        {"resolution": "8k"},
        {"image_urls": [data_url(picture())] * 17},
        {"image_urls": ["data:image/png;base64,AAAA"]},
        {"webhook_url": "https://h/"},
    ],
)
async def test_a_mistake_is_an_error_with_its_code(visitor: Visitor, fields: dict[str, Any]) -> None:
    refused = await submit(visitor, **fields)
    assert (refused.status, refused.body["error"]["code"]) == (400, 400)
    assert await visitor.accepted() == 0


async def test_the_language_is_one_of_a_few(visitor: Visitor) -> None:
    task_id = (await submit(visitor)).body["data"][0]["task_id"]
    for query, status in (("", 200), ("?language=zh", 200), ("?language=fr", 400), ("?lang=en", 400)):
        answered = await visitor.ask(Asked("GET", f"/v1/tasks/{task_id}{query}", headers=KEY))
        assert answered.status == status


async def test_a_task_may_be_taken_back_by_its_owner(visitor: Visitor) -> None:
    await visitor.turn(ending="failed", ending_way="cancelled")
    record = (await visitor.finished(await submit(visitor))).body["data"]
    assert record["status"] == "cancelled"
    assert "result" not in record


async def test_progress_is_a_whole_number(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    poll = visitor.speaker.poll((await submit(visitor)).body)
    record = (await visitor.ask(poll)).body["data"]
    assert (record["progress"], record["status"] in {"submitted", "pending"}) == (0, True)


async def test_what_went_wrong_is_told_in_the_language_that_is_asked_for(visitor: Visitor) -> None:
    await visitor.turn(ending="blocked", ending_way="policy")
    submitted = await submit(visitor)
    await visitor.finished(submitted)
    address = f"/v1/tasks/{submitted.body['data'][0]['task_id']}"
    told = [
        (await visitor.ask(Asked("GET", f"{address}{query}", headers=KEY))).body["data"]["error"]["message"]
        for query in ("?language=en", "?language=zh", "")
    ]
    assert told == ["The picture violates the content policy", "内容违规", "内容违规"]
