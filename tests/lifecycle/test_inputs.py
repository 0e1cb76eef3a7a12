"""Input pictures on their way to the provider, and uploads until they are deleted."""

from __future__ import annotations

import dataclasses
import io
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from PIL import Image

from safelight.db import gates
from safelight.db.uploads import UploadRow
from safelight.domain.provider import AfterUncertain, Capabilities, InputImage, MaskStyle
from safelight.domain.task import State
from safelight.errors import AssetError
from safelight.lifecycle.doctor import examine
from safelight.lifecycle.handover import PUBLIC_URL_NEEDED
from safelight.telemetry import set_fault_hook
from tests.lifecycle.upstreams import (
    Scripted,
    in_turn,
    install,
    pass_until_due,
    picture,
    run_task,
    uncertain,
)
from tests.world import Server, World, running_world

NAME = "lab-callback"


class Died(Exception):
    """The process ended here."""


@pytest.fixture(autouse=True)
def no_hook() -> Iterator[None]:
    yield
    set_fault_hook(None)


def die_at(name: str) -> None:
    """Let the next call of this fault point be the end of the process."""

    def hook(reached: str) -> None:
        if reached == name:
            set_fault_hook(None)
            raise Died(name)

    set_fault_hook(hook)


def mask_with_hole() -> bytes:
    """As an image editor saves it: transparent where it may change."""
    image = Image.new("RGBA", (16, 16), (200, 0, 0, 255))
    image.putpixel((2, 3), (0, 0, 0, 0))
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


async def upload(world: World, data: bytes, **more: Any) -> UploadRow:
    return await world.graph.uploads.keep(world.account_id, data, **more)


async def edit(world: World, *data: bytes, mask: bytes | None = None, name: str = NAME) -> UUID:
    """Submit an edit of these pictures."""
    images = [(await upload(world, one)).id for one in data]
    mask_id = (await upload(world, mask)).id if mask else None
    return await world.submit(name, operation="edit", images=images, mask=mask_id)


async def stored(world: World) -> list[str]:
    return [key async for key, _, _ in world.graph.context.store.keys("uploads/")]


def pixel(image: InputImage | None) -> Any:
    assert image is not None
    with Image.open(io.BytesIO(image.data)) as opened:
        assert (opened.size, opened.format) == ((16, 16), "PNG")
        return opened.getpixel((2, 3)), opened.getpixel((9, 9))


@pytest.mark.parametrize(
    ("style", "hole", "rest"),
    [
        (MaskStyle.WHITE, 255, 0),
        (MaskStyle.BLACK, 0, 255),
        (MaskStyle.CLEAR, (0, 0, 0, 0), (0, 0, 0, 255)),
    ],
)
async def test_two_images_and_a_mask_reach_the_provider_in_its_own_style(
    world: World, style: MaskStyle, hole: Any, rest: Any
) -> None:
    provider = install(world, Scripted(NAME, Capabilities(mask_style=style)))
    task_id = await edit(world, picture(1), picture(2), mask=mask_with_hole())
    await world.dispatch()
    (sent,) = provider.submissions
    assert sent.operation == "edit"
    assert [(image.content_type, image.data) for image in sent.images] == [
        ("image/png", picture(1)),
        ("image/png", picture(2)),
    ]
    assert pixel(sent.mask) == (hole, rest)
    assert await world.state(task_id) is State.RUNNING


async def test_one_picture_named_twice_arrives_twice(world: World) -> None:
    provider = install(world, Scripted(NAME))
    await edit(world, picture(1), picture(2), picture(1), mask=picture(2))
    await world.dispatch()
    assert [image.data for image in provider.submissions[0].images] == [picture(1), picture(2), picture(1)]


async def test_a_task_without_inputs_is_sent_without(world: World) -> None:
    provider = install(world, Scripted(NAME))
    await run_task(world)
    assert (list(provider.submissions[0].images), provider.submissions[0].mask) == ([], None)


async def test_an_address_of_our_copy_goes_with_it_and_is_the_same_at_the_next_send(world: World) -> None:
    provider = install(world, Scripted(NAME, Capabilities(after_uncertain=AfterUncertain.SAME_KEY)))
    provider.submit_does = in_turn(uncertain(), uncertain())
    task_id = await edit(world, picture(1), mask=mask_with_hole())
    await world.dispatch()
    await pass_until_due(world, task_id)
    await world.look()
    first, second = provider.submissions
    assert first == second
    image, mask = first.images[0], first.mask
    assert image.url is not None
    assert mask is not None
    assert mask.url is not None
    links = world.graph.context.links
    base = "http://127.0.0.1:9/inputs/"
    assert image.url.startswith(base)
    opened = links.read(image.url.removeprefix(base), now=time.time())
    assert (opened.account_id, opened.mask_style) == (world.account_id, None)
    deadline_at = (await world.task(task_id)).deadline_at
    assert deadline_at is not None
    assert opened.expires_at == int(deadline_at.timestamp()) + 3_600
    assert links.read(mask.url.removeprefix(base), now=time.time()).mask_style is MaskStyle.WHITE


async def test_a_provider_that_takes_addresses_alone_is_sent_no_bytes(world: World) -> None:
    only_urls = Capabilities(needs_image_data=False, needs_image_urls=True)
    provider = install(world, Scripted(NAME, only_urls))
    await edit(world, picture(1), mask=picture(2))
    await world.dispatch()
    (sent,) = provider.submissions
    assert [(image.data, image.url is not None) for image in (*sent.images, sent.mask) if image] == [
        (b"", True),
        (b"", True),
    ]


@pytest.fixture
async def hidden(server: Server) -> Any:
    """A world that no provider can reach."""
    async with running_world(server) as made:
        yield made


async def test_without_a_public_address_bytes_are_sent_without_one(hidden: World) -> None:
    provider = install(hidden, Scripted(NAME))
    await edit(hidden, picture(1), mask=picture(2))
    await hidden.dispatch()
    (sent,) = provider.submissions
    assert sent.images[0] == InputImage("image/png", picture(1))
    assert sent.mask is not None
    assert sent.mask.url is None


async def test_what_needs_an_address_is_never_sent_without_one_and_stops_nobody_else(hidden: World) -> None:
    only_urls = Capabilities(needs_image_data=False, needs_image_urls=True)
    provider = install(hidden, Scripted(NAME, only_urls))
    task_id = await edit(hidden, picture(1))
    for _ in range(12):
        await hidden.dispatch()
        if await hidden.state(task_id) is State.FAILED:
            break
        await pass_until_due(hidden, task_id)
    (row,) = await hidden.rows("SELECT state, failure_class, failure_code FROM tasks")
    assert tuple(row) == ("failed", "environment", PUBLIC_URL_NEEDED)
    assert provider.submissions == []
    assert await hidden.balance() == (1_000, 0)
    async with hidden.database.connection() as connection:
        assert await gates.closed_gates(connection) == []
    await run_task(hidden)
    assert len(provider.submissions) == 1


async def test_a_storage_that_fails_closes_its_own_gate_and_not_the_providers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = install(world, Scripted(NAME))
    task_id = await edit(world, picture(1))

    async def fail(key: str) -> bytes:
        raise AssetError("storage", "input/output error", is_retryable=True)

    monkeypatch.setattr(world.graph.context.store, "get", fail)
    await world.dispatch()
    assert provider.submissions == []
    assert await world.state(task_id) is State.RETRYING
    async with world.database.connection() as connection:
        assert [name for name, _ in await gates.closed_gates(connection)] == [gates.STORAGE]
    attempt = await world.attempt(task_id)
    assert attempt.sends == attempt.throttled == 1
    monkeypatch.undo()
    await world.pass_time(seconds=10)
    await world.dispatch()
    assert [image.data for image in provider.submissions[0].images] == [picture(1)]
    assert (await world.attempt(task_id)).number == 1


@pytest.mark.parametrize("fault", ["gone", "cut"])
async def test_an_input_that_is_lost_holds_up_its_own_task_alone(world: World, fault: str) -> None:
    provider = install(world, Scripted(NAME))
    task_id = await edit(world, picture(1))
    (key,) = await stored(world)
    if fault == "gone":
        await world.graph.context.store.delete(key)
    else:
        await world.graph.context.store.put(key, picture(1)[:-1])
    await world.dispatch()
    assert await world.state(task_id) is State.RETRYING
    other = await edit(world, picture(2))
    await world.dispatch()
    assert await world.state(other) is State.RUNNING
    await world.pass_time(hours=2)
    await world.graph.sweep.tidy()
    assert await world.state(task_id) is State.FAILED
    assert len(provider.submissions) == 1


# ---------------------------------------------------------------------------- until they are deleted


async def test_an_upload_is_deleted_a_day_after_its_last_use(world: World) -> None:
    first, second = await upload(world, picture(1)), await upload(world, picture(2))
    await world.pass_time(hours=23)
    assert (await upload(world, picture(1))).expires_at > first.expires_at
    await world.graph.uploads.expire()
    assert len(await stored(world)) == 2
    await world.pass_time(hours=2)
    await world.graph.uploads.expire()
    assert await stored(world) == [first.store_key]
    assert await world.value("SELECT count(*) FROM uploads") == 1
    await world.pass_time(hours=24)
    await world.graph.uploads.expire()
    assert await stored(world) == []
    again = await upload(world, picture(2))
    assert again.id == second.id
    assert again.store_key != second.store_key


async def test_what_an_unfinished_task_needs_is_spared_until_it_is_finished(world: World) -> None:
    task_id = await edit(world, picture(1), picture(2), mask=picture(3))
    await upload(world, picture(4))
    await world.pass_time(days=3)
    await world.graph.uploads.expire()
    assert len(await stored(world)) == 3
    await world.graph.uploads.expire()
    assert len(await stored(world)) == 3
    await world.cancel.cancel(world.account_id, task_id)
    await world.pass_time(hours=2)
    await world.graph.uploads.expire()
    assert await stored(world) == []
    assert await world.value("SELECT count(*) FROM uploads") == 0


async def test_what_came_inside_a_submit_is_kept_for_an_hour(world: World) -> None:
    kept = await upload(world, picture(1), keep_s=3_600.0)
    await world.pass_time(minutes=59)
    await world.graph.uploads.expire()
    assert await stored(world) == [kept.store_key]
    await world.pass_time(minutes=2)
    await world.graph.uploads.expire()
    assert await stored(world) == []


@pytest.mark.parametrize("place", ["after_doom", "after_upload_delete"])
async def test_a_death_while_deleting_is_made_up_for(world: World, place: str) -> None:
    await upload(world, picture(1))
    await world.pass_time(days=2)
    die_at(place)
    with pytest.raises(Died):
        await world.graph.uploads.expire()
    assert await world.value("SELECT count(*) FROM uploads WHERE doomed_at IS NOT NULL") == 1
    await world.graph.uploads.expire()
    await world.pass_time(minutes=6)
    await world.graph.uploads.expire()
    assert (await stored(world), await world.value("SELECT count(*) FROM uploads")) == ([], 0)


@pytest.mark.parametrize("place", ["after_doom", "after_upload_delete"])
async def test_an_upload_that_comes_again_while_it_is_deleted_is_whole(world: World, place: str) -> None:
    first = await upload(world, picture(1))
    await world.pass_time(days=2)
    die_at(place)
    with pytest.raises(Died):
        await world.graph.uploads.expire()
    assert await world.graph.uploads.use(world.account_id, [first.id]) == {}
    again = await upload(world, picture(1))
    assert again.id == first.id
    await world.pass_time(minutes=6)
    await world.graph.uploads.expire()
    assert await stored(world) == [again.store_key]
    assert await world.graph.context.store.get(again.store_key) == picture(1)


async def test_a_death_between_bytes_and_row_leaves_no_row_without_bytes(world: World) -> None:
    die_at("after_upload_put")
    with pytest.raises(Died):
        await upload(world, picture(1))
    assert await world.value("SELECT count(*) FROM uploads") == 0
    kept = await upload(world, picture(1))
    assert await world.graph.context.store.get(kept.store_key) == picture(1)


async def test_a_store_that_cannot_delete_is_asked_again_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(key: str) -> None:
        raise AssetError("storage", "read-only", is_retryable=True)

    for shade in range(3):
        await upload(world, picture(shade))
    await world.pass_time(days=2)
    monkeypatch.setattr(world.graph.context.store, "delete", fail)
    await world.graph.uploads.expire()
    assert await world.value("SELECT count(*) FROM uploads WHERE doomed_at IS NOT NULL") == 3
    monkeypatch.undo()
    await world.graph.uploads.expire()
    assert len(await stored(world)) == 3, "not before the end of its lease"
    await world.pass_time(minutes=6)
    await world.graph.uploads.expire()
    assert (await stored(world), await world.value("SELECT count(*) FROM uploads")) == ([], 0)


async def test_many_are_deleted_in_one_pass_and_the_space_is_free_again(world: World) -> None:
    row = await upload(world, picture(1))
    columns = "account_id, content_type, width, height, bytes, created_at, expires_at"
    await world.rows(
        f"INSERT INTO uploads (id, store_key, sha256, {columns})"
        f" SELECT gen_random_uuid(), 'uploads/x/' || i, sha256(i::text::bytea), {columns}"
        " FROM uploads, generate_series(1, 120) AS i WHERE id = $1",
        row.id,
    )
    await world.pass_time(days=2)
    await world.graph.uploads.expire()
    assert await world.value("SELECT count(*) FROM uploads") == 0


async def test_one_picture_in_many_submits_is_written_down_once_in_a_while(world: World) -> None:
    row = await upload(world, picture(1))
    for _ in range(3):
        used = await world.graph.uploads.use(world.account_id, [row.id])
        assert used == {row.id: row}
    await world.pass_time(minutes=10)
    renewed = await world.graph.uploads.use(world.account_id, [row.id])
    assert renewed[row.id].expires_at > row.expires_at
    assert dataclasses.replace(renewed[row.id], expires_at=row.expires_at) == row


async def test_the_doctor_finds_no_fault_with_uploads(world: World) -> None:
    await edit(world, picture(1))
    await world.pass_time(days=4)
    await world.rows("UPDATE tasks SET wake_at = clock_now(), start_by = clock_now() + interval '1 hour'")
    context = world.graph.context
    findings = [finding async for finding in examine(world.database, context.store)]
    assert [finding for finding in findings if finding.check == "strays"] == []
