"""A task's pictures before the operator's door: no byte without a line of the audit log, and none of another task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from safelight.db.auditlog import verify_chain
from safelight.domain.provider import Origin
from tests.api.door import Answer, Door
from tests.api.operators import Operator
from tests.api.pictures import png
from tests.lifecycle.upstreams import Scripted, done, in_turn, install
from tests.world import World

NOBODY = "01a228d0-0000-7000-8000-000000000000"
SHOE, MASK = png(shade=7), png(shade=255)


@dataclass
class Showing:
    """A task that is ready, and an operator who wants to see it."""

    door: Door
    operator: Operator
    task_id: str

    @property
    def path(self) -> str:
        return f"/admin/tasks/{self.task_id}"

    async def whole(self) -> dict[str, Any]:
        """The task as its page reads it."""
        found: dict[str, Any] = (await self.operator.get(self.path)).json
        return found

    async def view(self, *, key: str | None = None) -> Answer:
        """Begin a viewing."""
        return await self.operator.post(f"{self.path}/viewings", {}, key=key)

    async def read(self, picture_id: str, viewing: str, end: str = "", **headers: str) -> Answer:
        """Read a picture, or with `/thumbnail` at its end a small one."""
        sent = {"Authorization": f"Bearer {self.operator.key}", **headers}
        path = f"{self.path}/pictures/{picture_id}{end}"
        return await self.door.ask("GET", f"{path}?viewing={viewing}", headers=sent)

    async def lines(self) -> list[dict[str, Any]]:
        """What the audit log says of the task."""
        return await self.operator.audit(f"task:{self.task_id}")


@pytest.fixture
async def showing(gallery: Door, world: World) -> Showing:
    return Showing(gallery, await Operator.at(gallery), await edited(gallery, world))


async def edited(gallery: Door, world: World) -> str:
    """The id of an edit with an image and a mask that is ready."""
    task_id = await begun(gallery, world)
    await world.archive_all()
    return task_id


async def begun(gallery: Door, world: World) -> str:
    """The same as far as the provider has drawn it, and nobody has checked it yet."""
    install(world, Scripted("lab-sync")).submit_does = in_turn(done(origin=Origin.ANSWER))
    shoe, mask = [(await gallery.upload(data)).json["id"] for data in (SHOE, MASK)]
    body = {
        "model": "lab-sync",
        "operation": "edit",
        "prompt": "make it blue",
        "images": [shoe],
        "mask": mask,
    }
    task_id = str((await gallery.submit(body)).json["id"])
    await world.dispatch("lab-sync")
    return task_id


async def test_an_operator_sees_what_was_delivered_and_what_it_started_from(showing: Showing) -> None:
    task = await showing.whole()
    (asset,), (shoe, mask) = task["assets"], task["inputs"]
    assert [one["is_mask"] for one in (shoe, mask)] == [False, True]
    assert (shoe["content_type"], shoe["width"], shoe["size_bytes"]) == ("image/png", 16, len(SHOE))
    viewing = await showing.view()
    assert viewing.status == 201
    assert viewing.json["task_id"] == showing.task_id
    assert viewing.json["pictures"] == [asset["id"], shoe["id"], mask["id"]]
    number = viewing.json["id"]
    delivered = await showing.read(asset["id"], number)
    assert (delivered.status, len(delivered.body)) == (200, asset["size_bytes"])
    assert (await showing.read(shoe["id"], number)).body == SHOE
    assert (await showing.read(mask["id"], number)).body == MASK
    for one in (asset, shoe, mask):
        small = await showing.read(one["id"], number, "/thumbnail")
        assert (small.status, small.headers["Content-Type"], small.body[:4]) == (200, "image/webp", b"RIFF")


async def test_one_line_says_who_saw_which_pictures_however_often_they_are_read(showing: Showing) -> None:
    assert await showing.lines() == []
    viewing = (await showing.view()).json
    for start in range(5):
        part = await showing.read(viewing["pictures"][0], viewing["id"], Range=f"bytes={start}-{start + 3}")
        assert (part.status, len(part.body)) == (206, 4)
    (line,) = await showing.lines()
    assert (line["id"], line["action"], line["outcome"]) == (viewing["id"], "pictures.view", "done")
    assert (line["actor"], line["address"]) == (showing.operator.name, "127.0.0.1")
    assert line["detail"] == {"pictures": viewing["pictures"]}
    assert line["account_id"] == str(showing.door.caller.account_id)
    async with showing.door.database.connection() as connection:
        assert (await verify_chain(connection)).broken_id is None


async def test_a_viewing_asked_for_again_under_its_key_is_the_same_one(showing: Showing) -> None:
    first, again = await showing.view(key="look-1"), await showing.view(key="look-1")
    assert (again.status, again.body) == (201, first.body)
    assert len(await showing.lines()) == 1
    assert (await showing.view()).json["id"] != first.json["id"]
    assert len(await showing.lines()) == 2


async def test_without_a_viewing_of_one_s_own_no_byte_is_sent(showing: Showing, world: World) -> None:
    other = Showing(showing.door, await Operator.at(showing.door), showing.task_id)
    elsewhere = Showing(showing.door, showing.operator, await edited(showing.door, world))
    granted = await showing.operator.post(
        f"/admin/accounts/{showing.door.caller.account_id}/grants", {"amount": 5, "reason": "x"}, key="g-1"
    )
    assert granted.status == 201
    (grant,) = await showing.operator.audit(f"account:{showing.door.caller.account_id}")
    picture = (await showing.whole())["assets"][0]["id"]
    theirs, of_another_task = (await other.view()).json["id"], (await elsewhere.view()).json["id"]
    for viewing in ("", theirs, of_another_task, grant["id"], "0", "-1", "1e3", "9" * 30, "x"):
        for end in ("", "/thumbnail"):
            answer = await showing.read(picture, viewing, end)
            assert (answer.status, answer.code) == (403, "viewing-needed"), viewing
            assert answer.headers["Content-Type"] == "application/problem+json"
    assert (await other.read(picture, theirs)).status == 200


async def test_a_viewing_ends_after_a_quarter_of_an_hour(showing: Showing) -> None:
    viewing = (await showing.view()).json
    picture = viewing["pictures"][0]
    await showing.door.database.shift_clock(timedelta(minutes=14))
    assert (await showing.read(picture, viewing["id"])).status == 200
    await showing.door.database.shift_clock(timedelta(minutes=1, seconds=5))
    assert (await showing.read(picture, viewing["id"])).code == "viewing-needed"


async def test_a_picture_of_another_task_is_not_found_in_a_viewing(showing: Showing, world: World) -> None:
    elsewhere = Showing(showing.door, showing.operator, await edited(showing.door, world))
    theirs = (await elsewhere.whole())["assets"][0]["id"]
    unused = (await showing.door.upload(png(shade=99))).json["id"]
    viewing = (await showing.view()).json["id"]
    for picture in (theirs, unused, NOBODY, "nonsense"):
        answer = await showing.read(picture, viewing)
        assert (answer.status, answer.code) == (404, "not-found"), picture


async def test_a_customer_s_key_or_session_opens_no_viewing_and_no_picture(showing: Showing) -> None:
    viewing = (await showing.view()).json
    opened = await showing.door.request("POST", "/v1/session", json={})
    cookie = opened.headers["Set-Cookie"].partition(";")[0]
    token = cookie.partition("=")[2]
    for headers in (
        showing.door.caller.headers,
        {"Cookie": cookie},
        {"Cookie": f"safelight_console={token}", "X-CSRF-Token": opened.json["csrf_token"]},
    ):
        path = f"{showing.path}/pictures/{viewing['pictures'][0]}?viewing={viewing['id']}"
        assert (await showing.door.ask("GET", path, headers=headers)).status == 401
        begun = await showing.door.ask("POST", f"{showing.path}/viewings", headers=headers, json={})
        assert begun.status in (401, 403)
    assert len(await showing.lines()) == 1


async def test_what_is_sent_stays_nowhere_and_is_taken_for_nothing_but_a_picture(showing: Showing) -> None:
    viewing = (await showing.view()).json
    for picture in viewing["pictures"]:
        for end in ("", "/thumbnail"):
            headers = (await showing.read(picture, viewing["id"], end)).headers
            assert headers.getall("Cache-Control") == ["private, no-store"]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert "sandbox" in headers["Content-Security-Policy"]
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Content-Disposition"].startswith("inline; filename=")
    kept = [key async for key, _, _ in showing.door.parts.store.keys("thumbnails/")]
    assert kept == [f"thumbnails/{(await showing.whole())['assets'][0]['id']}.webp"], "none of an input"


async def test_an_erased_task_shows_nothing_and_its_record_stays(showing: Showing) -> None:
    viewing = (await showing.view()).json
    erased = await showing.door.request("POST", f"/v1/tasks/{showing.task_id}/erase")
    assert erased.status == 200
    for picture in viewing["pictures"]:
        for end in ("", "/thumbnail"):
            assert (await showing.read(picture, viewing["id"], end)).code == "not-found"
    nothing = await showing.view()
    assert (nothing.status, nothing.code) == (409, "nothing-to-show")
    assert len(await showing.lines()) == 1, "who saw nothing is not written down"
    task = await showing.whole()
    assert task["inputs"] == []
    (asset,) = task["assets"]
    assert asset["doomed_at"] is not None
    assert len(asset["sha256"]) == 64


async def test_an_input_that_has_expired_is_named_and_not_shown(showing: Showing, world: World) -> None:
    task = await showing.whole()
    await world.pass_time(days=2)
    await world.graph.uploads.expire()
    viewing = (await showing.view()).json
    assert viewing["pictures"] == [task["assets"][0]["id"]]
    left = (await showing.whole())["inputs"]
    assert [(one["id"], one["content_type"]) for one in left] == [(one["id"], None) for one in task["inputs"]]
    for one in left:
        assert (await showing.read(one["id"], viewing["id"])).code == "not-found"


async def test_bytes_that_are_gone_are_not_found(showing: Showing, world: World) -> None:
    asset = (await showing.whole())["assets"][0]["id"]
    viewing = (await showing.view()).json["id"]
    key = await world.value("SELECT store_key FROM assets WHERE id = $1", UUID(asset))
    await showing.door.parts.store.delete(key)
    for end in ("", "/thumbnail"):
        assert (await showing.read(asset, viewing, end)).code == "not-found"


async def test_what_is_not_settled_is_not_shown(gallery: Door, world: World) -> None:
    install(world, Scripted("lab-sync")).submit_does = in_turn(done(origin=Origin.ANSWER))
    task_id = (await gallery.submit({"model": "lab-sync", "prompt": "a lamp", "size": "64x64"})).json["id"]
    await world.dispatch("lab-sync")
    staged = [key async for key, _, _ in gallery.parts.store.keys("staging/")]
    assert staged, "the provider's bytes lie there, unchecked"
    showing = Showing(gallery, await Operator.at(gallery), task_id)
    nothing = await showing.view()
    assert (nothing.status, nothing.code) == (409, "nothing-to-show")
    assert await showing.lines() == []


async def test_a_picture_that_comes_after_a_viewing_needs_another_one(gallery: Door, world: World) -> None:
    showing = Showing(gallery, await Operator.at(gallery), await begun(gallery, world))
    before = (await showing.view()).json
    await world.archive_all()
    asset = (await showing.whole())["assets"][0]["id"]
    assert asset not in before["pictures"]
    assert (await showing.read(asset, before["id"])).code == "not-found", "no line tells of it"
    assert (await showing.read(before["pictures"][0], before["id"])).status == 200
    assert (await showing.read(asset, (await showing.view()).json["id"])).status == 200


async def test_a_viewing_of_no_task_is_not_found(showing: Showing) -> None:
    for task_id in (NOBODY, "nonsense"):
        answer = await showing.operator.post(f"/admin/tasks/{task_id}/viewings", {})
        assert (answer.status, answer.code) == (404, "not-found")
    answer = await showing.operator.post(f"{showing.path}/viewings", {"quietly": True})
    assert (answer.status, answer.code) == (422, "validation-failed")
