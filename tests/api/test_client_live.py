"""Our own client at a running service: streams, and polling where there is none; batches from one end to the other."""

from __future__ import annotations

import asyncio
import os
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from safelight.client import ApiError, AsyncClient, Client
from safelight.client.streams import Bell
from tests.api.shop import Shop, running_shop
from tests.world import Server

LAMP = {"model": "lab-sync", "size": "64x64"}


@pytest.fixture
async def shop(server: Server) -> AsyncIterator[Shop]:
    async with running_shop(server) as opened:
        yield opened


@pytest.fixture
async def client(shop: Shop) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(shop.door.url, shop.door.caller.key) as made:
        yield made


async def test_waiting_ends_with_the_task(shop: Shop, client: AsyncClient) -> None:
    async with asyncio.timeout(60), shop.working():
        receipt = await client.create("a lamp", model="lab-sync", size="64x64")
        stages = [task.progress.stage async for task in client.watch(receipt.id)]
    assert stages == sorted(stages, key=["waiting", "drawing", "saving", "done"].index)
    assert stages[-1] == "done"


async def test_a_bell_rings_when_something_is_told_and_not_by_the_clock(client: AsyncClient) -> None:
    receipt = await client.create("a lamp", model="lab-sync", size="64x64")
    bell = Bell(client._exchange, receipt.id)
    async with asyncio.timeout(60):
        await bell.wait(60.0)  # how it stands
        await client.cancel(receipt.id)
        await bell.wait(60.0)
        await bell.close()
    assert (await client.get(receipt.id)).is_finished


async def test_events_of_a_task_end_with_it(shop: Shop, client: AsyncClient) -> None:
    receipt = await client.create("a lamp", model="lab-sync", size="64x64")
    async with asyncio.timeout(60), shop.working():
        events = [event async for event in client.events(receipt.id)]
        later = [event async for event in client.events(receipt.id, after=events[-1].number)]
    assert [event.progress.stage for event in events] == sorted(
        {event.progress.stage for event in events}, key=["waiting", "drawing", "saving", "done"].index
    )
    assert (events[-1].status, events[-1].is_last) == ("ready", True)
    assert later == []


async def test_a_bell_rings_by_the_clock_where_there_is_no_stream(client: AsyncClient) -> None:
    bell = Bell(client._exchange, "0199aaaa-aaaa-7aaa-8aaa-aaaaaaaaaaaa")  # of nobody: 404
    async with asyncio.timeout(60):
        await bell.wait(5.0)
        await bell.wait(0.01)
        await bell.close()
    with pytest.raises(ApiError, match="not-found"):
        await anext(client.events("0199aaaa-aaaa-7aaa-8aaa-aaaaaaaaaaaa"))


async def test_a_batch_goes_from_one_end_to_the_other(
    shop: Shop, client: AsyncClient, tmp_path: Path
) -> None:
    items = [{**LAMP, "prompt": f"lamp {number}"} for number in range(6)]
    async with asyncio.timeout(60), shop.working():
        receipt = await client.create_batch(items, at_once=2, idempotency_key="night")
        assert (receipt.items, receipt.held, receipt.is_replayed) == (6, 6, False)
        assert (await client.create_batch(items, at_once=2, idempotency_key="night")).is_replayed
        batch = await client.wait_batch(receipt.id)
        results = [item async for item in client.batch_results(receipt.id)]
        await client.save_batch(receipt.id, tmp_path / "all.zip")
    assert (batch.ready, batch.ended, batch.credits.captured) == (6, 6, 6)
    assert [item.task.prompt for item in results if item.task] == [item["prompt"] for item in items]
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert len(archive.namelist()) == 7
    assert os.listdir(tmp_path) == ["all.zip"]  # noqa: PTH208 - nothing else is left behind
    assert [each.id for each in (await client.list_batches()).data] == [receipt.id]


async def test_the_plain_client_does_the_same(shop: Shop) -> None:
    def work() -> list[str]:
        with Client(shop.door.url, shop.door.caller.key) as client:
            receipt = client.create_batch([{**LAMP, "prompt": "a lamp"}])
            kinds = [event.kind for event, _ in zip(client.events(), range(1), strict=False)]
            batch = client.wait_batch(receipt.id)
            assert client.get_batch(receipt.id).ready == batch.ready == 1
            return kinds + [item.task.status for item in client.batch_results(receipt.id) if item.task]

    async with asyncio.timeout(60), shop.working():
        assert await asyncio.to_thread(work) == ["start", "ready"]
