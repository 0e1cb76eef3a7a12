"""Results that an operator attaches, and what is accepted as done."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from safelight.assets.fetch import Fetcher
from safelight.domain.review import Choice
from safelight.domain.task import ReviewReason, State
from safelight.errors import RequestError
from safelight.lifecycle.attach import Attach
from safelight.lifecycle.review import Review, Ruling
from tests.lifecycle.reviews import (
    OPERATOR,
    in_review,
    refused,
    stored,
)
from tests.lifecycle.upstreams import (
    picture,
    result_host,
)
from tests.world import World


@pytest.mark.parametrize(("given", "captured"), [(1, 1), (2, 2), (3, 3)])
async def test_attached_pictures_are_archived_and_paid_for_one_by_one(
    world: World, given: int, captured: int
) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE, n=3)
    files = [picture(40 + place) for place in range(given)]
    await desk.decide(Choice.ATTACH_RESULT, files=files)
    await world.archive_all()
    assert (await desk.state(), await world.balance()) == (State.SUCCEEDED, (1_000 - captured, 0))
    (attempt,) = await world.rows("SELECT noticed_by, outcome, run_s FROM attempts")
    assert tuple(attempt) == ("decision", "succeeded", None), "it says nothing about how fast the provider is"
    rows = await world.rows("SELECT store_key FROM assets ORDER BY position")
    assert [await world.graph.context.store.get(row["store_key"]) for row in rows] == files


async def test_a_picture_is_attached_by_its_address(world: World) -> None:
    desk = await in_review(world, ReviewReason.SUBMIT_UNCERTAIN)
    async with result_host("good", "html") as host, allowed(world, host.url) as review:
        ruling = Ruling(
            desk.task_id, desk.version, Choice.ATTACH_RESULT, urls=[f"{host.url}/shoe.png?signature=1"]
        )
        await review.decide(ruling, OPERATOR)
        assert host.asked == 1, "it is fetched once, and copied from our own storage"
    await world.archive_all()
    assert await desk.state() is State.SUCCEEDED


@contextlib.asynccontextmanager
async def allowed(world: World, origin: str) -> AsyncIterator[Review]:
    """Reviews whose pictures may come from a host of the test's own."""
    context = world.graph.context
    async with Fetcher([origin]) as fetcher:
        attach = Attach(context.store, context.pictures, fetcher, max_bytes=1_000_000)
        yield Review(world.database, attach, context.routing, start_by_s=60.0)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"files": [], "urls": ["http://169.254.169.254/latest"]}, "urls[0]"),
        ({"files": [], "urls": ["https://127.0.0.1/x.png"]}, "urls[0]"),
        ({"files": [], "urls": ["data:image/png;base64,AAAA"]}, "urls[0]"),
        ({"files": [picture(), b"no picture"]}, "files[1]"),
        ({"files": [picture(), picture(), picture()]}, "files"),
        ({"files": []}, "urls"),
    ],
)
async def test_what_is_no_picture_is_not_attached_and_leaves_no_bytes(
    world: World, words: dict[str, Any], field: str
) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE, n=2)
    assert await refused(desk, Choice.ATTACH_RESULT, **words) == (422, "validation-failed")
    with pytest.raises(RequestError) as caught:
        await desk.decide(Choice.ATTACH_RESULT, **words)
    assert caught.value.detail.startswith(f"{field}: ")
    assert await stored(world) == []


async def test_of_known_pictures_those_that_can_be_had_are_accepted(world: World) -> None:
    desk = await in_review(world, ReviewReason.ARCHIVE_STUCK, n=3)
    outputs = (await world.attempt(desk.task_id)).outputs
    await world.graph.context.store.delete(outputs[1].staged_key or "")
    await desk.decide(Choice.ACCEPT_AS_DONE)
    await world.archive_all()
    assert (await desk.state(), await world.balance()) == (State.SUCCEEDED, (998, 0))


async def test_when_no_picture_can_be_had_nothing_is_accepted(world: World) -> None:
    desk = await in_review(world, ReviewReason.ARCHIVE_STUCK)
    (output,) = (await world.attempt(desk.task_id)).outputs
    await world.graph.context.store.delete(output.staged_key or "")
    assert await refused(desk, Choice.ACCEPT_AS_DONE) == (409, "nothing-to-accept")


async def test_a_picture_that_was_given_up_to_decode_is_copied_when_another_is_attached(world: World) -> None:
    desk = await in_review(world, ReviewReason.ARCHIVE_STUCK)
    await world.rows("UPDATE tasks SET decode_tries = 3, copies = 6")
    await desk.decide(Choice.ATTACH_RESULT)
    await world.archive_all()
    assert await desk.state() is State.SUCCEEDED


# ---------------------------------------------------------------------------- fail, undecided
