"""The webui: the grid before several pictures, one progress for all, two shapes of errors."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.dialects.speaker import Answered, Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.automatic1111 import KEY

pytestmark = pytest.mark.parametrize("name", ["automatic1111"])
PICTURE = base64.b64encode(picture()).decode()


async def drawn(visitor: Visitor, path: str = "txt2img", **changes: Any) -> Answered:
    asked = visitor.speaker.submit()
    return await visitor.ask(replace(asked, path=f"/sdapi/v1/{path}", json={**asked.json, **changes}))


async def test_before_several_pictures_comes_a_grid(visitor: Visitor) -> None:
    several = (await drawn(visitor, batch_size=2, n_iter=2)).body
    assert len(several["images"]) == 5
    info = json.loads(several["info"])
    assert (info["index_of_first_image"], info["all_seeds"]) == (1, [7, 8, 9, 10])
    alone = (await drawn(visitor)).body
    assert (len(alone["images"]), json.loads(alone["info"])["index_of_first_image"]) == (1, 0)
    await visitor.turn(variant="no_grid")
    plain = (await drawn(visitor, batch_size=3)).body
    assert (len(plain["images"]), json.loads(plain["info"])["index_of_first_image"]) == (3, 0)


async def test_the_answer_repeats_what_was_asked(visitor: Visitor) -> None:
    settings = {"sd_model_checkpoint": "other.safetensors"}
    body = (await drawn(visitor, negative_prompt="dogs", override_settings=settings)).body
    assert body["parameters"]["negative_prompt"] == "dogs"
    assert (await visitor.item())["model"] == "other.safetensors"
    assert (await drawn(visitor, send_images=False)).body["images"] == []


async def test_pictures_come_along_as_base64_or_data_urls(visitor: Visitor) -> None:
    assert (await drawn(visitor, "img2img", init_images=[PICTURE, data_url(picture())])).status == 200
    item = await visitor.item()
    assert (item["operation"], len(item["inputs"]), item["mask"]) == ("edit", 2, None)


async def test_there_is_one_progress_for_all(visitor: Visitor) -> None:
    asked = Asked("GET", "/sdapi/v1/progress?skip_current_image=true", headers=KEY)
    idle = (await visitor.ask(asked)).body
    assert (idle["progress"], idle["state"]["job_count"]) == (0, 0)
    await visitor.turn(latency_s=[1, 1])
    drawing = asyncio.create_task(drawn(visitor, force_task_id="task(1)"))
    await asyncio.sleep(0.6)
    busy = (await visitor.ask(asked)).body
    assert 0 < busy["progress"] < 1
    assert busy["state"]["sampling_steps"] == 20
    by_id = Asked("POST", "/internal/progress", {"id_task": "task(1)"})
    assert (await visitor.ask(by_id)).body["active"] is True
    assert (await drawing).status == 200
    assert (await visitor.ask(by_id)).body["completed"] is True


async def test_an_interrupt_ends_whatever_is_drawn(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    drawing = asyncio.create_task(drawn(visitor))
    while await visitor.accepted() == 0:  # noqa: ASYNC110 - seen from outside only
        await asyncio.sleep(0.02)
    stopped = await visitor.ask(Asked("POST", "/sdapi/v1/interrupt", headers=KEY))
    assert (stopped.status, stopped.body) == (200, {})
    assert (await drawing).body["images"] == []
    assert (await visitor.item())["outcome"] == "canceled"


@pytest.mark.parametrize(
    ("changes", "loc"),
    [
        ({"steps": "many"}, ["body", "steps"]),
        ({"steps": 0}, ["body", "steps"]),
        ({"width": 100}, ["body", "width"]),
        ({"batch_size": 9}, ["body", "batch_size"]),
        ({"override_settings": {"none": 1}}, ["body", "override_settings", "none"]),
        ({"init_images": [PICTURE]}, ["body", "init_images"]),
    ],
)
async def test_what_does_not_fit_is_listed(visitor: Visitor, changes: dict[str, Any], loc: list[str]) -> None:
    refused = await drawn(visitor, **changes)
    assert refused.status == 422
    assert [detail["loc"] for detail in refused.body["detail"]] == [loc]
    assert await visitor.accepted() == 0


@pytest.mark.parametrize(
    ("path", "changes", "status", "detail"),
    [
        ("txt2img", {"sampler_name": "none"}, 404, "Sampler not found"),
        ("txt2img", {"script_name": "none"}, 422, "Script 'none' not found"),
        ("img2img", {}, 404, "Init image not found"),
        ("img2img", {"init_images": ["AAAA"]}, 500, "Invalid encoded image"),
    ],
)
async def test_what_is_raised_is_wrapped(
    visitor: Visitor, path: str, changes: dict[str, Any], status: int, detail: str
) -> None:
    refused = await drawn(visitor, path, **changes)
    assert (refused.status, refused.body["detail"]) == (status, detail)
    assert refused.body["error"] == "HTTPException"
    assert await visitor.accepted() == 0


async def test_with_a_wrong_password_the_scheme_is_told(visitor: Visitor) -> None:
    asked = visitor.speaker.submit()
    for headers in ({"Authorization": "Basic YTpi"}, {"Authorization": "Basic ?"}):
        refused = await visitor.ask(replace(asked, headers=headers))
        assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, "Basic")


@pytest.mark.parametrize(
    ("changes", "flaws"),
    [
        ({"width": 512, "height": 768}, ["stretched"]),
        ({"width": 512, "height": 768, "resize_mode": 1}, []),
        ({"mask": PICTURE}, ["begun anew behind the mask"]),
        ({"mask": PICTURE, "inpainting_fill": 1}, []),
    ],
)
async def test_what_an_edit_does_to_its_picture_unasked_is_noted(
    visitor: Visitor, changes: dict[str, Any], flaws: list[str]
) -> None:
    answered = await drawn(
        visitor, "img2img", **{"init_images": [PICTURE], "width": 64, "height": 64, **changes}
    )
    assert answered.status == 200
    assert (await visitor.item())["details"]["flaws"] == flaws
    assert "flaws" not in answered.body["parameters"]
