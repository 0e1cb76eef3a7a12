"""ComfyUI: graphs that are checked node by node, pictures uploaded first, a queue and a history."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.lab.dialects.forms import FORM_TYPE, form
from tests.lab.dialects.speaker import PROMPT, Asked, Visitor, picture
from tests.lab.dialects.speakers.comfyui import KEY, graph, graph_from

pytestmark = pytest.mark.parametrize("name", ["comfyui"])


async def submit(visitor: Visitor, nodes: dict[str, Any], **fields: Any) -> Any:
    """A submit of a graph; the whole answer."""
    return await visitor.ask(Asked("POST", "/prompt", {"prompt": nodes, **fields}, headers=KEY))


async def upload(visitor: Visitor, raw: bytes, **fields: str) -> Any:
    """An upload of a picture; the whole answer."""
    data = form({"type": "input", **fields}, [("image", raw)])
    return await visitor.ask(Asked("POST", "/upload/image", data=data, headers={**KEY, **FORM_TYPE}))


def without(nodes: dict[str, Any], number: str) -> dict[str, Any]:
    return {key: node for key, node in nodes.items() if key != number}


def with_input(number: str, name: str, value: Any) -> dict[str, Any]:
    nodes = graph(PROMPT, 1)
    nodes[number] = {**nodes[number], "inputs": {**nodes[number]["inputs"], name: value}}
    return nodes


@pytest.mark.parametrize(
    "nodes",
    [
        without(graph(PROMPT, 1), "7"),
        without(graph(PROMPT, 1), "2"),
        with_input("1", "ckpt_name", "missing.safetensors"),
        with_input("5", "seed", "7"),
        with_input("5", "model", ["99", 0]),
        with_input("5", "sampler_name", "lottery"),
        with_input("4", "colour", "red"),
        {**graph(PROMPT, 1), "8": {"class_type": "Teleport", "inputs": {}}},
        graph_from("never-uploaded.png"),
    ],
)
async def test_a_graph_that_cannot_run_is_refused_before_it_waits(visitor: Visitor, nodes: Any) -> None:
    refused = await submit(visitor, nodes)
    assert (refused.status, refused.body["error"]["type"]) == (400, "prompt_outputs_failed_validation")
    assert refused.body["node_errors"]
    assert await visitor.accepted() == 0


async def test_an_uploaded_picture_is_found_by_its_name(visitor: Visitor) -> None:
    stored = await upload(visitor, picture())
    assert stored.body == {"name": "image.png", "subfolder": "", "type": "input"}
    await submit(visitor, graph_from("image.png"))
    item = await visitor.item()
    assert (item["operation"], item["inputs"]) == ("edit", [hashlib.sha256(picture()).hexdigest()])


async def test_another_picture_of_the_same_name_needs_leave_to_replace_it(visitor: Visitor) -> None:
    await upload(visitor, picture())
    assert (await upload(visitor, picture())).body["name"] == "image.png"
    assert (await upload(visitor, picture("L"))).body["name"] != "image.png"
    assert (await upload(visitor, picture("L"), overwrite="true")).body["name"] == "image.png"


async def test_what_waits_stands_in_the_queue_with_its_extra_data(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    accepted = await submit(visitor, graph(PROMPT, 1), extra_data={"safelight_reference": "ours-1"})
    queue = (await visitor.ask(Asked("GET", "/queue", headers=KEY))).body
    [waiting] = queue["queue_pending"]
    assert waiting[1] == accepted.body["prompt_id"]
    assert waiting[3] == {"safelight_reference": "ours-1"}
    assert queue["queue_running"] == []
    assert (await visitor.ask(visitor.speaker.poll(accepted.body))).body == {}


async def test_the_history_has_what_has_ended_with_its_outcome(visitor: Visitor) -> None:
    good = await submit(visitor, graph(PROMPT, 2))
    await visitor.finished(good)
    await visitor.turn(ending="failed", ending_way="out_of_memory")
    bad = await submit(visitor, graph(PROMPT, 1))
    await visitor.finished(bad)
    history = (await visitor.ask(Asked("GET", "/history?max_items=10", headers=KEY))).body
    entry, failed = history[good.body["prompt_id"]], history[bad.body["prompt_id"]]
    assert [image["type"] for image in entry["outputs"]["9"]["images"]] == ["output", "output"]
    assert (entry["status"]["status_str"], failed["status"]["status_str"]) == ("success", "error")
    assert failed["status"]["messages"][-1][1]["exception_type"] == "torch.OutOfMemoryError"
    shown = await visitor.ask(Asked("GET", "/view?filename=nothing.png&type=output"))
    assert shown.status == 404


async def test_an_interrupt_may_name_the_graph_that_it_means(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[20, 20])
    accepted = await submit(visitor, graph(PROMPT, 1))
    queue = Asked("GET", "/queue", headers=KEY)
    while not (await visitor.ask(queue)).body["queue_running"]:
        pass
    await visitor.ask(Asked("POST", "/interrupt", {"prompt_id": "another"}, headers=KEY))
    assert (await visitor.ask(queue)).body["queue_running"]
    await visitor.ask(Asked("POST", "/interrupt", {"prompt_id": accepted.body["prompt_id"]}, headers=KEY))
    assert (await visitor.item())["outcome"] == "canceled"
