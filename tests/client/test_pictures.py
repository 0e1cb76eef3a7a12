"""Pictures of a task: what is ours is uploaded first, what the service reads itself is only named."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from safelight.client import ApiError, AsyncClient, Client, FileUnreadable
from safelight.client.pictures import MOST_BYTES, Picture
from tests.client.fake_api import KEY, PICTURE, FakeApi

MASK = b"\xff\xd8\xff the bytes of a mask"


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(api.url, KEY) as client:
        yield client


def id_of(data: bytes) -> str:
    """The id that the fake API gives to these bytes."""
    return str(UUID(hashlib.sha256(data).hexdigest()[:32]))


async def test_bytes_and_files_are_uploaded_as_they_are(
    client: AsyncClient, api: FakeApi, tmp_path: Path
) -> None:
    (tmp_path / "mask.jpg").write_bytes(MASK)
    first, second = await client.upload(PICTURE), await client.upload(tmp_path / "mask.jpg")
    assert api.uploaded == [("image/png", PICTURE), ("image/jpeg", MASK)]
    assert (first.id, second.id) == (id_of(PICTURE), id_of(MASK))
    assert (first.width, first.bytes, first.sha256) == (
        64,
        len(PICTURE),
        hashlib.sha256(PICTURE).hexdigest(),
    )


async def test_a_task_names_its_pictures_in_order_whatever_they_are(
    client: AsyncClient, api: FakeApi, tmp_path: Path
) -> None:
    shoe, known = tmp_path / "shoe.png", str(uuid4())
    shoe.write_bytes(PICTURE)
    images: list[Picture] = [
        shoe,
        str(shoe),
        PICTURE,
        known,
        "https://a.example.com/x.png",
        "data:image/png;base64,AA",
    ]
    await client.create("make it blue", images=images, mask=MASK)
    assert json.loads(api.bodies[0]) == {
        "operation": "edit",
        "prompt": "make it blue",
        "images": [*[id_of(PICTURE)] * 3, known, "https://a.example.com/x.png", "data:image/png;base64,AA"],
        "mask": id_of(MASK),
    }
    assert [data for _, data in api.uploaded] == [PICTURE] * 3 + [MASK]


async def test_every_try_of_a_submit_names_the_same_uploads(client: AsyncClient, api: FakeApi) -> None:
    api.submits, api.uploads = ["drop", 503], [503, 429]
    await client.create("make it blue", images=[PICTURE])
    assert len(set(api.bodies)) == 1
    assert len(api.bodies) == 3
    assert len(api.uploaded) == 3


async def test_a_picture_that_is_refused_is_no_task(client: AsyncClient, api: FakeApi) -> None:
    api.uploads = [422]
    with pytest.raises(ApiError) as caught:
        await client.create("make it blue", images=[b"no picture"])
    assert (caught.value.status, caught.value.code) == (422, "picture-refused")
    assert api.bodies == []


async def test_a_file_that_is_not_there_is_told_as_such(client: AsyncClient, tmp_path: Path) -> None:
    with pytest.raises(FileUnreadable, match=r"none\.png cannot be read: No such file"):
        await client.create("make it blue", images=[str(tmp_path / "none.png")])


async def test_what_may_never_end_is_not_read(client: AsyncClient, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "pipe.png", Path("/dev/zero"), tmp_path):
        with pytest.raises(FileUnreadable, match="Not a regular file"):
            await client.create("make it blue", images=[path])
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(FileUnreadable, match=r"large\.png is larger than 268,435,456 bytes"):
        await client.create("make it blue", images=[tmp_path / "large.png"])


def test_the_plain_client_uploads_too(api: FakeApi) -> None:
    with Client(api.url, KEY) as client:
        assert client.upload(PICTURE).id == id_of(PICTURE)
        client.create("make it blue", images=[PICTURE], operation="edit")
    assert json.loads(api.bodies[0])["images"] == [id_of(PICTURE)]
