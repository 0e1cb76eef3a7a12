"""Downloads: by key or signed link, whole or in part, and only ever as the picture they are."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID

import pytest

from safelight.domain.ids import new_id
from tests.api.door import PEPPER, Door, running_door
from tests.world import World


@dataclass
class Picture:
    """A picture in our storage and the door to it."""

    door: Door
    shown: dict[str, Any]
    data: bytes

    @property
    def path(self) -> str:
        return f"/v1/assets/{self.shown['id']}"


@pytest.fixture
async def picture(gallery: Door, world: World) -> Picture:
    task_id = (await gallery.submit({"model": "lab-sync", "prompt": "a lamp", "size": "64x64"})).json["id"]
    await world.dispatch("lab-sync")
    await world.archive_all()
    shown = (await gallery.request("GET", f"/v1/tasks/{task_id}")).json["assets"][0]
    data = (await gallery.request("GET", f"/v1/assets/{shown['id']}")).body
    return Picture(gallery, shown, data)


async def test_a_key_and_a_link_give_the_same_untouched_bytes(picture: Picture) -> None:
    assert hashlib.sha256(picture.data).hexdigest() == picture.shown["sha256"]
    assert len(picture.data) == picture.shown["bytes"]
    assert picture.data.startswith(b"\x89PNG")
    assert (await picture.door.ask("GET", picture.shown["url"])).body == picture.data


async def _base(picture: Picture, host: str) -> str:
    """What stands before the path of the link that a caller gets who sends this Host header."""
    answer = await picture.door.request("GET", "/v1/tasks", headers={"Host": host})
    url: str = answer.json["data"][0]["assets"][0]["url"]
    return url.partition("/v1/")[0]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "6.6.6.6", "127.0.0.1.evil.example", "a b<script>", ""]
)
async def test_a_forged_host_does_not_get_into_a_signed_link(picture: Picture, host: str) -> None:
    assert await _base(picture, host) == picture.door.url


@pytest.mark.parametrize("host", ["localhost", "LocalHost:9000", "127.0.0.1:9000", "[::1]:9000"])
async def test_a_link_leads_back_to_where_the_callers_own_machine_was_asked(
    picture: Picture, host: str
) -> None:
    assert await _base(picture, host) == f"http://{host}", "through a tunnel or a port that is passed on"


async def test_a_link_leads_to_the_name_that_we_listen_on_or_to_the_public_address(
    world: World, picture: Picture
) -> None:
    parts = dataclasses.replace(world.graph.api_parts(""), pepper=PEPPER)
    for settings, base in (
        ({"host": "pictures.lan"}, "http://pictures.lan:8000"),
        ({"host": "pictures.lan", "public_url": "https://pictures.example/"}, "https://pictures.example"),
    ):
        changed = dataclasses.replace(parts, settings=parts.settings.model_copy(update=settings))
        async with running_door(changed) as door:
            door.caller = picture.door.caller
            assert await _base(Picture(door, picture.shown, picture.data), "pictures.lan:8000") == base


async def test_a_picture_is_sent_so_that_no_browser_takes_it_for_anything_else(picture: Picture) -> None:
    for answer in (
        await picture.door.request("GET", picture.path),
        await picture.door.ask("GET", picture.shown["url"]),
        await picture.door.ask("GET", picture.shown["thumbnail_url"]),
    ):
        headers = answer.headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Disposition"].startswith("inline; filename=")
        assert "sandbox" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"].startswith("private")
        assert len(headers.getall("Cache-Control")) == 1
        assert headers["Content-Type"] in ("image/png", "image/webp")
    life_s = int((await picture.door.ask("GET", picture.shown["url"])).headers["Cache-Control"].split("=")[1])
    assert 800 < life_s <= 900


async def test_an_unchecked_type_is_only_saved(picture: Picture, world: World) -> None:
    async with world.database.transaction() as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")  # the schema would refuse it
        await connection.execute(
            "UPDATE assets SET content_type = 'text/html' WHERE id = $1", UUID(picture.shown["id"])
        )
    headers = (await picture.door.request("GET", picture.path)).headers
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"].startswith("attachment")


async def test_a_thumbnail_is_a_small_webp_and_is_kept(picture: Picture, world: World) -> None:
    first = await picture.door.ask("GET", picture.shown["thumbnail_url"])
    assert (first.status, first.headers["Content-Type"]) == (200, "image/webp")
    assert (first.body[:4], first.body[8:12]) == (b"RIFF", b"WEBP")
    assert await world.graph.context.store.exists(f"thumbnails/{picture.shown['id']}.webp")
    by_key = await picture.door.request("GET", f"{picture.path}/thumbnail")
    assert by_key.body == first.body


async def test_head_tells_what_get_would_send(picture: Picture) -> None:
    for url in (picture.shown["url"], picture.shown["thumbnail_url"]):
        head, get = await picture.door.ask("HEAD", url), await picture.door.ask("GET", url)
        assert (head.status, head.body) == (200, b"")
        for name in ("Content-Length", "Content-Type", "ETag"):
            assert head.headers[name] == get.headers[name]


async def test_a_link_with_anything_changed_is_forbidden(picture: Picture) -> None:
    url = urlsplit(picture.shown["url"])
    query = dict(parse_qsl(url.query))
    changes = {
        "account": str(new_id()),
        "variant": "thumbnail",
        "expires": str(int(query["expires"]) + 1),
        "key": "2",
        "signature": query["signature"][:-1] + ("0" if query["signature"][-1] != "0" else "1"),
    }
    for name, value in changes.items():
        changed = url._replace(query=urlencode({**query, name: value})).geturl()
        answer = await picture.door.ask("GET", changed)
        assert (answer.status, answer.code) == (403, "link-wrong"), name
        without = {other: kept for other, kept in query.items() if other != name}
        answer = await picture.door.ask("GET", url._replace(query=urlencode(without)).geturl())
        assert answer.status == (401 if name == "signature" else 403), name
    for signature in ("", "é" * 64, "A" * 64, query["signature"].upper()):
        changed = url._replace(query=urlencode({**query, "signature": signature})).geturl()
        assert (await picture.door.ask("GET", changed)).status == 403
    moved = picture.shown["url"].replace(picture.shown["id"], str(new_id()))
    assert (await picture.door.ask("GET", moved)).status == 403
    swapped = f"{picture.path}/thumbnail?{url.query}"
    assert (await picture.door.ask("GET", swapped)).status == 403
    assert (await picture.door.ask("POST", picture.shown["url"])).status == 405


async def test_a_link_ends_when_it_says(picture: Picture) -> None:
    signer, account = picture.door.parts.signer, picture.door.caller.account_id
    query = signer.sign(
        UUID(picture.shown["id"]), account_id=account, variant="original", expires_at=int(time.time()) - 1
    )
    answer = await picture.door.ask("GET", f"{picture.path}?{query}")
    assert (answer.status, answer.code) == (403, "link-expired")


async def test_a_genuine_link_to_nothing_is_not_found(picture: Picture, world: World) -> None:
    await world.graph.context.store.delete(
        await world.value("SELECT store_key FROM assets WHERE id = $1", UUID(picture.shown["id"]))
    )
    for url in (picture.shown["url"], picture.shown["thumbnail_url"]):
        assert (await picture.door.ask("GET", url)).code == "not-found"


RANGES = {
    "bytes=0-0": (206, slice(0, 1)),
    "bytes=5-9": (206, slice(5, 10)),
    "bytes=10-": (206, slice(10, None)),
    "bytes=-7": (206, slice(-7, None)),
    "bytes=5-99999999": (206, slice(5, None)),
    "bytes=0-": (200, slice(None)),
    "bytes=-99999999": (200, slice(None)),
    "bytes=9-5": (200, slice(None)),
    "bytes=0-1,5-6": (200, slice(None)),
    "bytes=" + ",".join(["0-0"] * 1_900): (200, slice(None)),
    "lines=0-1": (200, slice(None)),
    "bytes=a-b": (200, slice(None)),
}
"""What is asked, and what of the picture comes back."""


async def test_one_range_of_bytes_can_be_had(picture: Picture) -> None:
    total = len(picture.data)
    for asked, (status, part) in RANGES.items():
        answer = await picture.door.request("GET", picture.path, headers={"Range": asked})
        assert (answer.status, answer.body) == (status, picture.data[part]), asked
        assert answer.headers["Content-Length"] == str(len(answer.body))
        start, end, _ = part.indices(total)
        expected = f"bytes {start}-{end - 1}/{total}" if status == 206 else None
        assert answer.headers.get("Content-Range") == expected


async def test_a_range_outside_cannot_be_had(picture: Picture) -> None:
    for asked in ("bytes=99999999-", "bytes=-0"):
        answer = await picture.door.request("GET", picture.path, headers={"Range": asked})
        assert (answer.status, answer.body) == (416, b"")
        assert answer.headers["Content-Range"] == f"bytes */{len(picture.data)}"


async def test_what_its_reader_has_already_is_not_sent_again(picture: Picture) -> None:
    tag = f'"{picture.shown["sha256"]}"'
    answer = await picture.door.request("GET", picture.path, headers={"If-None-Match": tag})
    assert (answer.status, answer.body) == (304, b"")
    stale = {"Range": "bytes=0-3", "If-Range": '"another"'}
    assert (await picture.door.request("GET", picture.path, headers=stale)).body == picture.data
