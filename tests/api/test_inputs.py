"""Inputs of an edit: found, fetched and checked before a credit is held, and given to providers by address."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from PIL import Image

from safelight.api.parts import ApiParts
from safelight.assets.fetch import Fetcher
from safelight.assets.inputlinks import InputLink
from safelight.assets.reading import FetchLimits
from safelight.domain.ids import new_id
from safelight.domain.provider import Capabilities, MaskStyle, Origin
from safelight.errors import AssetError
from safelight.lifecycle import inputs
from safelight.lifecycle.inputs import Inputs
from safelight.lifecycle.uploads import Places
from tests.api.door import Answer, Door, running_door
from tests.api.pictures import bomb, data_url, picture, png
from tests.assets.conftest import Connects, Stranger, reply
from tests.lifecycle.upstreams import Scripted, done, in_turn, install
from tests.world import World

EDIT = {"prompt": "make it blue", "operation": "edit"}
LIMITS = FetchLimits(
    max_bytes=100_000, first_byte_s=0.4, total_s=2.0, resolve_s=0.3, min_rate=1_000.0, rate_window_s=0.3
)


async def lookup(host: str, port: int) -> Sequence[str]:
    """Names as a hostile name server answers them."""
    return {"inside.example": ["10.0.0.7"], "both.example": ["93.184.215.14", "127.0.0.1"]}.get(
        host, ["93.184.215.14"]
    )


@pytest.fixture
async def open_door(parts: ApiParts, stranger: Stranger, connects: Connects) -> AsyncIterator[Door]:
    """A door whose operator allows one stranger; no other address can be connected to but the service's own."""
    settings = parts.settings.model_copy(update={"allowed_origins": (stranger.origin,)})
    async with Fetcher(settings.allowed_origins, limits=LIMITS, lookup=lookup) as fetcher:
        taken = Inputs(parts.uploads, fetcher, settings, {})
        async with running_door(dataclasses.replace(parts, settings=settings, inputs=taken)) as door:
            connects.reachable |= {stranger.port, int(door.url.rpartition(":")[2])}
            yield door


async def inputs_of(door: Door, answer: Answer) -> list[tuple[bytes, str]]:
    """The bytes and types of a task's images and mask, as they lie in the store."""
    sql = """SELECT store_key, content_type FROM tasks
             CROSS JOIN unnest(images || coalesce(ARRAY[mask], '{}')) WITH ORDINALITY AS wanted (upload_id, place)
             JOIN uploads ON uploads.id = upload_id WHERE tasks.id = $1 ORDER BY place"""
    async with door.database.connection() as connection:
        rows = await connection.fetch(sql, UUID(answer.json["id"]))
    return [(await door.parts.store.get(row["store_key"]), row["content_type"]) for row in rows]


async def refused(door: Door, body: dict[str, Any], *fields: str) -> list[str]:
    """Submit, and see that these fields are refused, that nothing was left behind, and that the key stays free."""
    before = await door.rows()
    answer = await door.submit({**EDIT, **body}, key="again")
    assert (answer.status, answer.code) == (422, "validation-failed")
    assert [error["field"] for error in answer.json["errors"]] == list(fields)
    assert await door.rows() == before
    balance = await door.request("GET", "/v1/balance")
    assert balance.json == {"available": 1_000, "held": 0}
    return [error["message"] for error in answer.json["errors"]]


async def test_an_upload_a_url_and_a_data_url_become_our_own_copies(
    open_door: Door, stranger: Stranger
) -> None:
    first, second, mask = png(), picture("WEBP", shade=7), png(shade=255)
    stranger.answers["/second.webp?sig=a%2Fb"] = reply(second, Content_Type="text/plain")
    upload = (await open_door.upload(first)).json
    answer = await open_door.submit(
        {
            **EDIT,
            "images": [upload["id"].upper(), f"{stranger.origin}/second.webp?sig=a%2Fb"],
            "mask": data_url(mask, "text/html"),
        }
    )
    assert answer.status == 202
    assert await inputs_of(open_door, answer) == [
        (first, "image/png"),
        (second, "image/webp"),
        (mask, "image/png"),
    ]


async def test_the_same_input_twice_is_fetched_once_and_kept_twice_in_order(
    open_door: Door, stranger: Stranger
) -> None:
    stranger.answers["/x"] = reply(png())
    answer = await open_door.submit({**EDIT, "images": [f"{stranger.origin}/x"] * 2})
    assert [data for data, _ in await inputs_of(open_door, answer)] == [png(), png()]
    assert stranger.connections == 1


async def test_a_replay_fetches_nothing_again_and_needs_no_input_any_more(
    open_door: Door, stranger: Stranger
) -> None:
    stranger.answers["/x"] = reply(png())
    body = {**EDIT, "images": [f"{stranger.origin}/x"]}
    first = await open_door.submit(body, key="order-1")
    stranger.answers.clear()
    again = await open_door.submit(body, key="order-1")
    assert (again.status, again.body) == (202, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await open_door.submit({**body, "prompt": "another"}, key="order-1")
    assert (other.status, other.code) == (422, "idempotency-key-reused")
    assert stranger.connections == 1


async def test_two_first_uses_of_a_key_at_once_are_one_task(open_door: Door, stranger: Stranger) -> None:
    stranger.answers["/x"] = reply(png())
    body = {**EDIT, "images": [f"{stranger.origin}/x", data_url(png(shade=1))]}
    answers = await asyncio.gather(*(open_door.submit(body, key="order-1") for _ in range(6)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.body for answer in answers}) == 1
    assert (await open_door.request("GET", "/v1/balance")).json == {"available": 998, "held": 2}


async def test_a_foreign_upload_and_a_missing_one_are_refused_alike_before_anything_is_fetched(
    open_door: Door, stranger: Stranger
) -> None:
    theirs = (await open_door.upload(png(), by=await open_door.new_caller())).json["id"]
    url = f"{stranger.origin}/x"
    words = [
        await refused(open_door, {"images": [url, upload_id]}, "images[1]")
        for upload_id in (theirs, str(new_id()))
    ]
    assert words[0] == words[1] == [inputs.NO_UPLOAD]
    mine = (await open_door.upload(png())).json["id"]
    assert await refused(open_door, {"images": [mine], "mask": theirs}, "mask") == [inputs.NO_UPLOAD]
    assert stranger.connections == 0


HOSTILE = {
    "html": b"<!doctype html><html></html>",
    "nothing known": b"\x00" * 1_000,
    "cut": png()[:-20],
    "bomb": bomb(),
    "polyglot": b"GIF89a/*" + png(),
    "svg": b"<svg/>",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_what_is_no_picture_is_refused_wherever_it_comes_from(
    open_door: Door, stranger: Stranger, name: str
) -> None:
    stranger.answers["/x"] = reply(HOSTILE[name], Content_Type="image/png")
    url, inline = f"{stranger.origin}/x", data_url(HOSTILE[name])
    first = (await open_door.upload(png())).json["id"]
    (by_url, by_mask) = await refused(open_door, {"images": [first, url], "mask": url}, "images[1]", "mask")
    assert by_url == by_mask
    assert await refused(open_door, {"images": [inline, first], "mask": first}, "images[0]") == [by_url]


async def test_the_network_has_one_answer_for_everything(
    open_door: Door, stranger: Stranger, canary: Stranger, connects: Connects
) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async def silence(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    def to(location: str) -> bytes:
        return reply(status="302 Found", Location=location)

    stranger.answers |= {
        "/drip": drip,
        "/endless": endless,
        "/silence": silence,
        "/gone": reply(status="404 Not Found"),
        "/inside": to(f"http://127.0.0.1:{canary.port}/x"),
        "/metadata": to("https://169.254.169.254/latest/meta-data"),
        "/six": to("https://[::1]/x"),
        "/nat64": to("https://[64:ff9b::7f00:1]/x"),
        "/mapped": to("https://[::ffff:10.0.0.1]/x"),
        "/name": to("https://inside.example/x"),
        "/file": to("file:///etc/passwd"),
        "/round": to("/round"),
        "/long": reply(b"x" * 200_000),
    }
    urls = [f"{stranger.origin}{path}" for path in stranger.answers]
    urls += ["https://inside.example/x", "https://both.example/x", "https://127.0.0.1/x", "https://[::1]/x"]
    urls += ["https://public.example/x", "https://169.254.169.254/x", "https://public.example:8443/x"]
    for url in urls:
        words = await refused(open_door, {"images": [url]}, "images[0]")
        assert words == [inputs.UNREACHED.format(limit=open_door.parts.settings.max_upload_bytes)], url
    assert canary.connections == 0
    outside = {address[0] for address in connects.tried if address[1] not in connects.reachable}
    assert outside <= {"93.184.215.14"}


async def test_no_plain_http_is_asked_but_where_the_operator_allows_it(
    open_door: Door, canary: Stranger
) -> None:
    words = await refused(
        open_door, {"images": [f"{canary.origin}/x", "http://a.example/"]}, "images[0]", "images[1]"
    )
    assert set(words) == {"must be an upload id, an https URL or a data URL of a picture"}
    assert canary.connections == 0


async def test_customers_do_not_reach_the_lab_or_any_other_origin_of_results(
    gallery: Door, world: World
) -> None:
    for url in (f"{world.lab_url}/lab/ledger", f"{world.lab_url}/"):
        answer = await gallery.submit({**EDIT, "model": "lab-callback", "images": [url]})
        assert (answer.status, [error["field"] for error in answer.json["errors"]]) == (422, ["images[0]"])


async def test_inputs_that_take_too_long_together_are_given_up(
    open_door: Door, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def late(writer: asyncio.StreamWriter) -> None:
        """Fast enough for every other limit, and whole after a second."""
        data = reply(png() + bytes(4_000))
        for start in range(0, len(data), 200):
            writer.write(data[start : start + 200])
            await writer.drain()
            await asyncio.sleep(0.05)

    stranger.answers |= {"/late": late, "/x": reply(png())}
    await open_door.upload(png())
    monkeypatch.setattr(inputs, "FETCH_S", 0.25)
    urls = [f"{stranger.origin}/x", f"{stranger.origin}/late"]
    await refused(open_door, {"images": urls}, "images[1]")


async def test_an_account_has_its_share_of_places_and_others_go_on(parts: ApiParts) -> None:
    places = Places(total=3, share=2)
    one, other = new_id(), new_id()
    async with places.take(one, within_s=1), places.take(one, within_s=1):
        with pytest.raises(Exception, match="Too many pictures"):
            async with places.take(one, within_s=0.01):
                raise AssertionError("there is no third place")
        async with places.take(other, within_s=1):
            with pytest.raises(Exception, match="Too many pictures"):
                async with places.take(new_id(), within_s=0.01):
                    raise AssertionError("there is no fourth place")
    async with places.take(one, within_s=0.01):
        pass
    assert places._shares == {}


async def test_a_mask_has_the_size_of_the_first_image(open_door: Door) -> None:
    small, large = png(side=16), png(side=32, shade=0)
    images = [(await open_door.upload(data)).json["id"] for data in (small, large)]
    (words,) = await refused(open_door, {"images": images, "mask": images[1]}, "mask")
    assert "32x32" in words
    assert "16x16" in words
    answer = await open_door.submit({**EDIT, "images": images, "mask": data_url(png(side=16, shade=0))})
    assert answer.status == 202


async def test_every_fault_is_told_at_once(open_door: Door) -> None:
    await refused(
        open_door,
        {"images": ["data:,", data_url(b"x")], "mask": data_url(b"y")},
        "images[0]",
        "images[1]",
        "mask",
    )


async def test_a_body_that_is_too_long_is_told_about_uploads(open_door: Door) -> None:
    answer = await open_door.submit({**EDIT, "images": ["data:image/png;base64," + "A" * 1_100_000]})
    assert (answer.status, answer.code) == (413, "body-too-large")
    assert "/v1/uploads" in answer.json["detail"]


async def test_an_account_without_space_is_told_so_and_charged_nothing(parts: ApiParts) -> None:
    settings = parts.settings.model_copy(update={"max_account_upload_bytes": 1_024})
    parts.uploads._settings = settings
    noise = Image.effect_noise((64, 64), 50)
    file = io.BytesIO()
    noise.save(file, "PNG")
    async with running_door(parts) as door:
        (words,) = await refused(door, {"images": [data_url(file.getvalue())]}, "images[0]")
    assert "1024 bytes" in words


async def test_a_store_that_fails_holds_no_credit(open_door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(key: str, data: bytes) -> None:
        raise AssetError("storage", "no space left", is_retryable=True)

    before = await open_door.rows()
    monkeypatch.setattr(open_door.parts.store, "put", fail)
    answer = await open_door.submit({**EDIT, "images": [data_url(png())]})
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "unavailable", "5")
    assert await open_door.rows() == before


@pytest.mark.parametrize(("public_url", "status"), [(None, 422), ("https://pictures.example.com", 202)])
async def test_a_model_that_takes_addresses_alone_needs_a_public_one_of_ours(
    parts: ApiParts, public_url: str | None, status: int
) -> None:
    settings = parts.settings.model_copy(update={"public_url": public_url})
    studio = Scripted("studio", Capabilities(needs_image_data=False, needs_image_urls=True))
    async with Fetcher() as fetcher:
        taken = Inputs(parts.uploads, fetcher, settings, {"studio": studio})
        async with running_door(dataclasses.replace(parts, inputs=taken)) as door:
            answer = await door.submit({**EDIT, "images": [data_url(png())]})
    assert answer.status == status
    if status == 422:
        assert answer.json["errors"] == [{"field": "images", "message": inputs.NO_ADDRESS}]


def address(door: Door, upload_id: str, style: MaskStyle | None = None, life_s: int = 60) -> str:
    """The address of an input for a provider."""
    link = InputLink(door.caller.account_id, UUID(upload_id), style, int(time.time()) + life_s)
    return f"/inputs/{door.parts.links.word(link, 'image/png')}"


async def test_a_provider_reads_an_input_by_its_address_alone(door: Door) -> None:
    data = picture("WEBP")
    upload = (await door.upload(data)).json
    path = address(door, upload["id"])
    answer, head = await door.ask("GET", path), await door.ask("HEAD", path)
    assert (answer.status, answer.body) == (200, data)
    assert (head.status, head.body) == (200, b"")
    for name in ("Content-Type", "Content-Length", "ETag"):
        assert answer.headers[name] == head.headers[name]
    assert answer.headers["Content-Type"] == "image/webp"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    part = await door.ask("GET", path, headers={"Range": "bytes=0-3"})
    assert (part.status, part.body) == (206, b"RIFF")


@pytest.mark.parametrize(("style", "white"), [(MaskStyle.WHITE, 255), (MaskStyle.BLACK, 0)])
async def test_a_provider_reads_a_mask_in_its_own_style(door: Door, style: MaskStyle, white: int) -> None:
    upload = (await door.upload(picture("JPEG", shade=255))).json
    answer = await door.ask("GET", address(door, upload["id"], style))
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/png")
    with Image.open(io.BytesIO(answer.body)) as image:
        assert (image.mode, image.getpixel((3, 3))) == ("L", white)
    head = await door.ask("HEAD", address(door, upload["id"], style))
    assert head.headers["Content-Length"] == str(len(answer.body))


async def test_an_address_that_is_not_ours_or_too_old_opens_nothing(door: Door) -> None:
    upload = (await door.upload(png())).json["id"]
    for path, status, code in (
        (address(door, upload, life_s=0), 403, "link-expired"),
        (address(door, upload).replace("/inputs/", "/inputs/A"), 403, "link-wrong"),
        (address(door, str(new_id())), 404, "not-found"),
        ("/inputs/x", 403, "link-wrong"),
    ):
        answer = await door.ask("GET", path)
        assert (answer.status, answer.code) == (status, code)
    async for key, _, _ in door.parts.store.keys("uploads/"):
        await door.parts.store.delete(key)
    assert (await door.ask("GET", address(door, upload))).status == 404
    assert (await door.ask("GET", address(door, upload, MaskStyle.CLEAR))).status == 404


async def test_an_edit_goes_from_the_door_to_the_provider_and_comes_back_ready(
    gallery: Door, world: World
) -> None:
    provider = install(world, Scripted("lab-sync"))
    provider.submit_does = in_turn(done(origin=Origin.ANSWER))
    shoe = (await gallery.upload(png())).json["id"]
    images = [shoe, data_url(png(shade=7))]
    answer = await gallery.submit({**EDIT, "model": "lab-sync", "images": images})
    assert answer.status == 202
    await world.dispatch("lab-sync")
    await world.archive_all()
    (sent,) = provider.submissions
    assert [image.data for image in sent.images] == [png(), png(shade=7)]
    task = await gallery.request("GET", answer.headers["Location"])
    assert (task.json["status"], task.json["operation"]) == ("ready", "edit")


async def test_the_lab_edits_what_it_is_given(gallery: Door, world: World) -> None:
    answer = await gallery.submit({**EDIT, "model": "lab-sync", "images": [data_url(png())], "size": "64x64"})
    await world.dispatch("lab-sync")
    await world.archive_all()
    task = await gallery.request("GET", answer.headers["Location"])
    assert task.json["status"] == "ready"
