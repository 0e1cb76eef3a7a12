"""POST /v1/tasks/{id}/erase: gone for everybody at once, and the books and the receipt stay."""

from __future__ import annotations

from tests.api.door import Door
from tests.world import World

BODY = {
    "model": "lab-sync",
    "prompt": "a birthday card for Ottilie",
    "size": "64x64",
    "metadata": {"order": "7"},
}


async def drawn(gallery: Door, world: World) -> str:
    """The id of a task that is ready."""
    answer = await gallery.submit(BODY, key="key-of-mine")
    await world.dispatch("lab-sync")
    await world.archive_all()
    return str(answer.json["id"])


async def test_an_erased_task_says_nothing_and_its_links_lead_nowhere(gallery: Door, world: World) -> None:
    task_id = await drawn(gallery, world)
    before = (await gallery.request("GET", f"/v1/tasks/{task_id}")).json
    (asset,) = before["assets"]
    link = asset["url"].removeprefix(gallery.url)
    assert (await gallery.request("GET", link)).status == 200
    erased = await gallery.request("POST", f"/v1/tasks/{task_id}/erase")
    assert erased.status == 200
    after = erased.json
    assert (after["prompt"], after["metadata"], after["assets"]) == ("", {}, [])
    assert (after["status"], after["credits"]) == ("ready", before["credits"])
    assert before["erased_at"] is None
    assert after["erased_at"] >= after["finished_at"]
    assert (await gallery.request("GET", link)).status == 404
    assert (await gallery.request("GET", f"/v1/assets/{asset['id']}")).status == 404
    assert (await gallery.request("GET", f"/v1/assets/{asset['id']}/thumbnail")).status == 404


async def test_the_key_of_an_erased_task_still_gives_its_receipt(gallery: Door, world: World) -> None:
    task_id = await drawn(gallery, world)
    await gallery.request("POST", f"/v1/tasks/{task_id}/erase")
    again = await gallery.submit(BODY, key="key-of-mine")
    assert (again.status, again.json["id"]) == (202, task_id)
    assert again.headers["Idempotent-Replayed"] == "true"


async def test_a_task_under_way_is_not_erased(gallery: Door, world: World) -> None:
    task_id = (await gallery.submit(BODY)).json["id"]
    refused = await gallery.request("POST", f"/v1/tasks/{task_id}/erase")
    assert (refused.status, refused.code) == (409, "not-erasable")


async def test_what_is_nobodys_or_anothers_answers_alike(gallery: Door) -> None:
    refused = await gallery.request("POST", "/v1/tasks/01900000-0000-7000-8000-000000000000/erase")
    assert (refused.status, refused.code) == (404, "not-found")
