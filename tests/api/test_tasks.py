"""Reading, listing and canceling tasks; and that nobody sees anybody else's."""

from __future__ import annotations

import re

import pytest

from safelight.db import ledger
from safelight.domain.ids import new_id
from tests.api.door import Answer, Door
from tests.world import World

TASK_KEYS = {
    "id", "status", "model", "operation", "prompt", "n", "progress", "assets", "failure", "credits",
    "metadata", "created_at", "finished_at", "erased_at",
}  # fmt: skip
ASSET_KEYS = {"id", "url", "thumbnail_url", "content_type", "width", "height", "bytes", "sha256"}
SHOE = {"prompt": "a red shoe on white"}
INNER = re.compile(
    r"queued|submitting|uncertain|retrying|archiving|review|provider|reference|attempt|studio|lab_|token"
)


async def submitted(door: Door, **change: object) -> str:
    answer = await door.submit({**SHOE, **change})
    assert answer.status == 202, answer.body
    task_id: str = answer.json["id"]
    return task_id


async def test_a_waiting_task_has_exactly_its_public_shape(door: Door) -> None:
    task_id = await submitted(door, metadata={"order": 7})
    answer = await door.request("GET", f"/v1/tasks/{task_id}")
    assert answer.status == 200
    task = answer.json
    assert task.keys() == TASK_KEYS
    assert (task["id"], task["status"], task["progress"]) == (task_id, "processing", {"stage": "waiting"})
    assert task["credits"] == {"held": 2, "captured": 0, "released": 0}
    assert (task["assets"], task["failure"], task["finished_at"]) == ([], None, None)
    assert task["metadata"] == {"order": 7}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", task["created_at"])
    assert not INNER.search(answer.body.decode())


async def test_a_ready_task_shows_its_pictures_and_what_they_cost(gallery: Door, world: World) -> None:
    caller = gallery.caller
    body = {"model": "lab-sync", "prompt": "a lamp", "size": "64x64", "n": 2}
    task_id = (await gallery.submit(body, by=caller)).json["id"]
    await world.dispatch("lab-sync")
    halfway = await gallery.request("GET", f"/v1/tasks/{task_id}")
    assert (halfway.json["status"], halfway.json["progress"]["stage"]) == ("processing", "saving")
    assert halfway.json["assets"] == []
    assert not INNER.search(halfway.body.decode())
    await world.archive_all()
    task = (await gallery.request("GET", f"/v1/tasks/{task_id}?include=timeline")).json
    assert task.keys() == TASK_KEYS | {"timeline"}
    assert (task["status"], task["progress"]) == ("ready", {"stage": "done"})
    assert task["credits"] == {"held": 0, "captured": 2, "released": 0}
    assert task["finished_at"] > task["created_at"]
    assert [asset.keys() for asset in task["assets"]] == [ASSET_KEYS, ASSET_KEYS]
    assert [stage["stage"] for stage in task["timeline"]] == ["waiting", "drawing", "saving", "done"]
    assert all(asset["url"].startswith(f"{gallery.url}/v1/assets/{asset['id']}?") for asset in task["assets"])


@pytest.mark.parametrize(
    ("knobs", "failure_class", "is_retryable"),
    [({"moderate": 1.0}, "content_blocked", False), ({"fail": 1.0}, "upstream_fault", True)],
)
async def test_a_failed_task_says_why_in_our_words(
    gallery: Door, world: World, knobs: dict[str, float], failure_class: str, is_retryable: bool
) -> None:
    await world.knobs(**knobs)
    task_id = (await gallery.submit({"model": "lab-sync", "prompt": "a lamp", "size": "64x64"})).json["id"]
    for _ in range(3):
        await world.dispatch("lab-sync")
        await world.pass_time(seconds=600)
    answer = await gallery.request("GET", f"/v1/tasks/{task_id}")
    failure = answer.json["failure"]
    assert answer.json["status"] == "failed"
    assert failure.keys() == {"class", "code", "message", "retryable"}
    assert (failure["class"], failure["retryable"]) == (failure_class, is_retryable)
    assert answer.json["credits"] == {"held": 0, "captured": 0, "released": 1}
    assert not INNER.search(answer.body.decode())


async def test_a_waiting_task_is_canceled_at_once_and_not_twice(door: Door) -> None:
    task_id = await submitted(door)
    answer = await door.request("POST", f"/v1/tasks/{task_id}/cancel")
    assert answer.status == 200
    task = answer.json
    assert (task["status"], task["failure"]["class"]) == ("failed", "canceled")
    assert task["credits"] == {"held": 0, "captured": 0, "released": 2}
    again = await door.request("POST", f"/v1/tasks/{task_id}/cancel")
    assert again.status == 409
    assert again.code
    assert (await door.request("GET", "/v1/balance")).json == {"available": 1_000, "held": 0}


async def test_a_task_that_is_upstream_is_asked_back(gallery: Door, world: World) -> None:
    await world.knobs(latency_s=[30.0, 30.0])
    task_id = (await gallery.submit({"model": "lab-poll", "prompt": "a lamp", "size": "64x64"})).json["id"]
    await world.dispatch("lab-poll")
    answer = await gallery.request("POST", f"/v1/tasks/{task_id}/cancel")
    assert (answer.status, answer.json["status"]) == (202, "processing")


async def test_a_list_is_paged_from_the_newest_and_each_task_comes_once(door: Door) -> None:
    made = [await submitted(door) for _ in range(7)]
    seen: list[str] = []
    path = "/v1/tasks?limit=3"
    sizes = []
    while path:
        page = (await door.request("GET", path)).json
        assert page.keys() == {"data", "next_cursor"}
        sizes.append(len(page["data"]))
        seen += [task["id"] for task in page["data"]]
        path = f"/v1/tasks?limit=3&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    assert seen == list(reversed(made))
    assert sizes == [3, 3, 1]
    assert (await door.request("GET", "/v1/tasks")).json["next_cursor"] is None


async def test_a_list_can_be_narrowed_to_one_status(door: Door) -> None:
    open_id, canceled_id = await submitted(door), await submitted(door)
    await door.request("POST", f"/v1/tasks/{canceled_id}/cancel")
    for status, expected in (("processing", [open_id]), ("failed", [canceled_id]), ("ready", [])):
        page = (await door.request("GET", f"/v1/tasks?status={status}")).json
        assert [task["id"] for task in page["data"]] == expected


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/tasks?limit=0", "limit"),
        ("/v1/tasks?limit=101", "limit"),
        ("/v1/tasks?limit=-1", "limit"),
        ("/v1/tasks?limit=1e1", "limit"),
        ("/v1/tasks?limit=%D9%A3", "limit"),
        ("/v1/tasks?limit=", "limit"),
        ("/v1/tasks?cursor=nonsense", "cursor"),
        ("/v1/tasks?cursor=", "cursor"),
        ("/v1/tasks?cursor=%E2%82%AC", "cursor"),
        ("/v1/tasks?status=queued", "status"),
        ("/v1/tasks?status=", "status"),
        ("/v1/entries?limit=1000", "limit"),
        ("/v1/entries?cursor=__________8", "cursor"),
        ("/v1/tasks/0199?include=events", "include"),
    ],
)
async def test_a_query_that_does_not_fit_is_named(door: Door, path: str, field: str) -> None:
    answer = await door.request("GET", path)
    assert (answer.status, answer.json["errors"][0]["field"]) == (422, field)


async def test_the_ledger_is_listed_line_by_line(door: Door) -> None:
    task_id = await submitted(door)
    await door.request("POST", f"/v1/tasks/{task_id}/cancel")
    async with door.database.transaction() as connection:
        await ledger.grant(connection, door.caller.account_id, 5, note="for the operator's eyes")
    first = await door.request("GET", "/v1/entries?limit=2")
    assert b"eyes" not in first.body
    cursor = first.json["next_cursor"]
    second = (await door.request("GET", f"/v1/entries?limit=2&cursor={cursor}")).json
    lines = first.json["data"] + second["data"]
    assert [(line["kind"], line["available_delta"], line["held_delta"]) for line in lines] == [
        ("grant", 5, 0),
        ("settle", 2, -2),
        ("hold", -2, 2),
        ("grant", 1_000, 0),
    ]
    assert lines[1]["task_id"] == task_id
    assert lines[0].keys() == {"id", "kind", "task_id", "available_delta", "held_delta", "created_at"}


async def test_models_are_shown_with_their_price_and_without_who_makes_them(door: Door) -> None:
    answer = await door.request("GET", "/v1/models")
    models = {model["name"]: model for model in answer.json["data"]}
    assert (models["sketch"]["price"], models["sketch"]["is_default"]) == (2, True)
    assert answer.json["next_cursor"] is None
    assert b"studio" not in answer.body
    assert b"sketch-1" not in answer.body


def same(one: Answer, other: Answer) -> bool:
    """Whether a caller could tell two answers apart by anything but the request's id."""
    bodies = [{**answer.json, "request_id": ""} for answer in (one, other)]
    names = [
        {
            name: value
            for name, value in answer.headers.items()
            if name.lower() not in ("x-request-id", "date")
        }
        for answer in (one, other)
    ]
    return one.status == other.status == 404 and bodies[0] == bodies[1] and names[0] == names[1]


async def test_what_is_another_accounts_looks_like_what_does_not_exist(gallery: Door, world: World) -> None:
    task_id = (await gallery.submit({"model": "lab-sync", "prompt": "a lamp", "size": "64x64"})).json["id"]
    await world.dispatch("lab-sync")
    await world.archive_all()
    asset_id = (await gallery.request("GET", f"/v1/tasks/{task_id}")).json["assets"][0]["id"]
    waiting_id = (await gallery.submit({"prompt": "a chair", "size": "64x64"})).json["id"]
    other = await gallery.new_caller()
    routes = [
        ("GET", "/v1/tasks/{}", task_id),
        ("GET", "/v1/tasks/{}?include=timeline", task_id),
        ("POST", "/v1/tasks/{}/cancel", task_id),
        ("POST", "/v1/tasks/{}/cancel", waiting_id),
        ("GET", "/v1/assets/{}", asset_id),
        ("GET", "/v1/assets/{}/thumbnail", asset_id),
    ]
    before = await gallery.rows()
    for method, path, known_id in routes:
        foreign = await gallery.request(method, path.format(known_id), by=other)
        missing = await gallery.request(method, path.format(new_id()), by=other)
        assert same(foreign, missing), path
    assert await gallery.rows() == before
    for path in ("/v1/tasks", "/v1/entries?cursor=f_________8", "/v1/tasks?status=ready"):
        listed = (await gallery.request("GET", path, by=other)).body.decode()
        assert task_id not in listed
        assert waiting_id not in listed
    cursor = (await gallery.request("GET", "/v1/tasks?limit=1")).json["next_cursor"]
    assert (await gallery.request("GET", f"/v1/tasks?cursor={cursor}", by=other)).json["data"] == []


@pytest.mark.parametrize(
    "odd",
    ["x", "{}", "%00", "..", "urn:uuid:0199", "0" * 32, "00000000-0000-0000-0000-00000000000g", "é" * 36],
)
async def test_an_odd_id_is_not_found(door: Door, odd: str) -> None:
    for method, path in (("GET", "/v1/tasks/{}"), ("POST", "/v1/tasks/{}/cancel"), ("GET", "/v1/assets/{}")):
        assert (await door.request(method, path.format(odd))).code == "not-found"
