"""DashScope's tasks: what is its own, and its own client as a witness."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import dashscope
import pytest
from dashscope import ImageSynthesis
from dashscope.aigc.image_generation import ImageGeneration
from dashscope.client.base_api import BaseAsyncApi

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Answered, Asked, Visitor, picture
from tests.lab.dialects.speakers.dashscope import BEARER, KEY, SERVICES, TASKS

pytestmark = pytest.mark.parametrize("name", ["dashscope"])
EDIT = f"{SERVICES}/image2image/image-synthesis"
MESSAGE = {"messages": [{"role": "user", "content": [{"text": "a fox"}]}]}


async def submit(visitor: Visitor, model: str = "wan2.2-t2i-flash", **parameters: Any) -> Answered:
    """A submit with these parameters; the whole answer."""
    body = {"model": model, "input": {"prompt": "a fox"}, "parameters": parameters}
    return await visitor.ask(Asked("POST", f"{SERVICES}/text2image/image-synthesis", body, headers=KEY))


async def edit(visitor: Visitor, model: str, given: dict[str, Any]) -> Answered:
    """A submit with pictures; the whole answer."""
    body = {"model": model, "input": {"prompt": "a fox", **given}}
    return await visitor.ask(Asked("POST", EDIT, body, headers=KEY))


@pytest.mark.parametrize(
    ("model", "parameters", "where"),
    [
        ("wan2.2-t2i-flash", {"size": "1024x1024"}, "parameters.size"),
        ("wan2.2-t2i-flash", {"size": "1504*640"}, "parameters.size"),
        ("wan2.5-t2i-preview", {"size": "1024*1024"}, "parameters.size"),
        ("wan2.2-t2i-flash", {"n": 5}, "parameters.n"),
        ("wan2.2-t2i-flash", {"n": "1"}, "parameters.n"),
        ("wan2.2-t2i-flash", {"quality": "hd"}, "parameters.quality"),
        ("wan2.6-t2i", {}, "model"),
    ],
)
async def test_a_wrong_parameter_has_one_code(
    visitor: Visitor, model: str, parameters: dict[str, Any], where: str
) -> None:
    refused = await submit(visitor, model, **parameters)
    assert (refused.status, refused.body["code"]) == (400, "InvalidParameter")
    assert refused.body["message"].startswith(where)
    assert refused.body["request_id"]
    assert await visitor.accepted() == 0


async def test_without_the_header_nothing_is_asynchronous(visitor: Visitor) -> None:
    asked = visitor.speaker.submit()
    refused = await visitor.ask(Asked("POST", asked.path, asked.json, headers=BEARER))
    assert (refused.status, refused.body["code"], await visitor.accepted()) == (403, "AccessDenied", 0)


async def test_a_part_of_the_pictures_may_fail_with_codes_of_their_own(visitor: Visitor) -> None:
    await visitor.turn(partial=1, seed=7)
    last = await visitor.finished(await submit(visitor, n=4))
    output = last.body["output"]
    failed = [result for result in output["results"] if "url" not in result]
    assert (output["task_status"], len(output["results"])) == ("SUCCEEDED", 4)
    assert 0 < len(failed) < 4
    assert {result["code"] for result in failed} == {"InternalError.Timeout"}
    assert output["task_metrics"] == {"TOTAL": 4, "SUCCEEDED": 4 - len(failed), "FAILED": len(failed)}
    assert last.body["usage"] == {"image_count": 4 - len(failed)}


async def test_the_newer_protocol_speaks_in_messages(visitor: Visitor) -> None:
    body = {"model": "wan2.6-t2i", "input": MESSAGE, "parameters": {"n": 2, "size": "1280*1280"}}
    path = f"{SERVICES}/image-generation/generation"
    last = await visitor.finished(await visitor.ask(Asked("POST", path, body, headers=KEY)))
    choices = last.body["output"]["choices"]
    assert [choice["message"]["content"][0]["type"] for choice in choices] == ["image", "image"]
    assert ((await visitor.item())["n"], (await visitor.item())["size"]) == (2, "1280x1280")


@pytest.mark.parametrize(
    ("model", "count", "has_mask"),
    [("wanx2.1-imageedit", 1, False), ("wanx2.1-imageedit", 1, True), ("wan2.5-i2i-preview", 3, False)],
)
async def test_edits_bring_pictures_by_address(
    visitor: Visitor, caller: Caller, model: str, count: int, has_mask: bool
) -> None:
    url = caller.picture_url
    given: dict[str, Any] = {"images": [url] * count}
    if model == "wanx2.1-imageedit":
        given = {"function": "description_edit", "base_image_url": url}
        given |= {"function": "description_edit_with_mask", "mask_image_url": url} if has_mask else {}
    assert (await edit(visitor, model, given)).status == 200
    item = await visitor.item()
    digest = hashlib.sha256(picture()).hexdigest()
    assert (item["inputs"], item["mask"]) == ([digest] * count, digest if has_mask else None)
    assert item["size"] == "320x320"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"function": "description_edit"}, "InvalidParameter"),
        ({"function": "draw", "base_image_url": "http://127.0.0.1:1/a.png"}, "InvalidParameter"),
        ({"function": "description_edit", "base_image_url": "http://127.0.0.1:1/a.png"}, "InvalidURL"),
    ],
)
async def test_an_edit_without_its_picture_is_refused(
    visitor: Visitor, given: dict[str, Any], code: str
) -> None:
    refused = await edit(visitor, "wanx2.1-imageedit", given)
    assert (refused.status, refused.body["code"]) == (400, code)


async def test_an_id_that_nobody_knows_is_a_state(visitor: Visitor) -> None:
    seen = await visitor.ask(Asked("GET", f"{TASKS}/nothing", headers=BEARER))
    assert (seen.status, seen.body["output"]) == (200, {"task_id": "nothing", "task_status": "UNKNOWN"})


async def test_what_has_not_begun_may_be_suspended(visitor: Visitor) -> None:
    await visitor.turn(variant="suspended", latency_s=[5, 5])
    accepted = await submit(visitor)
    polled = await visitor.ask(visitor.speaker.poll(accepted.body))
    assert polled.body["output"]["task_status"] == "SUSPENDED"


async def test_only_what_is_pending_is_canceled(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[0.5, 0.5])
    accepted = await submit(visitor)
    await asyncio.sleep(0.2)
    refused = await visitor.ask(visitor.speaker.cancel(accepted.body))
    assert (refused.status, refused.body["code"]) == (400, "UnsupportedOperation")
    assert (await visitor.item())["outcome"] == "done"


async def test_a_list_goes_by_window_state_model_and_page(visitor: Visitor) -> None:
    made = [(await submit(visitor)).body["output"]["task_id"] for _ in range(3)]
    await visitor.turn(ending="failed", ending_way="internal")
    failed = (await submit(visitor, "wan2.2-t2i-plus")).body["output"]["task_id"]
    await visitor.item()
    home = datetime.now(UTC) + timedelta(hours=8)
    window = f"start_time={home - timedelta(minutes=5):%Y%m%d%H%M%S}&end_time={home:%Y%m%d%H%M%S}"
    for query, ids in (
        ("status=SUCCEEDED&page_size=2", made[:0:-1]),
        ("status=SUCCEEDED&page_size=2&page_no=2", made[:1]),
        ("model_name=wan2.2-t2i-plus", [failed]),
        (f"end_time={home - timedelta(minutes=5):%Y%m%d%H%M%S}", []),
        (window.replace("end_time", "page_size=1&end_time"), None),
    ):
        page = (await visitor.ask(Asked("GET", f"{TASKS}?{query}", headers=BEARER))).body
        found = [line["task_id"] for line in page["data"]]
        assert found == ids if ids is not None else len(found) <= 1
        assert page["request_id"]


@pytest.fixture
def pointed(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own client speaks to the lab."""
    monkeypatch.setattr(dashscope, "base_http_api_url", f"{visitor.base}/dashscope/api/v1")
    monkeypatch.setattr(dashscope, "api_key", "dashscope-test-api-key")


@pytest.mark.usefixtures("pointed")
async def test_its_own_client_gets_its_pictures(visitor: Visitor) -> None:
    made = await asyncio.to_thread(
        ImageSynthesis.async_call, model="wan2.2-t2i-flash", prompt="a fox", n=2, size="512*512"
    )
    assert (made.status_code, made.output.task_status) == (200, "PENDING")
    await visitor.item()
    seen = await asyncio.to_thread(ImageSynthesis.fetch, made)
    assert (seen.output.task_status, seen.usage.image_count) == ("SUCCEEDED", 2)
    assert len({result.url for result in seen.output.results}) == 2
    listed = await asyncio.to_thread(BaseAsyncApi.list, status="SUCCEEDED")
    assert [line["task_id"] for line in listed.output["data"]] == [made.output.task_id]


@pytest.mark.usefixtures("pointed")
async def test_its_own_client_edits_and_speaks_the_newer_protocol(visitor: Visitor, caller: Caller) -> None:
    await asyncio.to_thread(
        ImageSynthesis.async_call,
        model="wanx2.1-imageedit",
        prompt="a fox",
        function="description_edit",
        base_image_url=caller.picture_url,
    )
    assert (await visitor.item())["inputs"] == [hashlib.sha256(picture()).hexdigest()]
    # Its types know no plain dictionaries as messages, though its examples are written so.
    call: Any = ImageGeneration
    made = await asyncio.to_thread(call.async_call, model="wan2.6-t2i", messages=MESSAGE["messages"], n=1)
    assert made.status_code == 200, made
    await visitor.item()
    seen = await asyncio.to_thread(call.fetch, made)
    [choice] = seen.output.choices
    assert choice.message.content[0]["image"].startswith(visitor.base)


@pytest.mark.usefixtures("pointed")
async def test_its_own_client_cancels_and_reads_errors(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    made = await asyncio.to_thread(ImageSynthesis.async_call, model="wan2.2-t2i-flash", prompt="a fox")
    await asyncio.to_thread(BaseAsyncApi.cancel, made.output.task_id)
    seen = await asyncio.to_thread(ImageSynthesis.fetch, made)
    assert seen.output.task_status == "CANCELED"
    await visitor.turn(refuse="funds", refuse_way="arrearage")
    refused = await asyncio.to_thread(ImageSynthesis.async_call, model="wan2.2-t2i-flash", prompt="a fox")
    assert (refused.status_code, refused.code) == (400, "Arrearage")
