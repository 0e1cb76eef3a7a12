"""Uploads: what is taken and refused, that the same picture is kept once, and who may see it."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import aiohttp
import pytest

from safelight.api.parts import ApiParts
from safelight.domain.ids import new_id
from safelight.errors import AssetError
from safelight.lifecycle.uploads import Uploads
from tests.api.door import Door, running_door
from tests.api.pictures import bomb, picture, png

HTML = b"<!doctype html><html><script>alert(1)</script></html>"


async def stored(door: Door) -> list[str]:
    """Every key in the store."""
    return [key async for key, _, _ in door.parts.store.keys("")]


def with_limits(parts: ApiParts, **limits: int) -> ApiParts:
    """The same door with other settings."""
    settings = parts.settings.model_copy(update=limits)
    uploads = Uploads(parts.database, parts.store, parts.pictures, settings)
    return dataclasses.replace(parts, settings=settings, uploads=uploads)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
async def test_a_picture_is_kept_and_told_as_what_it_is(door: Door, kind: str) -> None:
    data = picture(kind)
    answer = await door.upload(data, Content_Type="image/anything")
    assert answer.status == 201
    shown = answer.json
    times = {"created_at", "expires_at"}
    assert {name: value for name, value in shown.items() if name not in times} == {
        "id": str(UUID(shown["id"])),
        "content_type": f"image/{kind.lower()}",
        "width": 16,
        "height": 16,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    life = datetime.fromisoformat(shown["expires_at"]) - datetime.fromisoformat(shown["created_at"])
    assert timedelta(hours=23) < life <= timedelta(hours=24)
    (key,) = await stored(door)
    assert key.startswith(f"uploads/{door.caller.account_id}/")
    assert await door.parts.store.get(key) == data
    read = await door.request("GET", f"/v1/uploads/{shown['id']}")
    assert (read.status, read.json) == (200, shown)


async def test_the_same_picture_again_is_the_same_upload_and_is_stored_once(door: Door) -> None:
    answers = await asyncio.gather(*(door.upload(png()) for _ in range(8)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert len(await stored(door)) == 1
    again = await door.upload(png())
    assert again.json["id"] == answers[0].json["id"]
    assert (await door.upload(png(shade=91))).json["id"] != again.json["id"]


async def test_two_accounts_with_the_same_picture_have_an_upload_each(door: Door) -> None:
    other = await door.new_caller()
    mine, theirs = await door.upload(png()), await door.upload(png(), by=other)
    assert mine.json["id"] != theirs.json["id"]
    assert len(await stored(door)) == 2


async def test_a_foreign_upload_and_a_missing_one_are_not_told_apart(door: Door) -> None:
    mine = (await door.upload(png())).json["id"]
    other = await door.new_caller()
    for path in (f"/v1/uploads/{mine}", f"/v1/uploads/{new_id()}", "/v1/uploads/x"):
        answer = await door.request("GET", path, by=other)
        assert (answer.status, answer.code) == (404, "not-found")
    assert (await door.ask("GET", f"/v1/uploads/{mine}")).status == 401
    assert (await door.ask("POST", "/v1/uploads", data=png())).status == 401


async def test_bytes_that_were_lost_come_back_with_the_next_upload(door: Door) -> None:
    first = await door.upload(png())
    (key,) = await stored(door)
    await door.parts.store.delete(key)
    again = await door.upload(png())
    assert again.json["id"] == first.json["id"]
    assert await stored(door) == [key]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (HTML, "not a picture"),
        (b"", "not a picture"),
        (b"%PDF-1.7 nothing", "not a picture"),
        (b"GIF89a" + HTML, "not a picture"),
        (picture("BMP"), "not a picture"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "not a picture"),
        (png()[:-20], "cut off"),
        (b"\x89PNG\r\n\x1a\n" + HTML + b"IEND\xaeB`\x82", "not a picture"),
        (picture("JPEG", side=64)[:300], "cut off"),
        (picture("WEBP")[:-1], "cut off"),
        (bomb(), "too many"),
        (bomb(20_000_000), "too many"),
    ],
    ids=[
        "html",
        "nothing",
        "pdf",
        "gif",
        "bmp",
        "svg",
        "cut png",
        "png head",
        "cut jpeg",
        "cut webp",
        "bomb",
        "large bomb",
    ],
)
async def test_what_is_no_whole_picture_is_refused_and_leaves_nothing(
    door: Door, data: bytes, words: str
) -> None:
    before = await door.rows()
    answer = await door.upload(data)
    assert (answer.status, answer.code) == (422, "picture-refused")
    assert words in answer.json["detail"]
    assert (await door.rows(), await stored(door)) == (before, [])


async def test_a_picture_with_something_behind_it_stays_a_picture(door: Door) -> None:
    data = png() + HTML
    answer = await door.upload(data, Content_Type="image/svg+xml")
    assert (answer.status, answer.json["content_type"]) == (201, "image/png")
    assert answer.json["sha256"] == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("declared", ["text/html", "application/json", "application/octet-stream", ""])
async def test_a_body_of_another_type_is_refused(door: Door, declared: str) -> None:
    answer = await door.upload(png(), Content_Type=declared)
    assert (answer.status, answer.code) == (415, "unsupported-media-type")
    assert (await door.upload(png(), Content_Encoding="gzip")).status == 415


async def test_more_than_the_limit_is_refused_before_it_is_read(parts: ApiParts) -> None:
    async with running_door(with_limits(parts, max_upload_bytes=2_000)) as door:
        assert (await door.upload(png())).status == 201
        for data in (bytes(2_001), bytes(100_000)):
            answer = await door.upload(data)
            assert (answer.status, answer.code) == (413, "body-too-large")
        head = f"POST /v1/uploads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {door.caller.key}\r\n"
        endless = head + "Content-Type: image/png\r\nContent-Length: 99999999999\r\n\r\n"
        assert b"413" in await door.raw(endless.encode())
        chunk = f"{3_000:x}\r\n" + "x" * 3_000 + "\r\n"
        chunked = head + "Content-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk
        assert b"413" in await door.raw(chunked.encode())


async def test_an_account_has_so_much_space_and_no_more(parts: ApiParts) -> None:
    size = len(png())
    async with running_door(with_limits(parts, max_account_upload_bytes=2 * size + 1_024)) as door:
        shades = range(40)
        answers = await asyncio.gather(*(door.upload(png(shade=shade)) for shade in shades))
        taken = sum(answer.json["bytes"] for answer in answers if answer.status == 201)
        assert 2 * size < taken <= 2 * size + 1_024
        refused = [answer for answer in answers if answer.status != 201]
        assert {(answer.status, answer.code) for answer in refused} == {(413, "upload-space-full")}
        kept = next(shade for shade in shades if answers[shade].status == 201)
        assert (await door.upload(png(shade=kept))).status == 201
        assert len(await stored(door)) == len(answers) - len(refused)
        assert (await door.upload(png(), by=await door.new_caller())).status == 201


def form(*files: tuple[str, bytes, str | None]) -> aiohttp.MultipartWriter:
    """A form with these fields; one without a file name is a plain field."""
    writer = aiohttp.MultipartWriter("form-data")
    for name, data, file_name in files:
        part = writer.append(data)
        given = {"name": name} if file_name is None else {"name": name, "filename": file_name}
        part.set_content_disposition("form-data", quote_fields=False, **given)
    return writer


async def test_a_form_with_one_file_is_an_upload(door: Door) -> None:
    data = png() + b"\r\n--not the boundary\r\n"
    answer = await door.request("POST", "/v1/uploads", data=form(("file", data, 'a "shoe".png')))
    assert answer.status == 201
    assert answer.json["sha256"] == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    "parts_of_form",
    [
        [],
        [("file", png(), None)],
        [("a", png(), "a.png"), ("b", png(), "b.png")],
        [("file", png(), "a"), ("x", b"1", None)],
    ],
    ids=["nothing", "no file", "two files", "a field too"],
)
async def test_a_form_with_anything_else_is_refused(door: Door, parts_of_form: list[Any]) -> None:
    if parts_of_form:
        answer = await door.request("POST", "/v1/uploads", data=form(*parts_of_form))
    else:
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        answer = await door.request("POST", "/v1/uploads", data=b"--x--\r\n", headers=headers)
    assert (answer.status, answer.code) == (400, "invalid-form")


@pytest.mark.parametrize(
    ("declared", "raw"),
    [
        ("multipart/form-data", b"--x\r\n\r\n--x--"),
        ("multipart/form-data; boundary=", b"--\r\n"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"--x"),
        ("multipart/form-data; boundary=x", b"--x\r\n"),
        ("multipart/form-data; boundary=x", b"--x\r\nno head\r\n--x--"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Type: image/png\r\n\r\nx\r\n--x--"),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; filename=a\r\n\r\nx\r\n--x--",
        ),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=a; filename=a\r\n\r\nx\r\n",
        ),
        ("multipart/form-data; boundary=x", b"--x" + b"\r\n\r\n\r\n--x" * 200 + b"--"),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"A: b\r\n" * 3000 + b"\r\n\r\n--x--"),
    ],
)
async def test_a_broken_form_is_refused(door: Door, declared: str, raw: bytes) -> None:
    answer = await door.request("POST", "/v1/uploads", data=raw, headers={"Content-Type": declared})
    assert (answer.status, answer.code) == (400, "invalid-form")
    assert await stored(door) == []


async def test_a_store_that_fails_is_a_reason_to_come_back(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(key: str, data: bytes) -> None:
        raise AssetError("storage", "no space left", is_retryable=True)

    before = await door.rows()
    monkeypatch.setattr(door.parts.store, "put", fail)
    answer = await door.upload(png())
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "unavailable", "5")
    assert await door.rows() == before


async def test_a_body_that_breaks_off_leaves_nothing(door: Door) -> None:
    before = await door.rows()
    head = f"POST /v1/uploads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {door.caller.key}\r\n"
    rest = f"Content-Type: image/png\r\nContent-Length: {len(png())}\r\n\r\n"
    await door.break_off((head + rest).encode() + png()[:40])
    assert (await door.rows(), await stored(door)) == (before, [])
