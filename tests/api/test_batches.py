"""Batches: all or nothing, or as far as it goes; so many at work at once; safe to send again; home in one file."""

from __future__ import annotations

import asyncio
import io
import json
import threading
import tracemalloc
import zipfile
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from safelight.db.database import SESSION
from safelight.lifecycle.batches import ABANDONED_S, CHUNK
from safelight.telemetry import set_fault_hook
from tests.api.door import Answer, Caller, Door
from tests.world import World

LAMP = {"model": "lab-sync", "prompt": "a lamp", "size": "64x64"}


def lamps(count: int) -> list[dict[str, Any]]:
    return [{**LAMP, "prompt": f"lamp {number}"} for number in range(count)]


async def hand_in(
    door: Door, items: Sequence[Any] | bytes, query: str = "", *, key: str = "", by: Caller | None = None
) -> Answer:
    body = (
        items if isinstance(items, bytes) else b"".join(json.dumps(item).encode() + b"\n" for item in items)
    )
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key or str(uuid4())}
    return await door.request("POST", f"/v1/batches{query}", data=body, headers=headers, by=by)


async def look(door: Door, batch_id: str) -> Any:
    answer = await door.request("GET", f"/v1/batches/{batch_id}")
    assert answer.status == 200, answer.body
    return answer.json


async def work(world: World) -> None:
    await world.dispatch("lab-sync")
    await world.archive_all()


async def test_a_batch_works_off_so_many_at_once_and_costs_what_it_delivered(
    gallery: Door, world: World
) -> None:
    answer = await hand_in(gallery, lamps(7), "?at_once=3&name=lamps")
    assert (answer.status, answer.json["items"], answer.json["credits"]["held"]) == (202, 7, 7)
    batch_id = answer.json["id"]
    assert answer.headers["Location"] == f"/v1/batches/{batch_id}"
    seen = []
    for _ in range(5):
        batch = await look(gallery, batch_id)
        seen.append((batch["counts"]["at_work"], batch["counts"]["waiting"], batch["counts"]["ready"]))
        await work(world)
    assert seen == [(3, 4, 0), (3, 1, 3), (1, 0, 6), (0, 0, 7), (0, 0, 7)]
    batch = await look(gallery, batch_id)
    assert (batch["status"], batch["name"], batch["at_once"]) == ("finished", "lamps", 3)
    assert batch["credits"] == {"held": 0, "captured": 7, "released": 0}
    assert batch["finished_at"] is not None
    balance = (await gallery.request("GET", "/v1/balance")).json
    assert balance == {"available": 993, "held": 0}


async def test_the_same_key_gets_the_same_answer_and_no_second_batch(gallery: Door, world: World) -> None:
    first = await hand_in(gallery, lamps(5), key="night-1")
    await work(world)
    again = await hand_in(gallery, lamps(5), key="night-1")
    assert (again.status, again.body) == (202, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await hand_in(gallery, lamps(4), key="night-1")
    assert (other.status, other.code) == (422, "idempotency-key-reused")
    assert await world.value("SELECT count(*) FROM tasks") == 5


async def test_a_batch_that_broke_off_is_gone_on_with_under_its_key(gallery: Door, world: World) -> None:
    """The process died after some items: nothing is at work, and the same request ends it."""
    items = lamps(6)
    whole = await hand_in(gallery, items, key="night-2")
    await world.rows("UPDATE batches SET state = 'accepting'")
    await world.rows("UPDATE tasks SET wake_at = 'infinity', start_by = 'infinity'")
    again = await hand_in(gallery, items, key="night-2")
    assert again.json == whole.json
    assert (await look(gallery, again.json["id"]))["counts"]["at_work"] == 5
    assert await world.value("SELECT count(*) FROM tasks") == 6


async def test_nothing_is_held_if_not_all_of_it_can_be_paid(gallery: Door, world: World) -> None:
    poor = await gallery.new_caller(granted=4)
    refused = await hand_in(gallery, lamps(5), key="k", by=poor)
    assert (refused.status, refused.code) == (402, "insufficient-credits")
    assert await world.value("SELECT count(*) FROM batches") == 0
    assert (await hand_in(gallery, lamps(4), key="k", by=poor)).status == 202


async def test_as_much_as_can_be_paid_is_taken_if_that_is_wanted(gallery: Door, world: World) -> None:
    poor = await gallery.new_caller(granted=4)
    items = [*lamps(2), {**LAMP, "prompt": ""}, *lamps(3)]
    answer = await hand_in(gallery, items, "?accept=partly", by=poor)
    assert (answer.status, answer.json["refused"], answer.json["credits"]["held"]) == (202, 2, 4)
    path = f"/v1/batches/{answer.json['id']}/results"
    lines = [json.loads(line) for line in (await gallery.request("GET", path, by=poor)).body.splitlines()]
    assert [line["position"] for line in lines] == list(range(6))
    assert [line["refusal"] and line["refusal"]["code"] for line in lines] == [
        None, None, "validation-failed", None, None, "insufficient-credits",
    ]  # fmt: skip
    assert [line["task"]["prompt"] for line in lines if line["task"]] == [
        "lamp 0",
        "lamp 1",
        "lamp 0",
        "lamp 1",
    ]


async def test_what_was_spent_meanwhile_takes_all_of_it_back(gallery: Door, world: World) -> None:
    """The credits were there when it began, and are not at its second part: whole it fails, and frees its key."""
    items = lamps(CHUNK + 5)
    caller = await gallery.new_caller(granted=CHUNK + 5)

    async def spend() -> None:
        connection = await asyncpg.connect(world.database.url, server_settings=SESSION)
        await connection.execute(
            "INSERT INTO entries (account_id, kind, available_delta, held_delta) VALUES ($1, 'adjust', -3, 0)",
            caller.account_id,
        )
        await connection.close()

    def spend_once(name: str) -> None:
        if name == "after_batch_chunk":
            set_fault_hook(None)
            spender = threading.Thread(target=lambda: asyncio.run(spend()))
            spender.start()
            spender.join()

    set_fault_hook(spend_once)
    try:
        answer = await hand_in(gallery, items, key="k", by=caller)
    finally:
        set_fault_hook(None)
    assert (answer.status, answer.code) == (402, "insufficient-credits")
    balance = (await gallery.request("GET", "/v1/balance", by=caller)).json
    assert balance == {"available": CHUNK + 2, "held": 0}
    assert (await hand_in(gallery, lamps(3), key="k", by=caller)).status == 202


@pytest.mark.parametrize(
    ("body", "query", "status", "code"),
    [
        (b"", "", 400, "bad-request"),
        (b"\n \n", "", 400, "bad-request"),
        (b"{}\n", "", 422, "validation-failed"),
        (b"not json\n", "", 422, "validation-failed"),
        (b'{"prompt": "x", "colour": 1}\n', "", 422, "validation-failed"),
        (b'{"prompt": "x"}\n', "?at_once=0", 422, "validation-failed"),
        (b'{"prompt": "x"}\n', "?at_once=1001", 422, "validation-failed"),
        (b'{"prompt": "x"}\n', "?accept=some", 422, "validation-failed"),
        (b'{"prompt": "x"}\n', "?name=" + "n" * 201, 422, "validation-failed"),
        (b'{"prompt": "x"}\n' * 10_001, "", 400, "bad-request"),
    ],
)
async def test_what_is_no_batch_is_refused_and_leaves_nothing(
    door: Door, body: bytes, query: str, status: int, code: str
) -> None:
    before = await door.rows()
    answer = await hand_in(door, body, query)
    assert (answer.status, answer.code) == (status, code)
    assert await door.rows() == before


async def test_a_fault_names_its_item(door: Door) -> None:
    answer = await hand_in(door, [{"prompt": "x"}, {"prompt": "x", "n": 0}])
    assert (
        answer.json["errors"] == [{"field": "items[1].n", "message": "must be an integer from 1 to 10"}]
        or answer.json["errors"][0]["field"] == "items[1].n"
    )


async def test_only_lines_of_json_are_taken(door: Door) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": "k"}
    answer = await door.request("POST", "/v1/batches", data=b'{"prompt": "x"}', headers=headers)
    assert (answer.status, answer.code) == (415, "unsupported-media-type")


async def test_a_canceled_batch_gives_back_what_had_not_begun(gallery: Door, world: World) -> None:
    batch_id = (await hand_in(gallery, lamps(CHUNK + 20), "?at_once=2")).json["id"]
    await work(world)
    answer = await gallery.request("POST", f"/v1/batches/{batch_id}/cancel")
    assert answer.status == 200
    batch = answer.json
    assert (batch["status"], batch["counts"]["ready"], batch["counts"]["failed"]) == (
        "finished",
        2,
        CHUNK + 18,
    )
    assert batch["credits"] == {"held": 0, "captured": 2, "released": CHUNK + 18}
    assert batch["canceled_at"] is not None
    again = await gallery.request("POST", f"/v1/batches/{batch_id}/cancel")
    assert again.json == batch


async def test_one_file_holds_every_picture_and_the_manifest(gallery: Door, world: World) -> None:
    items = [{**LAMP, "n": 2}, *lamps(2)]
    batch_id = (await hand_in(gallery, items)).json["id"]
    await work(world)
    path = f"/v1/batches/{batch_id}/results"
    answer = await gallery.request("GET", f"{path}?format=zip")
    assert answer.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        lines = [json.loads(line) for line in archive.read("manifest.jsonl").splitlines()]
    assert names == ["00001-1.png", "00001-2.png", "00002-1.png", "00003-1.png", "manifest.jsonl"]
    assert [line["files"] for line in lines] == [names[:2], [names[2]], [names[3]]]
    assert [len(line["task"]["assets"]) for line in lines] == [2, 1, 1]
    assert (await gallery.request("GET", f"{path}?format=tar")).status == 422


async def test_a_foreign_batch_and_a_missing_one_answer_alike(gallery: Door) -> None:
    batch_id = (await hand_in(gallery, lamps(1))).json["id"]
    other = await gallery.new_caller()
    for method, end in (("GET", ""), ("GET", "/results"), ("POST", "/cancel")):
        foreign = await gallery.request(method, f"/v1/batches/{batch_id}{end}", by=other)
        missing = await gallery.request(method, f"/v1/batches/{uuid4()}{end}", by=other)
        assert (foreign.status, foreign.code) == (missing.status, missing.code) == (404, "not-found")
    assert (await gallery.request("GET", "/v1/batches", by=other)).json["data"] == []
    own = (await gallery.request("GET", "/v1/batches")).json["data"]
    assert [batch["id"] for batch in own] == [batch_id]


async def test_a_round_lets_go_what_was_forgotten_and_ends_what_nobody_handed_in(
    gallery: Door, world: World
) -> None:
    stuck = (await hand_in(gallery, lamps(3), "?at_once=2")).json["id"]
    lost = (await hand_in(gallery, lamps(3))).json["id"]
    await world.rows("UPDATE tasks SET wake_at = 'infinity', start_by = 'infinity'")
    await world.rows("UPDATE batches SET state = 'accepting' WHERE id = $1", UUID(lost))
    await world.graph.batches.step()
    assert (await look(gallery, stuck))["counts"]["at_work"] == 2
    assert (await look(gallery, lost))["counts"]["at_work"] == 0
    await world.pass_time(seconds=ABANDONED_S + 1)
    await world.graph.batches.step()
    assert (await look(gallery, lost))["credits"] == {"held": 0, "captured": 0, "released": 3}


async def test_parked_items_neither_expire_nor_go_to_work(gallery: Door, world: World) -> None:
    batch_id = (await hand_in(gallery, lamps(3), "?at_once=1")).json["id"]
    for ready in (1, 2, 3):
        await world.pass_time(hours=0.9)
        await world.graph.sweep.tidy()
        await work(world)
        assert (await look(gallery, batch_id))["counts"]["ready"] == ready


async def test_ten_thousand_lines_are_taken_in_bounded_memory(gallery: Door, world: World) -> None:
    caller = await gallery.new_caller(granted=10_000)
    body = b"".join(json.dumps(item).encode() + b"\n" for item in lamps(10_000))
    tracemalloc.start()
    try:
        answer = await hand_in(gallery, body, by=caller)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (answer.status, answer.json["items"]) == (202, 10_000)
    assert most < 60 * 1024 * 1024
    batch = (await gallery.request("GET", f"/v1/batches/{answer.json['id']}", by=caller)).json
    assert (batch["counts"]["at_work"], batch["counts"]["waiting"]) == (5, 9_995)
    assert batch["credits"]["held"] == 10_000
